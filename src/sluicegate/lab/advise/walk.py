"""Simulates a query in batches under the control loop, from the law of its batches and the load that it had.

    a batch processes the n waiting rows in o + c k + n/(k mu) seconds; the next one begins when it ends, or when its
    trigger is due; the latency of a row is the time from its birth to the end of its batch

The loop is ticked as on Spark. Requested slots become available ``startup_s`` later and are paid for from the request.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sluicegate.control.loop import Settings, start, tick
from sluicegate.domain import Batch, Goal, Observation, OperatorObservation, Sojourn
from sluicegate.domain.births import kept_share, quantile_s
from sluicegate.model.batch_fit import BatchLaw

Floats = NDArray[np.float64]
OPERATOR = "query"
_PARTS = 8


@dataclass(frozen=True, slots=True)
class Load:
    """Rows per second in steps, and the trigger interval (0: back to back)."""

    per_s: tuple[float, ...]
    step_s: float
    trigger_s: float = 0.0

    @property
    def seconds(self) -> float:
        return len(self.per_s) * self.step_s


@dataclass(frozen=True, slots=True)
class Walked:
    """Cost and latency of a simulated policy; ``kept`` (share of rows on time) is ``None`` without a promise."""

    slot_seconds: float
    kept: float | None
    moves: int
    most: int
    slots: tuple[tuple[float, int], ...]
    p95_s: float | None
    reasons: tuple[str, ...] = ()


@dataclass(slots=True)
class _Course:
    """State of the simulated query."""

    law: BatchLaw
    load: Load
    times: Floats
    total: Floats
    k: int
    startup_s: float
    free_s: float = 0.0
    taken: float = 0.0
    coming: list[tuple[float, int]] = field(default_factory=list)
    ages: list[tuple[float, float, float]] = field(default_factory=list)
    """(when the batch ended, age, rows)"""

    def rows_until(self, at_s: float) -> float:
        return float(np.interp(at_s, self.times, self.total))

    def ask(self, now_s: float, k: int) -> None:
        """Request k processors: fewer at once, more after ``startup_s``.

        >>> course = _course(BatchLaw(0.1, 0.01, 100.0, 0.0, 9.0), Load((1.0,), 10.0), 4, 5.0)
        >>> for at_s, k in ((0.0, 8), (1.0, 6)):
        ...     course.ask(at_s, k)
        >>> course.k, course.coming
        (4, [(5.0, 6)])
        """
        asked = self.coming[-1][1] if self.coming else self.k
        if k <= self.k:
            self.coming, self.k = [], k
        elif k < asked:  # fewer than were asked for, more than run: the rest of them still come
            ready_s = next(at_s for at_s, count in self.coming if count >= k)
            self.coming = [*((at_s, count) for at_s, count in self.coming if count < k), (ready_s, k)]
        elif k > asked:
            self.coming.append((now_s + self.startup_s, k))

    def until(self, until_s: float) -> list[Batch]:
        """Run all batches that begin before ``until_s`` and return them."""
        done = []
        while (begins_s := self._begins_s()) < until_s:
            while self.coming and self.coming[0][0] <= begins_s:
                self.k = self.coming.pop(0)[1]
            first, end = self.taken, self.rows_until(begins_s)
            work_s = (end - first) / self.law.service_per_s
            took_s = self.law.overhead_s + self.law.per_task_s * self.k + work_s / self.k
            done.append(Batch(end - first, self.k, took_s, work_s))
            marks = np.interp(first + (end - first) * (np.arange(_PARTS) + 0.5) / _PARTS, self.total, self.times)
            ends_s = begins_s + took_s
            self.ages += [(ends_s, ends_s - float(at), (end - first) / _PARTS) for at in marks]
            self.taken = end
            self.free_s = max(ends_s, begins_s + self.load.trigger_s)
        return done

    def _begins_s(self) -> float:
        """When the next batch has rows and may begin; infinite after the last row."""
        if self.taken >= self.total[-1] - 1e-9:
            return float("inf")
        if self.rows_until(self.free_s) > self.taken + 1.0:
            return self.free_s
        return max(self.free_s, float(np.interp(min(self.taken + 1.0, self.total[-1]), self.total, self.times)))


def walk(
    settings: Settings, law: BatchLaw, load: Load, interval_s: float, startup_s: float, begin_with: int = 1
) -> Walked:
    """Simulate one policy over the whole load."""
    course = _course(law, load, begin_with, startup_s)
    state, asked, moves, slots = start(settings), begin_with, 0, [(0.0, begin_with)]
    reasons: tuple[str, ...] = ()
    now_s, seen = 0.0, 0
    while now_s < load.seconds:
        before_s, now_s = now_s, now_s + interval_s
        batches = course.until(now_s)
        fresh, seen = course.ages[seen:], len(course.ages)
        observation = _observation(course, batches, fresh, before_s, now_s)
        state, decision = tick(state, observation, now_s)
        if decision.moves:
            asked, moves, reasons = decision.running[OPERATOR], moves + 1, decision.reasons
            slots.append((now_s, asked))
            course.ask(now_s, asked)
    course.until(math.inf)  # rows that wait at the end are late too
    return _walked(course, settings.goal, load, slots, moves, reasons)


def fixed(law: BatchLaw, load: Load, k: int, goal: Goal) -> Walked:
    """Simulate a fixed size over the whole load."""
    course = _course(law, load, k, 0.0)
    course.until(math.inf)
    return _walked(course, goal, load, [(0.0, k)], 0, ())


def fewest(law: BatchLaw, load: Load, goal: Goal, most: int, enough: Callable[[float], bool]) -> int | None:
    """The smallest fixed size that keeps the promise often ``enough``, by bisection; ``None`` if ``most`` does not."""
    low, high = 1, most
    if not enough(fixed(law, load, most, goal).kept or 0.0):
        return None
    while low < high:
        middle = (low + high) // 2
        if enough(fixed(law, load, middle, goal).kept or 0.0):
            high = middle
        else:
            low = middle + 1
    return low


def _course(law: BatchLaw, load: Load, k: int, startup_s: float) -> _Course:
    times = np.arange(len(load.per_s) + 1, dtype=np.float64)
    total = np.concatenate([[0.0], np.cumsum(np.array(load.per_s) * load.step_s)])
    # strictly increasing, so that it can be inverted
    return _Course(law, load, times * load.step_s, total + times * 1e-9, k, startup_s)


def _observation(
    course: _Course, batches: list[Batch], fresh: list[tuple[float, float, float]], before_s: float, now_s: float
) -> Observation:
    arrived = course.rows_until(now_s) - course.rows_until(before_s)
    rate = arrived / (now_s - before_s)
    rows = sum(batch.rows for batch in batches)
    busy_s = sum(batch.duration_s for batch in batches)
    waiting = course.rows_until(now_s) - course.taken
    operator = OperatorObservation(
        arrivals_per_s=rate,
        service_per_s=rows / sum(b.duration_s * b.processors for b in batches) if rows else None,
        utilisation=min(busy_s / (now_s - before_s), 1.0),
        queue_rows=waiting,
        batches=tuple(batches),
    )
    ages = [(age, rows) for _, age, rows in fresh]
    weight = sum(rows for _, rows in ages)
    sojourn = None
    if weight > 0:
        mean_s = sum(age * rows for age, rows in ages) / weight
        sojourn = Sojourn(mean_s, quantile_s(ages, 0.5), quantile_s(ages, 0.95), quantile_s(ages, 0.99))
    return Observation(
        now_s,
        rate,
        {OPERATOR: course.k},
        {OPERATOR: operator},
        sojourn=sojourn,
        throughput_per_s=rows / (now_s - before_s),
        backlog_rows=waiting,
        rescaling=bool(course.coming),
    )


def _walked(
    course: _Course, goal: Goal, load: Load, slots: list[tuple[float, int]], moves: int, reasons: tuple[str, ...]
) -> Walked:
    ends = [*(at for at, _ in slots[1:]), load.seconds]
    used = sum(n * max(end - at, 0.0) for (at, n), end in zip(slots, ends, strict=True))
    ages = [(age, rows) for _, age, rows in course.ages]
    return Walked(
        slot_seconds=used,
        kept=kept_share(course.ages, goal),
        moves=moves,
        most=max(n for _, n in slots),
        slots=tuple(slots),
        p95_s=quantile_s(ages, 0.95),
        reasons=reasons,
    )
