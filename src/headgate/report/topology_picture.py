"""A pipeline as a picture: sources, operators and what leaves, with the streams between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from headgate.report.svg import Frame
from headgate.spark.run_record import Line

_WIDE, _HIGH = 150, 58
_ROW, _GAP = 84, 56
_NARROW = 600
"""Below this width the pipeline runs downwards."""


@dataclass(frozen=True, slots=True)
class Box:
    """Something rows pass: ``layer`` counts from the source, ``colour`` is that of its operator."""

    name: str
    kind: str
    layer: int
    reads: tuple[str, ...]
    colour: int = 0


def topology_picture(pipeline: Line, told: Mapping[str, str], width: int) -> str:
    """``told`` is the line below each operator's name."""
    boxes = boxes_of(pipeline)
    down = width < _NARROW
    layers = [[box for box in boxes if box.layer == layer] for layer in range(1 + max(box.layer for box in boxes))]
    centres, height = _down(layers, width) if down else _across(layers, width)
    arrows = [_arrow(centres[r], centres[box.name], down) for box in boxes for r in box.reads if r in centres]
    drawn = [_drawn(box, told.get(box.name, ""), *centres[box.name], width, len(layers), down) for box in boxes]
    return Frame(width, height).picture([*arrows, *drawn], f"The pipeline {pipeline['name']}")


def boxes_of(pipeline: Line) -> list[Box]:
    """Sources first, then operators in the layer after the last they read from; a loop counts where it begins."""
    writer = {stream: node["name"] for node in pipeline["nodes"] for stream in node["writes"]}
    outside = {*pipeline["sources"], *(node["source"] for node in pipeline["nodes"] if node.get("source"))}
    reads = {
        n["name"]: [f"source:{s}" if s in outside else writer.get(s, "") for s in _read(n)] for n in pipeline["nodes"]
    }
    layer = _layers(reads)
    found = [Box(f"source:{name}", "source", 0, ()) for name in sorted(outside)]
    for place, node in enumerate(pipeline["nodes"]):
        name = node["name"]
        kind = "stateful" if node["stateful"] else "stateless"
        found.append(Box(name, kind, layer[name], tuple(reads[name]), place % 8))
    last = 1 + max(layer.values(), default=0)
    ends = tuple(node["name"] for node in pipeline["nodes"] if node["terminal"])
    return [*found, Box("sink:out", "sink", last, ends)]


def _read(node: Line) -> list[str]:
    return [*node["reads"], *([node["source"]] if node.get("source") else [])]


def _layers(reads: Mapping[str, Sequence[str]]) -> dict[str, int]:
    layer = dict.fromkeys(reads, 1)
    for _ in reads:
        for name, origins in reads.items():
            layer[name] = min(1 + max((layer.get(o, 0) for o in origins), default=0), len(reads))
    return layer


Centres = dict[str, tuple[float, float]]


def _across(layers: Sequence[Sequence[Box]], width: int) -> tuple[Centres, int]:
    height = _ROW * max(len(layer) for layer in layers) + 8
    step = width / len(layers)
    return {
        box.name: (step * (column + 0.5), height * (row + 0.5) / len(layer))
        for column, layer in enumerate(layers)
        for row, box in enumerate(layer)
    }, height


def _down(layers: Sequence[Sequence[Box]], width: int) -> tuple[Centres, int]:
    step = _HIGH + _GAP / 2
    return {
        box.name: (width * (place + 0.5) / len(layer), step * (row + 0.5))
        for row, layer in enumerate(layers)
        for place, box in enumerate(layer)
    }, round(step * len(layers))


def _drawn(box: Box, told: str, x: float, y: float, width: int, layers: int, down: bool) -> str:
    if box.kind in ("source", "sink"):
        name = "out" if box.kind == "sink" else box.name.partition(":")[2]
        return f'<circle class="end" cx="{x:.1f}" cy="{y:.1f}" r="5"/>' + _text(x, y - 12, name, "small")
    wide = min(_WIDE, width if down else width / layers - 28)
    names = box.name.replace("+", " + ")
    shape = (
        f'<rect class="box b{box.colour}" x="{x - wide / 2:.1f}" y="{y - _HIGH / 2:.1f}" width="{wide:.1f}" '
        f'height="{_HIGH}" rx="8"><title>{escape(names)}: {box.kind}</title></rect>'
    )
    squeezed = f' textLength="{wide - 16:.0f}" lengthAdjust="spacingAndGlyphs"' if len(names) * 7.4 > wide - 12 else ""
    return shape + _text(x, y - 4, names, "name", squeezed) + _text(x, y + 14, told, "small")


def _text(x: float, y: float, text: str, style: str, more: str = "") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle"{more}>{escape(text)}</text>'


def _arrow(start: tuple[float, float], end: tuple[float, float], down: bool) -> str:
    """From the middle of one to that of the other; boxes are drawn over both ends."""
    (x1, y1), (x2, y2) = start, end
    middle = (
        f"{x1:.1f} {(y1 + y2) / 2:.1f} {x2:.1f} {(y1 + y2) / 2:.1f}"
        if down
        else (f"{(x1 + x2) / 2:.1f} {y1:.1f} {(x1 + x2) / 2:.1f} {y2:.1f}")
    )
    return f'<path class="stream" d="M{x1:.1f} {y1:.1f}C{middle} {x2:.1f} {y2:.1f}"/>'
