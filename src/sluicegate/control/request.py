"""Builds the governor's request from a situation and the processors that a policy wants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from sluicegate.control.rules import Request
from sluicegate.domain import Situation
from sluicegate.policy.demand import stations_of


def request_for(situation: Situation, want: Mapping[str, int]) -> Request:
    """The request: running and wanted processors with the measurements that the governor's rules need."""
    operators, arrivals = situation.topology.operators, situation.operator_arrivals_per_s
    have = {o.name: situation.running[o.name] for o in operators}
    then = {name: max(want.get(name, count), 1) for name, count in have.items()}
    offered = {o.name: arrivals[o.name] / o.service_per_s for o in operators}
    busiest = max(offered[name] / count for name, count in then.items())
    return Request(
        now_s=situation.now_s,
        observed_at_s=situation.observation.at_s,
        arrivals_per_s=situation.arrivals_per_s,
        rescaling=situation.observation.rescaling,
        starting=situation.observation.starting,
        unmeasured=situation.observation.unmeasured,
        asked=situation.observation.asked,
        have=have,
        want=want,
        utilisation={name: offered[name] / count for name, count in have.items()},
        late=lateness(situation),
        sojourns_s=partial(_sojourns, situation, have, then),
        capacity_want_per_s=situation.arrivals_per_s / busiest if busiest > 0 else math.inf,
    )


def _sojourns(situation: Situation, have: Mapping[str, int], then: Mapping[str, int]) -> tuple[float, float]:
    stations = stations_of(situation)
    before, after = (np.array(list(k.values()), dtype=np.int64) for k in (have, then))
    return stations.total_mean_s(before), stations.total_mean_s(after)


def lateness(situation: Situation) -> float | None:
    """The largest ratio of a measured latency to its bound; above 1 a latency goal is missed."""
    sojourn = situation.observation.sojourn
    if sojourn is None:
        return None
    measured = {"mean": sojourn.mean_s, "p50": sojourn.p50_s, "p95": sojourn.p95_s, "p99": sojourn.p99_s}
    ratios = [
        value / bound for what, bound in situation.goal.latency_bounds.items() if (value := measured[what]) is not None
    ]
    return max(ratios, default=None)
