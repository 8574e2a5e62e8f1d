"""The picture of a pipeline: sources, operators and sinks, with the streams between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from sluicegate.drawing import Drawing, LedArrow, Place, PlacedBox, described, drawing_of
from sluicegate.report.page import Frame
from sluicegate.runlog.run_record import Line

_WIDE, _HIGH = 150, 58
_ROW, _LAYER_DOWN = 84, 86
_AROUND = 28
"""Room between the boxes of neighbouring layers."""
_BELOW = 14
"""Room that an arrow back needs beside all boxes."""
_NARROW = 600
"""Below this width the pipeline runs downwards."""
_COLOURS = 8

Point = tuple[float, float]


def topology_picture(pipeline: Line, told: Mapping[str, str], width: int) -> str:
    """The pipeline as SVG; ``told`` has the line below each operator's name."""
    drawing = drawing_of(described(pipeline))
    sheet = _sheet(drawing, width)
    place = {box.id: box.place for box in drawing.boxes}
    arrows = [_arrow(arrow, place[arrow.origin], place[arrow.target], sheet) for arrow in drawing.arrows]
    operators = [box for box in drawing.boxes if box.kind == "operator"]
    boxes = [_operator(box, told.get(box.name, ""), n % _COLOURS, sheet) for n, box in enumerate(operators)]
    ends = [_end(box, sheet) for box in drawing.boxes if box.kind != "operator"]
    return Frame(width, sheet.height).picture([*arrows, *boxes, *ends], f"The pipeline {pipeline['name']}")


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Turns places on the drawing's grid into pixels, from left to right or, where it is narrow, downwards."""

    width: int
    height: int
    along: float
    across: float
    down: bool

    def at(self, place: Place) -> Point:
        along, across = self.along * (place.layer + 0.5), self.across * (place.lane + 0.5)
        return (across, along) if self.down else (along, across)

    @property
    def wide(self) -> float:
        """Width of a box."""
        return min(_WIDE, (self.across - _BELOW) if self.down else self.along - _AROUND)


def _sheet(drawing: Drawing, width: int) -> _Sheet:
    places = [*(box.place for box in drawing.boxes), *(bend for arrow in drawing.arrows for bend in arrow.bends)]
    lanes = 1 + max((place.lane for place in places), default=0.0)
    beside = _BELOW if any(arrow.back for arrow in drawing.arrows) else 0
    if width < _NARROW:
        return _Sheet(width, _LAYER_DOWN * drawing.layers, _LAYER_DOWN, (width - beside) / lanes, down=True)
    return _Sheet(width, round(_ROW * lanes) + beside, width / drawing.layers, _ROW, down=False)


def _end(box: PlacedBox, sheet: _Sheet) -> str:
    x, y = sheet.at(box.place)
    beside = 20 if sheet.down and box.kind == "sink" else -12
    return f'<circle class="end" cx="{x:.1f}" cy="{y:.1f}" r="5"/>' + _text(x, y + beside, box.name, "small")


def _operator(box: PlacedBox, told: str, colour: int, sheet: _Sheet) -> str:
    x, y = sheet.at(box.place)
    wide = sheet.wide
    names = box.name.replace("+", " + ")
    kind = "stateful" if box.stateful else "stateless"
    shape = (
        f'<rect class="box b{colour}" x="{x - wide / 2:.1f}" y="{y - _HIGH / 2:.1f}" width="{wide:.1f}" '
        f'height="{_HIGH}" rx="8"><title>{escape(names)}: {kind}</title></rect>'
    )
    squeezed = f' textLength="{wide - 16:.0f}" lengthAdjust="spacingAndGlyphs"' if len(names) * 7.4 > wide - 12 else ""
    return shape + _text(x, y - 4, names, "name", squeezed) + _text(x, y + 14, told, "small")


def _text(x: float, y: float, text: str, style: str, more: str = "") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle"{more}>{escape(text)}</text>'


def _arrow(arrow: LedArrow, origin: Place, target: Place, sheet: _Sheet) -> str:
    """From the middle of one to that of the other; boxes are drawn over both ends."""
    points = [sheet.at(place) for place in (origin, *arrow.bends, target)]
    onward = f"M{_told(points[0])}" + "".join(_curve(*two, sheet) for two in pairwise(points))
    way = _way_back(points[0], points[-1], sheet) if arrow.back else onward
    style = "stream back" if arrow.back else "stream"
    return f'<path class="{style}" d="{way}"><title>{escape(arrow.stream)}</title></path>'


def _curve(start: Point, end: Point, sheet: _Sheet) -> str:
    (x1, y1), (x2, y2) = start, end
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    handles = ((x1, y), (x2, y)) if sheet.down else ((x, y1), (x, y2))
    return "C" + " ".join(map(_told, (*handles, end)))


def _way_back(start: Point, end: Point, sheet: _Sheet) -> str:
    """The path of a back arrow beside all boxes, along the lower or right rim; it may end where it began."""
    (x1, y1), (x2, y2) = start, end
    if sheet.down:
        return f"M{_told((x1, y1 + _HIGH / 4))}H{sheet.width - 3}V{y2 - _HIGH / 4:.1f}H{x2:.1f}"
    return f"M{_told((x1 + sheet.wide / 4, y1))}V{sheet.height - 3}H{x2 - sheet.wide / 4:.1f}V{y2:.1f}"


def _told(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
