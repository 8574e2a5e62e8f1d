"""Figures and charts of one run over time: load, latency, processors, executors, and what other loads would need."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from sluicegate.domain.figures import clock, seconds
from sluicegate.report.page import Axis, Frame, Points, area, line, round_ticks, stepped
from sluicegate.runlog.run_record import Line, RunRecord, measured_s

_POINTS = 400
_LEAD_STEPS = 2
"""Most points of a line: more than about one every two pixels shows nothing more."""


def over_time(record: RunRecord, value: Callable[[Line], float | None]) -> Points:
    """A value of every tick, by seconds since the run began; in a long run the largest of several ticks."""
    points = [(float(tick["at_s"]) - record.began_s, value(tick)) for tick in record.ticks]
    size = -(-len(points) // _POINTS) or 1
    return [_largest(points[i : i + size]) for i in range(0, len(points), size)]


def thinned(ticks: Sequence[Line]) -> Sequence[Line]:
    """As many ticks as lines have points."""
    return ticks[:: -(-len(ticks) // _POINTS) or 1]


def _largest(points: Points) -> tuple[float, float | None]:
    known = [value for _, value in points if value is not None]
    return points[0][0], max(known) if known else None


def forecast_for(record: RunRecord, line: str) -> Points:
    """The forecast made ``_LEAD_STEPS`` before, at the time it was made for; ``line`` is low, mean or high."""
    found: list[tuple[float, float | None]] = []
    end_s = lasted_s(record)
    for tick in record.ticks:
        told = tick.get("forecast") or {}
        values = told.get(f"{line}_per_s") or []
        if len(values) >= _LEAD_STEPS and told.get("step_s"):
            at_s = float(tick["at_s"]) - record.began_s + _LEAD_STEPS * float(told["step_s"])
            found.append((at_s, float(values[_LEAD_STEPS - 1])))
    return [(at_s, value) for at_s, value in found if at_s <= end_s]


def lasted_s(record: RunRecord) -> float:
    """Seconds from the beginning to the last tick."""
    return float(record.last["at_s"]) - record.began_s if record.ticks else 0.0


def observed_s(record: RunRecord) -> float:
    """Seconds from the first tick to the last, for which ``slot_seconds_of`` counts."""
    return float(record.last["at_s"]) - float(record.ticks[0]["at_s"]) if record.ticks else 0.0


def slot_seconds_of(record: RunRecord) -> dict[str, float]:
    """Processors of each operator, summed over the run."""
    held = dict.fromkeys(record.operators, 0.0)
    for tick, lasted_s in _lasting(record.ticks):
        for name, k in tick["running"].items():
            held[name] = held.get(name, 0.0) + k * lasted_s
    return held


def _lasting(ticks: Sequence[Line]) -> Iterator[tuple[Line, float]]:
    for tick, following in pairwise(ticks):
        yield tick, max(float(following["at_s"]) - float(tick["at_s"]), 0.0)


def kept_share(record: RunRecord) -> tuple[float | None, str]:
    """Share for which the promise was kept, and of what: of rows if the run has ended, of ticks until then."""
    told = record.outcome.get("slo_kept")
    if told is not None:
        return float(told), "of rows"
    judged = [late for tick in record.ticks if (late := record.late(tick)) is not None]
    of_what = "of observations" if record.ended else "of observations so far"
    return (1 - sum(judged) / len(judged) if judged else None), of_what


def static_peak(record: RunRecord) -> float | None:
    """The processors that a fixed allocation for the peak would hold all the time."""
    total, lasted_s = record.outcome.get("slot_seconds_static_peak"), record.outcome.get("seconds")
    return float(total) / float(lasted_s) if total and lasted_s else None


def mean_of(record: RunRecord, operator: str, figure: str) -> float | None:
    """The mean of one of an operator's figures over the ticks that measured it."""
    told = [((tick.get("operators") or {}).get(operator) or {}).get(figure) for tick in record.ticks]
    known = [float(value) for value in told if value is not None]
    return fmean(known) if known else None


def latency(what: str) -> Callable[[Line], float | None]:
    return lambda tick: measured_s(tick, what)


def processors(tick: Line) -> float:
    return float(sum(tick["running"].values()))


def processors_of(operator: str) -> Callable[[Line], float | None]:
    return lambda tick: float(tick["running"].get(operator, 0))


_STEPS_S = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400)
_PIXELS_A_LABEL = 90


def load(record: RunRecord, frame: Frame) -> str:
    """Arrivals, and the forecast interval made for them two steps before."""
    came = over_time(record, lambda tick: tick.get("arrivals_per_s"))
    low, high = forecast_for(record, "low"), forecast_for(record, "high")
    x, y = _x(record, frame), _y(frame, (came, high))
    parts = [frame.rows(y, round_ticks(y.high), lambda v: f"{v:,.10g}"), _times(x, frame)]
    parts += [area(x, y, came, [(at, 0.0) for at, _ in came], "load"), area(x, y, high, low, "band")]
    parts += [line(x, y, forecast_for(record, "mean"), "guess"), line(x, y, came, "came")]
    return frame.picture([*parts, _moves(record, x, frame)], "Load in rows a second, with its forecast", _follow(x))


def sojourn(record: RunRecord, frame: Frame) -> str:
    """The latency that was measured and predicted, against the promise."""
    lines = {what: _joined(over_time(record, latency(what))) for what in ("mean", "p95")}
    guess = over_time(record, lambda tick: tick.get("predicted_mean_s"))
    bounds = [(0.0, bound_s) for bound_s in record.bounds.values()]
    x, y = _x(record, frame), _y(frame, (*lines.values(), bounds))
    parts = [frame.rows(y, round_ticks(y.high), seconds), _times(x, frame)]
    parts += [_bound(frame, y, what, bound_s) for what, bound_s in record.bounds.items()]
    parts += [line(x, y, [(at, _within(v, y)) for at, v in guess], "guess")]
    parts += [line(x, y, points, "main" if what == "mean" else "thin") for what, points in lines.items()]
    return frame.picture(
        [*parts, _late(record, x, y), _moves(record, x, frame)], "Latency against the promise", _follow(x)
    )


def held(record: RunRecord, frame: Frame) -> str:
    """Stacked processors of every operator, and what a static plan for the peak would hold."""
    total = over_time(record, processors)
    peak = static_peak(record)
    x, y = _x(record, frame), _y(frame, (total, [(0.0, peak)]))
    parts = [frame.rows(y, [t for t in round_ticks(y.high) if t == int(t)], lambda v: f"{v:g}"), _times(x, frame)]
    below: Points = [(at, 0.0) for at, _ in total]
    for place, name in enumerate(record.operators):
        own = over_time(record, processors_of(name))
        above = [(at, (low or 0.0) + (k or 0.0)) for (at, low), (_, k) in zip(below, own, strict=True)]
        parts.append(_stack(x, y, above, below, place))
        below = above
    parts.append(_bound(frame, y, "static peak", peak, f"static peak: {peak:.0f}") if peak else "")
    return frame.picture([*parts, _moves(record, x, frame)], "Processors of every operator", _follow(x))


def fleet(record: RunRecord, frame: Frame) -> str:
    """Executors and nodes over time."""
    tracks = {what: _counted(record, what) for what in ("executors", "nodes")}
    x, y = _x(record, frame), _y(frame, tracks.values())
    parts = [frame.rows(y, [t for t in round_ticks(y.high) if t == int(t)], lambda v: f"{v:g}"), _times(x, frame)]
    parts += [line(x, y, stepped(points), f"f-{what}") for what, points in tracks.items()]
    return frame.picture(parts, "Executors and nodes", _follow(x))


def _counted(record: RunRecord, what: str) -> Points:
    """Values of ``fleet.jsonl``, which has only changes; the last one holds to the end of the run."""
    told = [(float(e["at_s"]) - record.began_s, float(e[what])) for e in record.fleet if e.get(what) is not None]
    return [*told, (lasted_s(record), told[-1][1])] if told else []


def _stack(x: Axis, y: Axis, above: Points, below: Points, place: int) -> str:
    corners = [*stepped(above), *reversed(stepped(below))]
    points = " ".join(f"{x.at(at):.1f},{y.at(v or 0.0):.1f}" for at, v in corners)
    return f'<polygon class="stack a{place % 8}" points="{points}"/>'


def _x(record: RunRecord, frame: Frame) -> Axis:
    return frame.x(0.0, max(lasted_s(record), 1.0))


def _follow(x: Axis) -> str:
    """Attributes that the page's script needs to find the time under the pointer."""
    return f' class="time" data-end="{x.high:.1f}" data-from="{x.start}" data-to="{x.end}"'


def _y(frame: Frame, lines: Iterable[Points]) -> Axis:
    """A y axis high enough for all lines."""
    most = max((value for points in lines for _, value in points if value is not None), default=1.0)
    return frame.y(0.0, 1.12 * max(most, 1e-6))


def _joined(points: Points) -> Points:
    """Drop missing values, so that the line continues between batches, when no rows come out."""
    return [(at, value) for at, value in points if value is not None]


def _within(value: float | None, y: Axis) -> float | None:
    """A prediction, or ``None`` if it is infinite or above the axis."""
    return value if value is not None and math.isfinite(value) and value <= y.high else None


def _times(x: Axis, frame: Frame) -> str:
    room = max((x.end - x.start) / _PIXELS_A_LABEL, 1.0)
    days = math.ceil(x.high / room / _STEPS_S[-1])  # of an application that runs for weeks
    step = next((s for s in _STEPS_S if x.high / s <= room), days * _STEPS_S[-1])
    return "".join(
        f'<text class="small" x="{x.at(at):.1f}" y="{frame.height - 10}" text-anchor="middle">{clock(at)}</text>'
        for at in range(0, int(x.high) + 1, step)
    )


def _bound(frame: Frame, y: Axis, what: str, bound: float, text: str = "") -> str:
    told = text or f"promised {what}: {seconds(bound)}"
    right, above = frame.width - frame.right, y.at(bound) - 5
    return (
        f"{frame.across(y.at(bound), 'goal')}"
        f'<text class="goal-text" x="{right}" y="{above:.1f}" text-anchor="end">{told}</text>'
    )


def _late(record: RunRecord, x: Axis, y: Axis) -> str:
    """A dot for every tick at which the promise was broken, on the line of what was promised; the mean for others."""
    what = "p95" if "mean" not in record.bounds and "p95" in record.bounds else "mean"
    return "".join(
        f'<circle class="late" cx="{x.at(tick["at_s"] - record.began_s):.1f}" cy="{y.at(value):.1f}" r="3"/>'
        for tick in record.ticks
        if record.late(tick) and (value := measured_s(tick, what)) is not None
    )


def _moves(record: RunRecord, x: Axis, frame: Frame) -> str:
    """A mark at the foot for every decision, so that every chart shows when something moved."""
    foot = frame.height - frame.bottom
    return "".join(
        f'<path class="move" d="M{at:.1f} {foot}l-4 7h8z"><title>{title}</title></path>'
        for at, title in ((x.at(d["at_s"] - record.began_s), f"decision {d['number']}") for d in record.decisions)
        if x.start <= at <= x.end
    )


def what_if(record: RunRecord, frame: Frame) -> str:
    """Processors that other loads would need, by the learned costs; the present load is marked."""
    points = sorted(record.what_if["points"], key=lambda point: float(point["rate_per_s"]))
    totals: Points = [(float(p["rate_per_s"]), float(p["total"]) if p.get("feasible") else None) for p in points]
    x, y = frame.x(0.0, max(at for at, _ in totals)), _y(frame, (totals,))
    parts = [frame.rows(y, [t for t in round_ticks(y.high) if t == int(t)], lambda v: f"{v:g}")]
    parts += [_rates(x, frame), line(x, y, stepped(totals), "main"), _present(record.last, x, frame)]
    return frame.picture(parts, "Processors against load")


def _rates(x: Axis, frame: Frame) -> str:
    ticks = round_ticks(x.high)
    every = max(1, math.ceil(len(ticks) * _PIXELS_A_LABEL / (x.end - x.start)))
    return "".join(
        f'<text class="small" x="{x.at(t):.1f}" y="{frame.height - 10}" text-anchor="middle">{t:,.10g}</text>'
        for t in ticks[::every]
    )


def _present(tick: Line, x: Axis, frame: Frame) -> str:
    now = tick.get("arrivals_per_s")
    if now is None or not x.low <= now <= x.high:
        return ""
    at, foot = x.at(now), frame.height - frame.bottom
    return f'<line class="goal" x1="{at:.1f}" x2="{at:.1f}" y1="{frame.top}" y2="{foot}"/>'
