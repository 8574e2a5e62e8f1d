"""What a simulation reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """One operator over the measured time.

    ``mean_s`` is a row's mean time at the operator, from entering its queue until it is served and, under
    back-pressure, has left (``ci95_s``: half width of its interval). ``utilisation`` is the share of its processors'
    time spent on rows; ``queue`` the mean number of rows that wait; ``backpressure`` the share of time it held a sender
    back; ``blocked`` the share of its processors' time in which they were held back themselves. ``batch_s`` is the
    mean length of its micro-batches, if it runs in such.
    """

    processors: int
    mean_s: float | None
    ci95_s: float | None
    utilisation: float
    queue: float
    arrivals_per_s: float
    backpressure: float = 0.0
    blocked: float = 0.0
    batch_s: float | None = None


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """A run, measured after its warm-up.

    ``mean_s`` is DRS Eq 4: the sojourns of all rows that stem from an input, at all operators, added up, per input
    (time held outside by back-pressure included); ``ci95_s`` is the half width of its 95% confidence interval, so the
    interval is ``mean_s`` plus or minus ``ci95_s``. ``completion_mean_s``, ``p50_s``, ``p95_s``, ``p99_s`` are of the
    time from an input's birth until the last of its rows is done. On chains, and wherever a row takes exactly one
    way, both means are the same time from entry to exit.

    An unstable run (``stable`` is false) has no such figures: they are ``None``, ``growth_per_s`` is how fast rows
    pile up, and ``reasons`` why. ``simulated_s`` is less than what was asked for only if rows piled up beyond memory.
    """

    mean_s: float | None
    ci95_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    completion_mean_s: float | None
    operators: Mapping[str, OperatorResult]
    arrivals_per_s: float
    completed: int
    events: int
    simulated_s: float
    warm_up_s: float
    stable: bool
    growth_per_s: float
    reasons: tuple[str, ...] = ()
