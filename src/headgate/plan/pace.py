"""How often micro-batches should start, given how many processors they have.

Under the micro-batch law a batch every T > b* gives a sojourn of T/2 + b(lambda T) - t_commit, which rises with T,
while the work that batches cost beside their rows, (o + c k)/T, falls. So where a promise leaves room, batches should
start as rarely as the promise allows: all operators stretch their b* by one common factor, the largest that keeps it.
"""

from __future__ import annotations

import numpy as np

from headgate.model.microbatch import settled_batch_s
from headgate.model.stations import Counts, Floats, Stations

_MOST_STRETCH = 20.0


def paces(stations: Stations, processors: Counts, mean_goal_s: float | None) -> dict[str, float]:
    """Seconds between the starts of batches, for the operators that run in batches; 0 is back to back.

    >>> from headgate.domain import BatchCosts, Edge, Operator, Topology
    >>> one = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    >>> stations = Stations.of(one, np.array([800.0]), 800.0)
    >>> {name: round(pace, 2) for name, pace in paces(stations, np.array([4]), 2.0).items()}
    {'a': 1.94}
    """
    laws = stations.laws
    batched = np.flatnonzero(laws.overhead_s > 0)
    if not len(batched):
        return {}
    settled = np.array(
        [
            settled_batch_s(
                laws.arrivals_per_s[i],
                laws.service_per_s[i],
                int(processors[i]),
                laws.overhead_s[i],
                laws.per_task_s[i],
            )
            for i in batched
        ]
    )
    names = [stations.names[i] for i in batched]
    if mean_goal_s is None or not np.isfinite(settled).all():
        return dict.fromkeys(names, 0.0)
    factor = _largest_stretch(stations, processors, batched, settled, mean_goal_s)
    return {name: float(s * factor) if factor > 1 else 0.0 for name, s in zip(names, settled, strict=True)}


def _largest_stretch(stations: Stations, k: Counts, batched: Counts, settled: Floats, goal_s: float) -> float:
    """The sojourn is linear in the stretch f: E[T](f) = fixed + f x slope, so the largest f is in closed form."""
    laws, weights = stations.laws, stations.weights
    queueing = stations.weights * stations.mean_s(k)
    queueing[batched] = 0.0
    slope = fixed = 0.0
    for position, i in enumerate(batched):
        rho = laws.arrivals_per_s[i] / (k[i] * laws.service_per_s[i])
        slope += weights[i] * settled[position] * (0.5 + rho)
        fixed += weights[i] * (laws.overhead_s[i] + laws.per_task_s[i] * k[i] - laws.commit_s[i])
    room = goal_s - float(queueing.sum()) - fixed
    return float(min(max(room / slope if slope > 0 else 1.0, 1.0), _MOST_STRETCH))
