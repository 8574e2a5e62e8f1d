"""One name, one thing: no public class name stands for two things in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import sluicegate

SAID_OF_BOTH = {"Edge"}
"""The edge of a topology, and what carries its rows: the same thing in the model and on disk."""


def test_no_public_class_name_is_there_twice() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(Path(sluicegate.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.name)
    assert {name: places for name, places in found.items() if len(places) > 1 and name not in SAID_OF_BOTH} == {}
