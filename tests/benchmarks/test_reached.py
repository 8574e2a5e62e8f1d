"""Every file of benchmarks is reached: by `make bench`, a target of the Makefile, a page, or another of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bench

ROOT = Path(bench.__file__).parents[1]
FOLDER = ROOT / "benchmarks"
FILES = sorted(path for path in FOLDER.rglob("*.py") if path.name != "__init__.py")
PAGES = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
PARTS = {part.words[0] for part in bench.PARTS}


def named_by_make(path: Path) -> bool:
    """By its file, or in a list of names that one target goes through."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return f"benchmarks/{path.name}" in makefile or bool(re.search(rf"for name in [\w ]*\b{path.stem}\b", makefile))


def used_by_another(path: Path) -> bool:
    """Imported, or started as a process of its own."""
    *packages, stem = path.relative_to(FOLDER).with_suffix("").parts
    module = re.escape(".".join([*packages, stem]))
    inside = rf"|^from {re.escape('.'.join(packages))} import [\w, ]*\b{stem}\b" if packages else ""
    uses = re.compile(rf"^\s*(?:import|from) {module}\b|\"{re.escape(path.name)}\"{inside}", re.MULTILINE)
    return any(uses.search(other.read_text(encoding="utf-8")) for other in FOLDER.rglob("*.py") if other != path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_of_benchmarks_is_reached(path: Path) -> None:
    name = str(path.relative_to(FOLDER))
    on_a_page = any(f"benchmarks/{name}" in page for page in PAGES)
    assert name in PARTS or on_a_page or named_by_make(path) or used_by_another(path), f"nothing leads to {name}"
