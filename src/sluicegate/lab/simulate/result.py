"""The results of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """One operator over the measured time.

    ``mean_s`` is a row's mean time at the operator, from entering its queue until it is served and, under
    back-pressure, has left (``ci95_s``: half width of its interval). ``utilisation`` is the share of its processors'
    time spent on rows; ``queue`` the mean number of waiting rows; ``backpressure`` the share of time in which it
    blocked a sender; ``blocked`` the share of its processors' time in which they were blocked themselves. ``batch_s``
    is the mean duration of its micro-batches, if it runs in batches.
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

    ``mean_s`` is DRS Eq 4: per input, the sum of the sojourns of all its descendant rows at all operators (including
    time held outside by back-pressure); ``ci95_s`` is the half width of its 95% confidence interval, so the
    interval is ``mean_s`` plus or minus ``ci95_s``. ``completion_mean_s``, ``p50_s``, ``p95_s``, ``p99_s`` are of the
    time from an input's birth until the last of its rows is done. On chains, and wherever a row takes exactly one
    path, both means are the same time from entry to exit.

    In an unstable steady run (``stable`` is false) these figures are ``None``; ``growth_per_s`` is how fast the backlog
    grows, and ``reasons`` says why. ``simulated_s`` is shorter than requested only if the backlog exceeded the limit.
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
