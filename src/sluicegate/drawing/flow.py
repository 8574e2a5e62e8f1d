"""The pipeline as boxes and arrows: who writes to whom, and which arrows close a loop."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.drawing.description import Description


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
