"""What is recorded says nothing of where on a machine it was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos import without_places
from results import RESULTS


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_no_result_names_a_folder_of_the_machine(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if without_places(line) != line] == []
