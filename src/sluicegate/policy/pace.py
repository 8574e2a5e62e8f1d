"""Chooses the interval between micro-batch starts for given processors.

Under the micro-batch law a batch every T > S gives a sojourn of B + m + w (1/2 + rho) T - t_commit, which rises with T,
while the overhead of batches, (o + c k)/T, falls. So batches should start as rarely as the latency goal allows: all
operators stretch their S, the length of back-to-back batches that a row sees, by one common factor, the largest that
meets the goal.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import brentq

from sluicegate.model.microbatch import paced_share
from sluicegate.model.stations import Counts, Floats, Stations

_MOST_STRETCH = 20.0
"""Cap on the stretch of S: changes of processors, placement and key groups take effect at the next batch. Half: loose
goals pay for more batches. Double: a change waits twice as long."""


def paces(stations: Stations, processors: Counts, mean_goal_s: float | None) -> dict[str, float]:
    """Seconds between batch starts, for the operators that run in batches; 0 is back to back.

    >>> from sluicegate.domain import BatchCosts, Edge, Operator, Topology
    >>> one = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    >>> stations = Stations.of(one, np.array([800.0]), 800.0)
    >>> {name: round(pace, 2) for name, pace in paces(stations, np.array([4]), 2.0).items()}
    {'a': 1.94}
    """
    batched = stations.laws.overhead_s > 0
    names = [name for name, runs in zip(stations.names, batched.tolist(), strict=True) if runs]
    if not names:
        return {}
    if mean_goal_s is None or (stations.offered[batched] >= processors[batched]).any():
        return dict.fromkeys(names, 0.0)
    seen = np.where(batched, stations.moments(processors).pause_s, 0.0)

    def late_s(factor: float) -> float:
        return _paced_mean_s(stations, processors, seen * factor) - mean_goal_s

    if not late_s(1.0) < 0:
        return dict.fromkeys(names, 0.0)
    factor = _MOST_STRETCH if late_s(_MOST_STRETCH) <= 0 else float(brentq(late_s, 1.0, _MOST_STRETCH, rtol=1e-12))
    return dict(zip(names, (seen[batched] * factor).tolist(), strict=True))


def paced_mean_s(stations: Stations, processors: Counts, pace_s: Mapping[str, float]) -> float:
    """E[T] (Eq 4) with batches started every ``pace_s``; back to back if it is not given or batches take longer."""
    return _paced_mean_s(stations, processors, np.array([pace_s.get(name, 0.0) for name in stations.names]))


def _paced_mean_s(stations: Stations, processors: Counts, every_s: Floats) -> float:
    laws, moments = stations.laws, stations.moments(processors)
    waited = np.array([paced_share(rows) for rows in (laws.arrivals_per_s * every_s).tolist()])
    least = laws.overhead_s + laws.per_task_s * processors + 1.0 / (laws.service_per_s * processors) - laws.commit_s
    paced = least + waited * (0.5 + stations.offered / processors) * every_s
    waiting = (laws.overhead_s > 0) & (every_s > moments.pause_s)
    mean = np.where(waiting, np.maximum(paced, moments.mean_s), moments.mean_s)
    reached = laws.arrivals_per_s > 0
    return float(np.sum((stations.weights * mean)[reached]))
