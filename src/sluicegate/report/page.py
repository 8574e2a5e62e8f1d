"""A self-contained HTML page, light and dark, on a desk and on a phone; and its SVG charts: axes, grids and lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #5b6470; --paper: #ffffff; --rule: #e3e6ea; --load: #c9d1da;
  --card: #f6f7f9; --own: #1668c7; --warm: #b3561b; --good: #1a7f4b; --bad: #b42318;
  --s0: #1668c7; --s1: #22826a; --s2: #b3561b; --s3: #7a4fb8; --s4: #ad8a00; --s5: #b83a6f; --s6: #4b7d1f;
  --s7: #5c6f86; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #9aa4b0; --paper: #14171b; --rule: #2b3138;
  --load: #3a434d; --card: #1c2127; --own: #6aa9f5; --warm: #ec9a5c; --good: #58c38c; --bad: #ff8a7d;
  --s0: #6aa9f5; --s1: #58c3a5; --s2: #ec9a5c; --s3: #b597ea; --s4: #d9be4a; --s5: #ef86b2; --s6: #9bcb66;
  --s7: #9fb0c5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 980px; padding: 24px 20px 60px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 0 0 2px; } h2 { font-size: 18px; margin: 36px 0 4px; }
p { color: var(--soft); margin: 2px 0 8px; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg text.small { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--rule); } .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; } th { color: var(--soft); font-weight: 600; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin: 0 5px 0 14px; }
.key:first-child { margin-left: 0; }
@media (max-width: 640px) { body { padding: 16px 14px 40px; } h1 { font-size: 21px; } }
"""


def page(title: str, style: str, body: str) -> str:
    """The whole text; ``body`` is escaped already.

    >>> page("a < b", "", "<h1>x</h1>").count("a &lt; b")
    1
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{style}</style></head><body>{body}</body></html>\n"
    )


Points = Sequence[tuple[float, float | None]]
"""Values over time; ``None`` where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps values to pixels, on a linear or a logarithmic scale."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        low, high, v = (math.log(x) for x in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return self.start + (v - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a picture in pixels, and the room around what is drawn."""

    width: int = 920
    height: int = 190
    left: int = 64
    right: int = 24
    top: int = 8
    bottom: int = 30

    def x(self, low: float, high: float, log: bool = False) -> Axis:
        return Axis(low, high, self.left, self.width - self.right, log)

    def y(self, low: float, high: float, log: bool = False) -> Axis:
        """From the bottom upwards."""
        return Axis(low, high, self.height - self.bottom, self.top, log)

    def rows(self, y: Axis, ticks: Iterable[float], text: Callable[[float], str]) -> str:
        """A line across at every tick, its value at the left."""
        return "".join(
            f'{self.across(y.at(t), "grid")}<text class="small" x="{self.left - 8}" y="{y.at(t) + 4:.1f}" '
            f'text-anchor="end">{text(t)}</text>'
            for t in ticks
        )

    def across(self, at: float, style: str) -> str:
        return f'<line class="{style}" x1="{self.left}" x2="{self.width - self.right}" y1="{at:.1f}" y2="{at:.1f}"/>'

    def picture(self, parts: Iterable[str], label: str, attributes: str = "") -> str:
        size, inner = f"0 0 {self.width} {self.height}", "".join(parts)
        return f'<svg viewBox="{size}" role="img" aria-label="{escape(label)}"{attributes}>{inner}</svg>'


def line(x: Axis, y: Axis, points: Points, style: str) -> str:
    """One polyline for every stretch without missing values."""
    return "".join(
        f'<polyline class="line {style}" points="{pixels(x, y, stretch)}"/>' for stretch in _stretches(points)
    )


def area(x: Axis, y: Axis, upper: Points, lower: Points, style: str) -> str:
    """The area between two lines that are measured at the same times."""
    there = [(u, v) for u, v in zip(upper, lower, strict=True) if u[1] is not None and v[1] is not None]
    around = [*(u for u, _ in there), *(v for _, v in reversed(there))]
    return f'<polygon class="{style}" points="{pixels(x, y, around)}"/>' if around else ""


def pixels(x: Axis, y: Axis, points: Points) -> str:
    return " ".join(f"{x.at(a):.1f},{y.at(v):.1f}" for a, v in points if v is not None)


def stepped(points: Points) -> Points:
    """The points as steps: a number of processors holds until it changes.

    >>> stepped([(0.0, 1.0), (1.0, 1.0), (2.0, 3.0)])
    [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 3.0)]
    """
    found: list[tuple[float, float | None]] = []
    for at, value in points:
        if found and found[-1][1] is not None and found[-1][1] != value:
            found.append((at, found[-1][1]))
        found.append((at, value))
    return found


def round_ticks(high: float) -> list[float]:
    """Round numbers from 0 to ``high``, four to ten of them.

    >>> round_ticks(9.0)
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    """
    step = 10.0 ** math.floor(math.log10(max(high, 1e-9)))
    step = step if high / step >= 4 else step / 2 if high / step >= 2 else step / 5
    return [i * step for i in range(int(high / step) + 1)]


def _stretches(points: Points) -> list[Points]:
    found: list[list[tuple[float, float | None]]] = [[]]
    for at, value in points:
        if value is None:
            found.append([])
        else:
            found[-1].append((at, value))
    return [stretch for stretch in found if stretch]
