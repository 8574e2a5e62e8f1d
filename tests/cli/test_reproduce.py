from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.cli.app import run


@pytest.mark.slow
def test_a_reproduction_has_the_contracts_keys_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert run(["reproduce", "es-stream", "--json", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["paper"] == "es-stream"
    assert all(set(row) == {"what", "paper", "ours", "holds", "note"} for row in found["rows"])
    assert any(row["holds"] for row in found["rows"])
    assert all(row["note"].strip() for row in found["rows"] if row["holds"] is False)
    text = page.read_text(encoding="utf-8")
    assert "http" not in text
    assert all(word in text for word in ("holds", "does not", "prefers-color-scheme"))


@pytest.mark.parametrize("arguments", [["reproduce", "magic"], ["reproduce", "drs", "--trace", "x.csv"]])
def test_what_cannot_be_reproduced_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_the_full_length_goes_with_uncertainty_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "drs", "--full"]) == 2
    assert "--full goes with uncertainty only" in capsys.readouterr().err
