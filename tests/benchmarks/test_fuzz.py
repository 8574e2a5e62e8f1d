"""Malformed input for every parser: a value or one line, never a trace or a hang; `benchmarks/fuzz.py` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import Target, fuzz, targets

INPUTS, SEED = 25, 1
TARGETS = targets()


@pytest.mark.parametrize("name", TARGETS)
def test_a_spoiled_input_is_a_value_or_one_line(name: str, tmp_path: Path) -> None:
    assert fuzz(TARGETS[name], name, INPUTS, SEED, tmp_path) == []


@pytest.mark.parametrize("name", TARGETS)
def test_the_sound_input_that_is_spoiled_is_sound(name: str, tmp_path: Path) -> None:
    TARGETS[name].parse(TARGETS[name].sound, tmp_path)


def test_what_raises_anything_else_is_found(tmp_path: Path) -> None:
    (wrong,) = fuzz(Target(b"{}", lambda text, folder: int("x")), "broken", 1, SEED, tmp_path)
    assert wrong.startswith("broken 0: ValueError: ")
