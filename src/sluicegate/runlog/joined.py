"""Joins attached queries that read each other's topics, tables and folders into one graph, across applications.

Inputs and outputs are identified by place: ``kafka://SERVERS/TOPIC`` or a path. Two topics are the same if their names
are, and if they share a broker address; aliases of a broker are not resolved, so use the same address everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.runs import known_runs

Line = Mapping[str, Any]
_KAFKA = "kafka://"


@dataclass(frozen=True, slots=True)
class Link:
    """Two queries, one of which reads what the other writes; those of other applications are APPLICATION/QUERY."""

    writer: str
    reader: str
    through: str

    @property
    def text(self) -> str:
        return f"{self.writer} -> {self.reader} through {self.through}"


def same_place(one: str | None, other: str | None) -> bool:
    """
    >>> same_place("kafka://a:9092,b:9092/clicks", "kafka://b:9092/clicks"), same_place("/data/out", "/data/in")
    (True, False)
    """
    if not one or not other:
        return False
    if one.startswith(_KAFKA) and other.startswith(_KAFKA):
        (servers, topic), (others, another) = (place[len(_KAFKA) :].rsplit("/", 1) for place in (one, other))
        shared = set(servers.split(",")) & set(others.split(","))
        return topic == another and bool(shared or not servers or not others)
    return one == other


def neighbours(folder: Path) -> list[Line]:
    """Descriptions of the other attached applications that run on this machine."""
    folders = {Path(run.folder) for run in known_runs() if run.running}
    found = (_description(other) for other in sorted(folders - {folder.absolute()}))
    return [one for one in found if one is not None and one.get("attached")]


def _description(folder: Path) -> Line | None:
    try:
        read = json.loads(read_if_there(folder / "pipeline.json") or "null")
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) else None


def joined(pipeline: Line, others: Sequence[Line]) -> Line:
    """One graph of this application and all connected to it, also indirectly; others' queries are APPLICATION/QUERY."""
    near = _with_places(pipeline)
    apart = [[{**n, "name": f"{other.get('name')}/{n['name']}"} for n in _with_places(other)] for other in others]
    grown = True
    while grown:
        found = next((nodes for nodes in apart if _touch(near, nodes)), None)
        grown = found is not None
        if found is not None:
            apart.remove(found)
            near += found
    nodes = _renamed(near)
    read = {stream for node in nodes for stream in node["reads"]}
    written = {stream for node in nodes for stream in node["writes"]}
    sources = [stream for stream in dict.fromkeys(s for node in nodes for s in node["reads"]) if stream not in written]
    kept = [stream for stream in dict.fromkeys(s for node in nodes for s in node["writes"]) if stream not in read]
    return {**pipeline, "nodes": nodes, "sources": sources, "kept": kept}


def links(pipeline: Line, others: Sequence[Line]) -> list[Link]:
    """Which queries read what others write, in the graph that this application is part of."""
    graph = joined(pipeline, others)
    written = [(node["name"], stream) for node in graph["nodes"] for stream in node["writes"]]
    read = [(node["name"], stream) for node in graph["nodes"] for stream in node["reads"]]
    return [Link(writer, reader, s) for writer, s in written for reader, stream in read if stream == s]


def _with_places(pipeline: Line) -> list[dict[str, Any]]:
    """The nodes with a place for each stream; ``None`` in folders of older versions."""
    found = []
    for node in pipeline.get("nodes") or []:
        ends = {what: list(node.get(what) or []) for what in ("reads", "writes")}
        places = {f"{what}_at": list(node.get(f"{what}_at") or [None] * len(ends[what])) for what in ends}
        found.append({**node, **ends, **places})
    return found


def _places(nodes: Sequence[Line], what: str) -> Iterator[str]:
    return (place for node in nodes for place in node[f"{what}_at"] if place)


def _touch(near: Sequence[Line], far: Sequence[Line]) -> bool:
    """Whether one side reads what the other writes."""
    pairs = [(near, far), (far, near)]
    return any(same_place(w, r) for a, b in pairs for w in _places(a, "writes") for r in _places(b, "reads"))


def _renamed(nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rename streams so that every place has one name, and no two places the same."""
    names: dict[str, str] = {}

    def name(shown: str, place: str | None, owner: str) -> str:
        if place is None:
            return shown if names.setdefault(shown, owner) == owner else f"{owner}:{shown}"
        known = next((named for named, other in names.items() if same_place(place, other)), None)
        if known is not None:
            return known
        free = shown if shown not in names else place
        names[free] = place
        return free

    return [
        {
            **node,
            **{
                what: [name(s, p, node["name"]) for s, p in zip(node[what], node[f"{what}_at"], strict=False)]
                for what in ("writes", "reads")
            },
        }
        for node in nodes
    ]
