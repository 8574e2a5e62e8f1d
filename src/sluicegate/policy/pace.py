"""Chooses the interval between micro-batch starts for given processors.

Under the micro-batch law a batch every T > b* gives a sojourn of T/2 + b(lambda T) - t_commit, which rises with T,
while the overhead of batches, (o + c k)/T, falls. So batches should start as rarely as the latency goal allows: all
operators stretch their b* by one common factor, the largest that meets the goal.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sluicegate.model.stations import Counts, Stations

_MOST_STRETCH = 20.0
"""Cap on the stretch of b*: changes of processors, placement and key groups take effect at the next batch. Half: loose
goals pay for more batches. Double: a change waits twice as long."""


def paces(stations: Stations, processors: Counts, mean_goal_s: float | None) -> dict[str, float]:
    """Seconds between batch starts, for the operators that run in batches; 0 is back to back.

    >>> from sluicegate.domain import BatchCosts, Edge, Operator, Topology
    >>> one = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    >>> stations = Stations.of(one, np.array([800.0]), 800.0)
    >>> {name: round(pace, 2) for name, pace in paces(stations, np.array([4]), 2.0).items()}
    {'a': 1.94}
    """
    laws, batched = stations.laws, stations.laws.overhead_s > 0
    names = [name for name, runs in zip(stations.names, batched.tolist(), strict=True) if runs]
    if not names:
        return {}
    busy = stations.offered / processors
    own = laws.overhead_s + laws.per_task_s * processors
    if mean_goal_s is None or (busy[batched] >= 1).any():
        return dict.fromkeys(names, 0.0)
    settled = np.where(batched, own / np.where(batched, 1 - busy, 1.0), 0.0)
    # E[T] is linear in the stretch f of every b*: fixed + f x slope, so the largest f has a closed form
    slope = float(stations.weights @ (settled * (0.5 + busy)))
    queueing = np.where(batched, 0.0, stations.mean_s(processors))
    fixed = float(stations.weights @ np.where(batched, own - laws.commit_s, queueing))
    factor = min((mean_goal_s - fixed) / slope if slope > 0 else 1.0, _MOST_STRETCH)
    return dict(zip(names, (settled[batched] * factor if factor > 1 else np.zeros(len(names))).tolist(), strict=True))


def paced_mean_s(stations: Stations, processors: Counts, pace_s: Mapping[str, float]) -> float:
    """E[T] (Eq 4) with batches started every ``pace_s``; back to back if it is not given or batches take longer."""
    laws = stations.laws
    every = np.array([pace_s.get(name, 0.0) for name in stations.names])
    own = laws.overhead_s + laws.per_task_s * processors
    mean, busy = stations.mean_s(processors), stations.offered / processors
    waiting = (laws.overhead_s > 0) & (every * (1 - busy) > own)
    paced = every / 2 + own + every * busy - laws.commit_s
    reached = laws.arrivals_per_s > 0
    return float(np.sum((stations.weights * np.where(waiting, paced, mean))[reached]))
