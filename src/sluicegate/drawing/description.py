"""The pipeline as its folder describes it, read leniently: folders of older versions lack some of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.errors import BadInput
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """One operator as it runs; several that share a query are joined by "+" in its name."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    stateful: bool = False
    key_groups: int | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What is drawn: streams that come from outside, operators, and streams that are kept."""

    name: str
    sources: tuple[str, ...]
    nodes: tuple[DrawnNode, ...]
    kept: tuple[str, ...]


def description_in(layout: Layout) -> Description:
    """The description of the pipeline in a folder."""
    try:
        text = read_if_there(layout.description)
        if text is None:
            raise BadInput(
                f"no pipeline in {layout.folder}: name the folder of a run, as `sluicegate run --folder` makes it"
            )
        return described(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        why = type(problem).__name__
        raise BadInput(f"{layout.description} describes no pipeline ({why}): start the run anew") from problem


def described(read: Mapping[str, Any]) -> Description:
    """The description in a parsed ``pipeline.json``."""
    nodes = tuple(
        DrawnNode(
            str(entry["name"]),
            # a native Spark source is no edge of ours, but is drawn too
            tuple(entry.get("reads") or filter(None, [entry.get("source")])),
            tuple(entry.get("writes") or ()),
            bool(entry.get("stateful")),
            entry.get("key_groups"),
        )
        for entry in read["nodes"]
    )
    return Description(str(read["name"]), tuple(read.get("sources") or ()), nodes, tuple(read.get("kept") or ()))
