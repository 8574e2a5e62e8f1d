"""Figures computed from a run's record: lines over time, sums, shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from sluicegate.report.svg import Points
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
    return (1 - sum(judged) / len(judged) if judged else None), "of observations so far"


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
