"""Renders a replay as a self-contained HTML page: plots, a table, and the repairs made to the data.

The plots are inline SVG: cost against violations, and load, capacity and machines over time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from sluicegate.lab.replay.replay import ReplayOptions, Result, TraceReport
from sluicegate.lab.replay.world import Truth
from sluicegate.report.page import Axis, Frame, line, page, pixels, round_ticks, stepped

Floats = NDArray[np.float64]

_PARETO = Frame(height=420, top=16, bottom=44)
_TIME = Frame()
_POINTS = 800  # about one point per pixel; more would not be visible
_NEVER = 1e-5  # violations below this are drawn here, since a log axis has no zero
_CHARACTER, _LINE = 7.2, 14  # width of a character and height of a label, in pixels


def pareto(report: TraceReport, target: float) -> str:
    """Cost over hindsight against the share of late minutes, both logarithmic; lower left is better."""
    frame = _PARETO
    costs = [r.cost_vs_hindsight for r in report.results]
    lates = [max(1 - r.qos, _NEVER) for r in report.results]
    x = frame.x(min(*costs, 1.0) / 1.15, max(*costs, 2.0) * 1.25, log=True)
    y = frame.y(min(*lates, (1 - target) / 4) / 1.6, max(*lates, 0.02) * 1.6, log=True)
    parts = [_grid_x(x, _cost_ticks(x), "machines paid for, times the hindsight minimum")]
    parts.append(frame.rows(y, [t for t in (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0) if y.low < t < y.high], _late_text))
    goal = y.at(1 - target)
    parts.append(frame.across(goal, "goal"))
    parts.append(f'<text class="small" x="{x.end}" y="{goal - 5:.1f}" text-anchor="end">target</text>')
    spots = [(x.at(cost), y.at(late)) for cost, late in zip(costs, lates, strict=True)]
    runnable = [spot for r, spot in zip(report.results, spots, strict=True) if family(r.policy) != "bound"]
    parts.append(_frontier(runnable))
    parts += _dots(report.results, spots)
    return frame.picture(parts, "Cost against violations")


def over_time(report: TraceReport, result: Result, truth: Truth, colour: int) -> str:
    """The load, and the mean capacity of the machines of one policy, by minute in the first run."""
    frame, bucket = _TIME, _bucket(len(report.rates_per_s))
    load = _buckets(report.rates_per_s, bucket, np.maximum)
    carried = _buckets(truth.mean_per_s[result.serving], bucket, np.minimum)
    x = frame.x(0.0, len(report.rates_per_s) / 1440)
    y = frame.y(0.0, 1.08 * float(max(load.max(), carried.max())))
    at = np.arange(len(load)) * bucket / 1440
    parts = [frame.rows(y, round_ticks(y.high), lambda v: f"{v:,.0f}"), _days(x, frame.height)]
    around = [(0.0, 0.0), *zip(at, load, strict=True), (float(at[-1]), 0.0)]
    parts.append(f'<polygon class="load" points="{pixels(x, y, around)}"/>')
    parts.append(_line(x, y, at, carried, colour))
    return frame.picture(parts, f"Load and capacity under {result.policy}")


def machines(report: TraceReport, chosen: Sequence[tuple[Result, int]]) -> str:
    """The machines that served under several policies, each in its colour."""
    frame, bucket = _TIME, _bucket(len(report.rates_per_s))
    tracks = [_buckets(result.serving.astype(np.float64), bucket, np.maximum) for result, _ in chosen]
    x = frame.x(0.0, len(report.rates_per_s) / 1440)
    y = frame.y(0.0, 1.08 * max(float(track.max()) for track in tracks))
    at = np.arange(len(tracks[0])) * bucket / 1440
    parts = [frame.rows(y, round_ticks(y.high), lambda v: f"{v:g}"), _days(x, frame.height)]
    parts += [_line(x, y, at, track, colour) for track, (_, colour) in zip(tracks, chosen, strict=True)]
    return frame.picture(parts, "Machines")


def minutes_a_point(report: TraceReport) -> int:
    return _bucket(len(report.rates_per_s))


def _bucket(steps: int) -> int:
    return max(1, -(-steps // _POINTS))


def _buckets(values: Floats, size: int, take: np.ufunc) -> Floats:
    reduced: Floats = take.reduceat(values, np.arange(0, len(values), size))
    return reduced


def _grid_x(x: Axis, ticks: Sequence[float], title: str) -> str:
    low = _PARETO.height - _PARETO.bottom
    marks = "".join(
        f'<line class="grid" x1="{x.at(t):.1f}" x2="{x.at(t):.1f}" y1="{_PARETO.top}" y2="{low}"/>'
        f'<text class="small" x="{x.at(t):.1f}" y="{low + 16}" text-anchor="middle">{t:g}x</text>'
        for t in ticks
    )
    middle, below = (x.start + x.end) / 2, _PARETO.height - 6
    return f'{marks}<text class="small" x="{middle}" y="{below}" text-anchor="middle">{title}</text>'


def _days(x: Axis, height: int) -> str:
    every = max(1, math.ceil(x.high / 10))
    unit, step = ("day", float(every)) if x.high > 2 else ("hour", 1 / 24 * max(1, math.ceil(x.high * 24 / 10)))
    count = int(x.high / step) + 1
    return "".join(
        f'<text class="small" x="{x.at(i * step):.1f}" y="{height - 10}" text-anchor="middle">'
        f"{unit} {i * every if unit == 'day' else round(i * step * 24)}</text>"
        for i in range(count)
        if i * step <= x.high
    )


def _line(x: Axis, y: Axis, at: Floats, values: Floats, colour: int) -> str:
    """A step line, since machine counts change instantly."""
    return line(x, y, stepped(list(zip(at.tolist(), values.tolist(), strict=True))), f"c{colour}")


def _frontier(spots: Sequence[tuple[float, float]]) -> str:
    """The Pareto frontier of the given points; on the screen a low share is a large y."""
    best: list[tuple[float, float]] = []
    for spot in sorted(spots, key=lambda s: (s[0], -s[1])):
        if not best or spot[1] > best[-1][1]:
            best.append(spot)
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in best)
    return f'<polyline class="frontier" points="{points}"/>'


def _dots(results: Sequence[Result], spots: Sequence[tuple[float, float]]) -> list[str]:
    taken = [(px - 6, py - 6, px + 6, py + 6) for px, py in spots]
    parts: list[str] = []
    for result, (px, py) in zip(results, spots, strict=True):
        told = f"{result.policy}: {result.qos:.3%} on time at {result.cost_vs_hindsight:.2f}x hindsight"
        parts.append(
            f'<circle class="dot {family(result.policy)}" cx="{px:.1f}" cy="{py:.1f}" r="5">'
            f"<title>{escape(told)}</title></circle>"
        )
        box = _room(result.policy, px, py, taken)
        taken.append(box)
        style = "label own" if family(result.policy) == "own" else "label"
        parts.append(f'<text class="{style}" x="{box[0]:.1f}" y="{box[3] - 3:.1f}">{escape(result.policy)}</text>')
    return parts


Box = tuple[float, float, float, float]


def _room(text: str, px: float, py: float, taken: Sequence[Box]) -> Box:
    """The label position around a dot that overlaps least with others."""
    wide = _CHARACTER * len(text)
    corners = [(px + 9, py - _LINE / 2), (px - 9 - wide, py - _LINE / 2)]
    corners += [(px - wide / 2, py + s * k * _LINE - _LINE / 2) for k in (1.2, 2.2, 3.2) for s in (-1, 1)]
    corners += [(px + 9, py + s * _LINE - _LINE / 2) for s in (-1, 1)]
    boxes = [(left, top, left + wide, top + _LINE) for left, top in corners]
    return min(boxes, key=lambda box: sum(_overlap(box, other) for other in taken) + _outside(box))


def _overlap(a: Box, b: Box) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _outside(box: Box) -> float:
    return 1e6 if box[0] < _PARETO.left or box[2] > _PARETO.width or box[1] < 0 else 0.0


def family(policy: str) -> str:
    """The colour class of a policy: own, the paper's, bounds that cannot be run in practice, or peers."""
    if policy in ("on-time", "sluicegate"):
        return "own"
    if policy.startswith("uncertainty"):
        return "paper"
    return "bound" if "hindsight" in policy or policy == "static-peak" else "peer"


def _cost_ticks(x: Axis) -> list[float]:
    return [t for t in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0) if x.low < t < x.high]


def _late_text(share: float) -> str:
    return "never" if share <= _NEVER else f"{100 * share:g}%"


_SHOWN = ("on-time", "recent-peak", "uncertainty-7", "hindsight")
_STYLE = """
:root { --paper-policy: #b3561b; --bound: #8a919b; --peer: #22826a; }
@media (prefers-color-scheme: dark) { :root { --paper-policy: #ec9a5c; --bound: #8a919b; --peer: #58c3a5; } }
h2 { margin-top: 40px; } h3 { font-size: 15px; margin: 22px 0 2px; }
li { color: var(--soft); margin: 2px 0; } ul { margin: 4px 0 12px; padding-left: 18px; }
svg text.own { font-weight: 700; } .goal { stroke: var(--soft); stroke-dasharray: 5 4; }
.frontier { fill: none; stroke: var(--soft); stroke-opacity: .5; } .load { fill: var(--load); }
.c0 { stroke: var(--own); } .c1 { stroke: var(--peer); } .c2 { stroke: var(--paper-policy); }
.c3 { stroke: var(--bound); }
.dot { stroke: var(--paper); stroke-width: 1.5; } .dot.own { fill: var(--own); }
.dot.paper { fill: var(--paper-policy); }
.dot.bound { fill: var(--bound); } .dot.peer { fill: var(--peer); }
.key.own, .key.k0 { background: var(--own); } .key.peer, .key.k1 { background: var(--peer); }
.key.paper, .key.k2 { background: var(--paper-policy); } .key.bound, .key.k3 { background: var(--bound); }
.key.area { background: var(--load); }
tr.own td { font-weight: 700; } td.missed { color: var(--paper-policy); }
"""


def replay_page(
    options: ReplayOptions, said: str, truth: Truth, reports: Sequence[tuple[TraceReport, tuple[str, ...]]]
) -> str:
    """The page; each report comes with the repairs that its trace needed."""
    sections = "".join(_section(options, truth, report, repairs) for report, repairs in reports)
    facts = (
        f"protocol {options.protocol.name}, target {options.target:.2%} of minutes on time, {options.runs} runs,"
        f" seed {options.seed}; {said}"
    )
    return page("sluicegate replay", _STYLE, f"<h1>sluicegate replay</h1><p>{escape(facts)}</p>{sections}")


def _section(options: ReplayOptions, truth: Truth, report: TraceReport, repairs: tuple[str, ...]) -> str:
    notes = [*repairs, *report.notes, *(f"{r.policy}: {note}" for r in report.results for note in r.notes)]
    chosen = _chosen(report.results)
    every = minutes_a_point(report)
    points = "each point a minute" if every == 1 else f"each point {every} minutes: largest load, smallest capacity"
    return "".join(
        (
            f"<h2>{escape(report.trace)}</h2>",
            "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>",
            "<h3>Late minutes against cost: lower left is better</h3>",
            f"<p>{_keys(report.results)}</p>",
            pareto(report, options.target),
            _table(report, options.target),
            f"<h3>Load and capacity over time, first run ({points})</h3>",
            *(_panel(report, result, truth, colour) for result, colour in chosen),
            "<h3>Machines that serve</h3>",
            "<p>" + "".join(f'<span class="key k{i}"></span>{escape(r.policy)}' for r, i in chosen) + "</p>",
            machines(report, chosen),
        )
    )


def _panel(report: TraceReport, result: Result, truth: Truth, colour: int) -> str:
    keys = f'<span class="key area"></span>load, rows/s<span class="key k{colour}"></span>capacity under'
    return f"<p>{keys} {escape(result.policy)}</p>{over_time(report, result, truth, colour)}"


def _chosen(results: Sequence[Result]) -> list[tuple[Result, int]]:
    """Up to four policies for the time plots, each with its colour: those in ``_SHOWN`` first, then in order."""
    by_name = {result.policy: result for result in results}
    colours = {name: i for i, name in enumerate(_SHOWN) if name in by_name}
    left = [i for i in range(len(_SHOWN)) if i not in colours.values()]
    others = [name for name in by_name if name not in colours]
    colours.update(zip(others, left, strict=False))
    return [(by_name[name], colour) for name, colour in colours.items()]


def _keys(results: Sequence[Result]) -> str:
    shown = {"own": "our own", "paper": "the paper's policies", "peer": "peers", "bound": "bounds that know the future"}
    there = {family(result.policy) for result in results}
    return "".join(f'<span class="key {name}"></span>{text}' for name, text in shown.items() if name in there)


def _table(report: TraceReport, target: float) -> str:
    heads = (
        "policy",
        "on time",
        "cost / hindsight",
        "cost / static peak",
        "rescales",
        "largest backlog, rows",
        "longest backlog, min",
        "forecast coverage",
    )
    head = "".join(f"<th>{text}</th>" for text in heads)
    rows = "".join(_row(result, target) for result in sorted(report.results, key=lambda r: r.cost_vs_hindsight))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(r: Result, target: float) -> str:
    coverage = "-" if r.coverage is None else f"{r.coverage:.1%}"
    cells = (
        f"{r.cost_vs_hindsight:.3f}",
        f"{r.cost_vs_static:.3f}",
        f"{r.rescales:,.0f}",
        f"{r.backlog_peak:,.0f}",
        f"{r.backlog_drain_s / 60:,.0f}",
        coverage,
    )
    on_time = f"<td{'' if r.qos >= target else ' class=missed'}>{r.qos:.3%}</td>"
    own = ' class="own"' if family(r.policy) == "own" else ""
    return f"<tr{own}><td>{escape(r.policy)}</td>{on_time}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
