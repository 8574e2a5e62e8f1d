"""Converts between situations and the load arrays of the models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sluicegate.domain import Goal, Limits, Observation, Situation, Topology
from sluicegate.domain.topology import require_number
from sluicegate.model.stations import Stations
from sluicegate.model.traffic import outside_rate, solve, visits


def stations_of(situation: Situation) -> Stations:
    """The situation's operators as stations under its arrivals."""
    topology = situation.topology
    arrivals = np.array([situation.operator_arrivals_per_s[name] for name in topology.names], dtype=np.float64)
    return Stations.of(topology, arrivals, outside_rate(topology, situation.arrivals_per_s))


def situation_at(
    topology: Topology,
    rate_per_s: float,
    goal: Goal | None = None,
    limits: Limits | None = None,
    source_rates: Mapping[str, float] | None = None,
) -> Situation:
    """The situation of a pipeline that does not run yet; arrivals are computed by the traffic equations.

    >>> from sluicegate.domain import Edge, Operator
    >>> t = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
    >>> situation_at(t, 10.0).operator_arrivals_per_s
    {'a': 10.0, 'b': 5.0}
    """
    require_number(rate_per_s, "rate")
    arrivals = visits(topology) * rate_per_s if source_rates is None else solve(topology, source_rates)
    return Situation(
        now_s=0.0,
        topology=topology,
        observation=Observation(0.0, rate_per_s, running={}),
        arrivals_per_s=rate_per_s,
        operator_arrivals_per_s=dict(zip(topology.names, map(float, arrivals), strict=True)),
        goal=goal or Goal(),
        limits=limits or Limits(),
    )
