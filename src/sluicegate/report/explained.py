"""A decision with its context, and in words for people on call who know the pipeline, not the theory.

The context is the tick it was made at, the forecast, and the ticks that followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from sluicegate.domain.figures import rate, seconds
from sluicegate.runlog.run_record import Line, RunRecord, measured_s

RULES = {
    "metrics": "measurements are missing or too old to act on",
    "one at a time": "the last move is not in force yet",
    "bounds": "the limits allow no more, or no fewer",
    "window": "processors are removed only once fewer have sufficed for a while",
    "calm": "no processors are removed while latency is near or above its bound",
    "overdue": "what was requested did not arrive in time; the loop continues without it",
    "dead band": "a change this small is not worth making",
    "no escalation": "more processors did not help the last time, so no more are given",
    "cool-down": "the last change is too recent; its effect is measured first",
    "it pays": "the move would cost more than it gains",
    "key groups": "the state has that many key groups, and each task needs at least one",
    "slots": "the mapping needs more executors than are allowed, so Spark places the tasks",
    "promise": "the promise cannot be kept within the limits, or there is none",
    "trigger": "batches start too rarely for the promise",
    "tasks": "the number of tasks of this query is left to Spark",
    "hot key": "all rows of a key go to one task, however many tasks there are",
}
"""What each rule means: those of the governor (``control/governor.py``), and of attached queries."""


def meaning(rule: str) -> str:
    """
    >>> meaning("cool-down")
    'the last change is too recent; its effect is measured first'
    """
    return RULES.get(rule, "")


_AFTER_S = 60.0
"""The effect of a move is judged by the ticks of this time, or until the next move."""
_SETTLED_S = 5.0
"""In-flight rows of before the move have left by then."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A decision with the ticks around it.

    ``before`` is the tick the decision was made at, ``after`` those that show its effect, ``late`` how many of them
    found the promise broken.
    """

    decision: Line
    of: int
    before: Line
    after: tuple[Line, ...]
    late: int

    @property
    def moved(self) -> tuple[str, ...]:
        return tuple(rescale["operator"] for rescale in self.decision["rescales"])

    @property
    def arrivals_per_s(self) -> float | None:
        told = self.decision.get("arrivals_per_s")
        return told if told is not None else self.before.get("arrivals_per_s")

    @property
    def mean_s(self) -> float | None:
        return measured_s(self.before)

    @property
    def forecast(self) -> str:
        """The forecast at the time, in words; '' without one."""
        told = self.before.get("forecast") or {}
        low, high, level = told.get("low_per_s") or [], told.get("high_per_s") or [], told.get("level")
        if not low or not high:
            return ""
        ahead_s = len(low) * float(told["step_s"])
        sure = f", with {level:.0%} certainty" if level is not None else ""
        return f"{rate(min(low))} to {rate(max(high))} within the next {seconds(ahead_s)}{sure}"

    @property
    def forecast_by_query(self) -> bool:
        """Whether the decision used forecasts of single queries, as it does for an application of several."""
        return any(": load: " in reason and "forecast of" in reason for reason in self.decision["reasons"])

    @property
    def mean_after_s(self) -> float | None:
        return _mean([measured_s(tick) for tick in self.after])

    @property
    def arrivals_after_per_s(self) -> float | None:
        return _mean([tick.get("arrivals_per_s") for tick in self.after])

    def came_of_it(self) -> list[str]:
        """Lines on the effect: predicted and measured latency, broken promises, change of load."""
        predicted_s, after_s = self.decision.get("predicted_mean_s"), self.mean_after_s
        lines = [f"predicted: a mean latency of {seconds(predicted_s)}"] if predicted_s is not None else []
        if after_s is None:
            return [*lines, "no row has come out since"]
        off = (
            f", {abs(after_s / predicted_s - 1):.0%} {'above' if after_s > predicted_s else 'below'}"
            if predicted_s
            else ""
        )
        lines.append(f"measured at the {len(self.after)} observations after it: {seconds(after_s)}{off}")
        lines.append(
            f"the promise was broken at {self.late} of them" if self.late else "the promise was kept at all of them"
        )
        return [*lines, *self._load_since()]

    def _load_since(self) -> list[str]:
        came, after = self.arrivals_per_s, self.arrivals_after_per_s
        return [f"meanwhile the load went from {rate(came)} to {rate(after)}"] if came and after is not None else []

    def document(self) -> dict[str, object]:
        """As JSON."""
        told = [{**refusal, "meaning": meaning(refusal["rule"])} for refusal in self.decision.get("refusals") or []]
        return {
            **self.decision,
            "of": self.of,
            "refusals": told,
            "measured": {
                "arrivals_per_s": self.arrivals_per_s,
                "mean_s": self.mean_s,
                "backlog_rows": self.before.get("backlog_rows"),
                "operators": {name: (self.before.get("operators") or {}).get(name) for name in self.moved},
            },
            "forecast": self.before.get("forecast"),
            "afterwards": {
                "looks": len(self.after),
                "looks_late": self.late,
                "mean_s": self.mean_after_s,
                "arrivals_per_s": self.arrivals_after_per_s,
            },
        }


def explained(record: RunRecord, number: int) -> Explained:
    """The decision with this number, which must be on record, with its context."""
    place = next(i for i, decision in enumerate(record.decisions) if decision["number"] == number)
    decision, later = record.decisions[place], record.decisions[place + 1 :]
    at_s = float(decision["at_s"])
    before = [tick for tick in record.ticks if tick["at_s"] <= at_s + 0.5]
    after = _after(record.ticks, at_s, float(later[0]["at_s"]) if later else at_s + _AFTER_S)
    late = sum(bool(record.late(tick)) for tick in after)
    return Explained(decision, len(record.decisions), before[-1] if before else {}, tuple(after), late)


def _after(ticks: Sequence[Line], at_s: float, next_s: float) -> list[Line]:
    """The ticks until the next move, without those before rows have settled unless there are no others."""
    until_s = min(next_s, at_s + _AFTER_S)
    found = [tick for tick in ticks if at_s < tick["at_s"] <= until_s]
    return [tick for tick in found if tick["at_s"] >= at_s + _SETTLED_S] or found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
