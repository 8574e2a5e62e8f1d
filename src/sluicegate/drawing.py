"""The pipeline as its folder describes it, as boxes and arrows, laid out for every picture of it.

A description is read leniently: folders of older versions lack some of it. The layout has layers along the flow, few
crossings, and long arrows led past the boxes between. Sugiyama's method: layers by longest path, a bend for every layer
an arrow passes, order by the mean place of neighbours, then places pulled towards neighbours without overlap.
Coordinates are a grid (``layer`` along the flow, ``lane`` across); the page turns them into pixels, from left to right
or, on a phone, from top to bottom.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
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


@dataclass(frozen=True, slots=True)
class Box:
    """``kind`` is source, operator or sink; ``name`` is what people read."""

    id: str
    kind: str
    name: str
    stateful: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """A stream between two boxes, given by id. ``back``: it closes a loop."""

    origin: str
    target: str
    stream: str
    back: bool = False


def flow_of(pipeline: Description) -> tuple[tuple[Box, ...], tuple[Arrow, ...]]:
    """Boxes and arrows of a pipeline: streams that no operator writes come from outside; kept ones leave it."""
    writers = {stream: node.name for node in pipeline.nodes for stream in node.writes}
    outside = [*pipeline.sources, *(s for node in pipeline.nodes for s in node.reads if s not in writers)]
    sinks = [stream for stream in pipeline.kept if stream in writers]
    boxes = (
        *(Box(f"source:{stream}", "source", stream) for stream in dict.fromkeys(outside)),
        *(Box(node.name, "operator", node.name, node.stateful) for node in pipeline.nodes),
        *(Box(f"sink:{stream}", "sink", stream) for stream in sinks),
    )
    read = [Arrow(writers.get(s, f"source:{s}"), node.name, s) for node in pipeline.nodes for s in node.reads]
    left = [Arrow(writers[stream], f"sink:{stream}", stream) for stream in sinks]
    return boxes, _with_loops_marked(boxes, [*read, *left])


def _with_loops_marked(boxes: tuple[Box, ...], arrows: list[Arrow]) -> tuple[Arrow, ...]:
    """Mark back arrows by a walk from the sources: one that leads to a box on the current path closes a loop."""
    leaving: dict[str, list[Arrow]] = {box.id: [] for box in boxes}
    for arrow in arrows:
        leaving[arrow.origin].append(arrow)
    back: set[Arrow] = set()
    done: set[str] = set()
    for box in boxes:
        _walk(box.id, leaving, done, back)
    return tuple(Arrow(a.origin, a.target, a.stream, a in back) for a in arrows)


def _walk(start: str, leaving: dict[str, list[Arrow]], done: set[str], back: set[Arrow]) -> None:
    """Depth-first search with an explicit stack, since a chain of a thousand operators would be too deep to recurse."""
    if start in done:
        return
    path, ahead = {start}, [(start, iter(leaving[start]))]
    while ahead:
        here, arrows = ahead[-1]
        arrow = next(arrows, None)
        if arrow is None:
            path.discard(here)
            done.add(here)
            ahead.pop()
        elif arrow.target in path:
            back.add(arrow)
        elif arrow.target not in done:
            path.add(arrow.target)
            ahead.append((arrow.target, iter(leaving[arrow.target])))


_SWEEPS = 12
_BEND_WIDTH = 0.3
"""As a fraction of a box; an arrow that passes a box is then 0.65 from its middle, and clears it."""
Links = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Place:
    """A position on the grid."""

    layer: int
    lane: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBox(Box):
    """A box and where its middle lies."""

    layer: int
    lane: float

    @property
    def place(self) -> Place:
        return Place(self.layer, self.lane)


@dataclass(frozen=True, slots=True)
class LedArrow(Arrow):
    """An arrow and what it passes on its way; one that goes back passes nothing."""

    bends: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A pipeline laid out."""

    layers: int
    boxes: tuple[PlacedBox, ...]
    arrows: tuple[LedArrow, ...]


def drawing_of(pipeline: Description) -> Drawing:
    """Boxes with their places, arrows with their bends."""
    boxes, arrows = flow_of(pipeline)
    layer = layers(boxes, arrows)
    bends = {arrow: _bends(arrow, layer) for arrow in arrows if not arrow.back}
    rows, before, after = _chained(boxes, layer, bends)
    _reorder(rows, before, after)
    lane = _lanes(rows, before, after, {bend for passed in bends.values() for _, bend in passed})
    return Drawing(
        len(rows),
        tuple(PlacedBox(layer=layer[box.id], lane=lane[box.id], **asdict(box)) for box in boxes),
        tuple(LedArrow(bends=_places(bends.get(arrow, []), lane), **asdict(arrow)) for arrow in arrows),
    )


def layers(boxes: tuple[Box, ...], arrows: tuple[Arrow, ...]) -> dict[str, int]:
    """Layer of each box: the longest path from the start of the flow; a source stands right before its first reader."""
    forward = [arrow for arrow in arrows if not arrow.back]
    layer = {box.id: 0 for box in boxes}
    for _ in boxes:
        late = [arrow for arrow in forward if layer[arrow.target] <= layer[arrow.origin]]
        if not late:
            break
        for arrow in late:
            layer[arrow.target] = max(layer[arrow.target], layer[arrow.origin] + 1)
    for box in boxes:
        if box.kind == "source" and (read := [layer[a.target] for a in forward if a.origin == box.id]):
            layer[box.id] = min(read) - 1
    return layer


def _bends(arrow: Arrow, layer: dict[str, int]) -> list[tuple[int, str]]:
    """A place in every layer that the arrow passes."""
    between = range(layer[arrow.origin] + 1, layer[arrow.target])
    return [(at, f"{arrow.origin}>{arrow.target}:{arrow.stream}@{at}") for at in between]


def _chained(
    boxes: tuple[Box, ...], layer: dict[str, int], bends: dict[Arrow, list[tuple[int, str]]]
) -> tuple[list[list[str]], Links, Links]:
    """Boxes and bends by layer, and the neighbours of each in the layers before and after."""
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    before, after = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for box in boxes:
        rows[layer[box.id]].append(box.id)
    for arrow, passed in bends.items():
        for at, bend in passed:
            rows[at].append(bend)
        chain = [arrow.origin, *(bend for _, bend in passed), arrow.target]
        for one, other in pairwise(chain):
            after[one].append(other)
            before[other].append(one)
    return rows, before, after


def _reorder(rows: list[list[str]], before: Links, after: Links) -> None:
    """Sort each layer by the mean place of its neighbours, in alternating directions."""
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        neighbours = before if forth else after
        for row, fixed in _pairs(rows, forth):
            place = {name: n for n, name in enumerate(fixed)}
            own = {name: n for n, name in enumerate(row)}
            row.sort(key=lambda name: _mean([place[o] for o in neighbours[name]], own[name]))


def _lanes(rows: list[list[str]], before: Links, after: Links, bends: set[str]) -> dict[str, float]:
    """Places across the flow: each near the mean of its neighbours without overlap, the first at 0."""
    lane = {name: n - (len(row) - 1) / 2 for row in rows for n, name in enumerate(row)}
    for sweep in range(_SWEEPS):
        neighbours = (before, after)[sweep % 2]
        for row, _ in _pairs(rows, sweep % 2 == 0):
            wanted = [_mean([lane[o] for o in neighbours[name]], lane[name]) for name in row]
            lane.update(zip(row, _apart(wanted, _gaps(row, bends)), strict=True))
    lowest = min(lane.values(), default=0.0)
    return {name: round(at - lowest, 2) for name, at in lane.items()}


def _gaps(row: list[str], bends: set[str]) -> list[float]:
    """Distances between neighbours in a layer: boxes need more room than passing arrows."""
    width = [_BEND_WIDTH if name in bends else 1.0 for name in row]
    return [(one + other) / 2 for one, other in pairwise(width)]


def _apart(wanted: list[float], gaps: list[float]) -> list[float]:
    """Places near ``wanted`` that are at least ``gaps`` apart.

    >>> _apart([0.0, 0.0, 5.0], [1.0, 1.0])
    [-0.5, 0.5, 5.0]
    """
    pushed, pulled = list(wanted), list(wanted)
    for n, gap in enumerate(gaps):
        pushed[n + 1] = max(pushed[n + 1], pushed[n] + gap)
    for n, gap in reversed(list(enumerate(gaps))):
        pulled[n] = min(pulled[n], pulled[n + 1] - gap)
    return [(high + low) / 2 for high, low in zip(pushed, pulled, strict=True)]


def _pairs(rows: list[list[str]], forth: bool) -> list[tuple[list[str], list[str]]]:
    """Each layer with the one that was placed before it."""
    ordered = rows if forth else rows[::-1]
    return list(zip(ordered[1:], ordered, strict=False))


def _mean(values: list[float] | list[int], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _places(bends: list[tuple[int, str]], lane: dict[str, float]) -> tuple[Place, ...]:
    return tuple(Place(at, lane[bend]) for at, bend in bends)
