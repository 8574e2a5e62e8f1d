"""The examples in the docstrings of the benchmarks give what they print."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import bench

FOLDER = Path(bench.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(FOLDER).with_suffix("").parts)
    for path in FOLDER.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_benchmark_give_what_they_print(name: str) -> None:
    found = doctest.testmod(import_module(name))
    assert found.attempted
    assert found.failed == 0
