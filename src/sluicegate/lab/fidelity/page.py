"""Predicted against measured, as table cells for the terminal and as a self-contained HTML page with a scatter plot."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sluicegate.domain.figures import rate, seconds
from sluicegate.lab.fidelity.fidelity import Fidelity
from sluicegate.lab.fidelity.settings import Compared, median_error, pairs_in_order
from sluicegate.report.page import Axis, page

HEADINGS = (
    "rows/s",
    "processors",
    "predicted",
    "law alone",
    "measured",
    "error",
    "p95",
    "measured",
    "burst",
    "measured",
)


def cells(one: Compared) -> tuple[str, ...]:
    """Cells in the order of ``HEADINGS``; processors in the order of the operators."""
    return (
        f"{one.rate_per_s:,.0f}",
        "/".join(map(str, one.processors.values())),
        seconds(one.predicted.mean_s),
        seconds(one.law_mean_s),
        seconds(one.measured.mean_s),
        f"{one.error:+.1%}",
        seconds(one.predicted.p95_s),
        seconds(one.measured.p95_s),
        rate(one.predicted.rate_per_s),
        rate(one.measured.rate_per_s),
    )


_SIZE, _EDGE = 460, 56
_COLOURS = 8
_MOST_TICKS = 8
_STYLE = """
svg { max-width: 560px; } .same { stroke: var(--soft); } .band { fill: var(--rule); opacity: .6; }
"""


def fidelity_page(found: Sequence[Fidelity]) -> str:
    """The HTML page for these applications."""
    keys = "".join(
        f'<span class="key" style="background:{_colour(i)}"></span>{escape(one.app)}' for i, one in enumerate(found)
    )
    body = (
        "<h1>Predicted against measured</h1>"
        "<p>Mean time from source to sink, each dot an allocation; the band is 10% to each side.</p>"
        f"<p>{keys}</p>{scatter(found)}{''.join(_section(one) for one in found)}"
    )
    return page("sluicegate fidelity", _STYLE, body)


def scatter(found: Sequence[Fidelity]) -> str:
    """An SVG scatter plot; both axes have the same log scale, so a ratio is a distance from the diagonal."""
    values = [v for one in found for s in one.settings for v in (s.predicted.mean_s, s.measured.mean_s)]
    low, high = min(values) / 1.25, max(values) * 1.25
    x, y = Axis(low, high, _EDGE, _SIZE - 12, log=True), Axis(low, high, _SIZE - _EDGE, 12, log=True)
    parts = [_band(x, y, low, high), *(_tick(x, y, t) for t in _ticks(low, high))]
    parts.append(
        f'<line class="same" x1="{x.at(low):.1f}" y1="{y.at(low):.1f}" x2="{x.at(high):.1f}" y2="{y.at(high):.1f}"/>'
    )
    for i, one in enumerate(found):
        parts += [_dot(x, y, setting, _colour(i), one.app) for setting in one.settings]
    middle = f"{_SIZE / 2:.0f}"
    parts.append(f'<text class="small" x="{middle}" y="{_SIZE - 14}" text-anchor="middle">predicted mean, s</text>')
    turned = f'transform="translate(14 {middle}) rotate(-90)" text-anchor="middle"'
    parts.append(f'<text class="small" {turned}>measured mean, s</text>')
    label = 'role="img" aria-label="Predicted against measured"'
    return f'<svg viewBox="0 0 {_SIZE} {_SIZE}" {label}>{"".join(parts)}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """Round seconds between the two: every digit of each decade, or only 1, 2 and 5 if those are too many.

    >>> _ticks(3.1, 8.5), _ticks(0.4, 12.0)
    ([4.0, 5.0, 6.0, 7.0, 8.0], [0.5, 1.0, 2.0, 5.0, 10.0])
    """
    every = [digit * 10.0**decade for decade in range(-2, 3) for digit in range(1, 10)]
    within = [tick for tick in every if low < tick < high]
    return within if len(within) <= _MOST_TICKS else [t for t in within if f"{t:e}"[0] in "125"]


def _band(x: Axis, y: Axis, low: float, high: float) -> str:
    corners = ((low, low * 1.1), (high / 1.1, high), (high, high), (high, high / 1.1), (low * 1.1, low), (low, low))
    return f'<polygon class="band" points="{" ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in corners)}"/>'


def _tick(x: Axis, y: Axis, value: float) -> str:
    left, bottom = x.start, y.start
    return (
        f'<line class="grid" x1="{x.at(value):.1f}" x2="{x.at(value):.1f}" y1="{y.end}" y2="{bottom}"/>'
        f'<line class="grid" x1="{left}" x2="{x.end}" y1="{y.at(value):.1f}" y2="{y.at(value):.1f}"/>'
        f'<text class="small" x="{x.at(value):.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>'
        f'<text class="small" x="{left - 6}" y="{y.at(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
    )


def _dot(x: Axis, y: Axis, one: Compared, colour: str, app: str) -> str:
    told = (
        f"{app} at {one.rate_per_s:,.0f} rows/s with {_processors(one)}: predicted {one.predicted.mean_s:.2f} s, "
        f"measured {one.measured.mean_s:.2f} s"
    )
    at = f'cx="{x.at(one.predicted.mean_s):.1f}" cy="{y.at(one.measured.mean_s):.1f}"'
    return f'<circle {at} r="5" style="fill:{colour}"><title>{escape(told)}</title></circle>'


def _section(one: Fidelity) -> str:
    right, pairs = pairs_in_order(one.settings, lambda s: s.predicted.mean_s)
    rows = "".join(_row(setting) for setting in one.settings)
    return (
        f"<h2>{escape(one.app)} at up to {one.rate_per_s:,.0f} rows/s</h2>"
        f"<p>a batch every {one.pace_s:.2f} s where rows come in; median error of the mean "
        f"{median_error(one.settings):.1%}; {right} of {pairs} pairs in the right order; "
        f"operators {escape(', '.join(one.law.topology.names))}</p>"
        f'<div class="wide"><table><thead><tr>{"".join(f"<th>{h}</th>" for h in HEADINGS)}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(one: Compared) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells(one))}</tr>"


def _processors(one: Compared) -> str:
    return "/".join(map(str, one.processors.values()))


def _colour(i: int) -> str:
    return f"var(--s{i % _COLOURS})"
