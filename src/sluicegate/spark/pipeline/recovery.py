"""Decides when a failed operator is retried and when it stops, for each operator separately.

The first retry is immediate, pauses then double from 0.5 s to 30 s. Failures that a retry may cure (a service, the
machine) are retried forever, or up to the user's limit; an error of the code that repeats at the same batch stops the
operator. Every ``now_s`` here is of the monotonic clock, since the wall clock may be set while an operator fails; only
the file is dated by the wall clock, for its readers.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sluicegate.errors import SluicegateError
from sluicegate.runlog.failures import Failing, write_failures
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.pipeline.failures import Failure, Fault, OperatorFailed

_FIRST_PAUSE_S = 0.5
_MOST_PAUSE_S = 30.0
LOG = logging.getLogger("sluicegate.pipeline")


def pause_s(tries: int) -> float:
    """Seconds to wait before the next try, after ``tries`` failed ones.

    >>> [pause_s(tries) for tries in (1, 2, 3, 7, 8, 500)]
    [0.0, 0.5, 1.0, 16.0, 30.0, 30.0]
    """
    return min(_FIRST_PAUSE_S * 2.0 ** min(tries - 2, 10), _MOST_PAUSE_S) if tries > 1 else 0.0


def after(before: Failing | None, failed: Failing, failure: Failure, limit_s: float | None, now_s: float) -> Failing:
    """The failure record after another failure; ``failed`` is the record if it were the first."""
    if before is not None and before.batch == failed.batch:
        alike = before.alike + 1 if failure.like(before.why) else 1
        failed = replace(failed, since_s=before.since_s, tries=before.tries + 1, alike=alike)
    most = failure.fault.most_tries
    hopeless = most is not None and failed.alike >= most
    too_long = limit_s is not None and now_s - failed.since_s >= limit_s
    return replace(failed, next_try_s=None if hopeless or too_long else now_s + pause_s(failed.tries))


class Recovery:
    """Failure state of all operators of a pipeline. ``limits_s``: how long each is retried; ``None``: forever."""

    def __init__(self, path: Path, limits_s: Mapping[str, float | None]) -> None:
        self._path, self._limits_s = path, limits_s
        self.failing: dict[str, Failing] = {}
        self._places: dict[str, str] = {}
        self.past: list[str] = []
        """Failures that are over, a line each."""
        self._write()

    def failed(self, operator: str, batch: int, failure: Failure, now_s: float, place: str = "") -> Failing:
        self._places[operator] = place
        first = Failing(operator, batch, now_s, 1, 1, failure.why, failure.fault.value, None)
        before = self.failing.get(operator)
        if before is not None and before.batch != batch:  # the earlier batch succeeded between two polls
            self.past.append(_episode(before, now_s, "goes on"))
        known = after(before, first, failure, self._limits_s.get(operator), now_s)
        self.failing[operator] = known
        if known.stopped:
            self.past.append(_episode(known, now_s, "stopped"))
            LOG.warning("sluicegate: %s", self.problem_of(known))
        elif known.tries == 1:
            LOG.warning("sluicegate: %s", known.line(now_s))
        self._write()
        return known

    def is_due(self, operator: str, now_s: float) -> bool:
        known = self.failing.get(operator)
        if known is None:  # it ended without a failure of its own, when a change of key groups was given up
            return True
        return known.next_try_s is not None and now_s >= known.next_try_s

    def succeeded(self, operator: str, now_s: float) -> None:
        over = self.failing.pop(operator)
        self.past.append(_episode(over, now_s, "goes on"))
        if over.tries > 1:
            LOG.warning("sluicegate: %s", self.past[-1])
        self._write()

    def lines(self, now_s: float) -> list[str]:
        """What fails now, a line each."""
        return [one.line(now_s) for one in list(self.failing.values())]

    def close(self, now_s: float) -> None:
        """Add the current failures to ``past``; the file keeps them until the next start."""
        self.past += [_episode(one, now_s, "not over") for one in self.failing.values() if not one.stopped]

    @property
    def stopped(self) -> dict[str, SluicegateError]:
        return {name: self.problem_of(one) for name, one in dict(self.failing).items() if one.stopped}

    def problem_of(self, one: Failing) -> SluicegateError:
        if one.fault == Fault.SPOILED:
            return EdgeSpoiled(one.why)
        return OperatorFailed(one.operator, one.batch, one.why, Fault(one.fault), self._places.get(one.operator, ""))

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a full disk may be the failure itself
            write_failures(self._path, [_dated(one) for one in self.failing.values()])


def _dated(one: Failing) -> Failing:
    apart_s = time.time() - time.monotonic()
    next_try_s = None if one.next_try_s is None else one.next_try_s + apart_s
    return replace(one, since_s=one.since_s + apart_s, next_try_s=next_try_s)


def _episode(one: Failing, now_s: float, end: str) -> str:
    times = "once" if one.tries == 1 else f"{one.tries} times"
    return f"{one.operator}: batch {one.batch} failed ({one.why}) {times} in {now_s - one.since_s:.0f} s, {end}"
