from __future__ import annotations

import re
from pathlib import Path

import pytest

import sluicegate
from constants_ablated import VARIANTS, changed, constants

PACKAGE = Path(sluicegate.__file__).parent
CONSTANTS = [(path, name) for path, constants in VARIANTS.items() for name in constants]


def test_one_line_is_changed_and_its_comment_stays() -> None:
    assert changed("A = 1\n_A = 2  # why\n", "_A", "3") == "A = 1\n_A = 3  # why\n"


@pytest.mark.parametrize(("path", "name"), CONSTANTS, ids=lambda part: part)
def test_every_constant_of_the_study_is_in_the_sources(path: str, name: str) -> None:
    source = (PACKAGE / path).read_text(encoding="utf-8")
    assert changed(source, name, "0.123") != source


def test_our_own_policies_have_40_constants_and_no_more() -> None:
    """With sizes of arrays. One more has to earn its place: docs/replay_tables.md."""
    assert len([*constants(PACKAGE)]) <= 40


def test_every_constant_has_a_line_on_what_it_does() -> None:
    for path, name, _ in constants(PACKAGE):
        lines = (PACKAGE / path).read_text(encoding="utf-8").splitlines()
        at = next(i for i, line in enumerate(lines) if re.match(rf"(\w+, )*{name}\b.* = ", line))
        around = (lines[at - 1].startswith("#"), "  # " in lines[at], lines[at + 1].startswith('"""'))
        assert any(around), f"{path}: {name} has no line on its effect"
