"""Inputs of the peers from a situation: the measurement where there is one, else the model's value."""

from __future__ import annotations

import math

from sluicegate.domain import Situation, Topology
from sluicegate.model.traffic import visits

# Cap on counts: Limits would cut larger ones anyway, and float arithmetic up to here is exact.
MOST = 10**9
# Relative tolerance when a quotient of floats is rounded up.
_ROUNDING = 1e-9


def whole(amount: float) -> int:
    """``ceil`` with a tolerance for rounding: the fewest processors for ``amount`` of one processor's work.

    >>> 0.3 / 0.1 > 2, whole(0.3 / 0.1), whole(0.1 * 3 / 0.1), whole(3.01), whole(-1.0), whole(math.inf)
    (True, 3, 3, 4, 0, 1000000000)
    """
    if amount >= MOST:
        return MOST
    return max(0, math.ceil(amount - _ROUNDING * max(1.0, amount)))


def fewest_above(demand_per_s: float, service_per_s: float) -> int:
    """The least k with ``k mu > demand``, never 0.

    >>> fewest_above(19.9, 10.0), fewest_above(20.0, 10.0), fewest_above(0.0, 10.0)
    (2, 3, 1)
    """
    if demand_per_s >= service_per_s * MOST:
        return MOST
    k = max(1, math.floor(demand_per_s / service_per_s))
    return k if k * service_per_s > demand_per_s else k + 1


def fewest_for(rate_per_s: float, topology: Topology) -> dict[str, int]:
    """``fewest_above`` for every operator when the pipeline's rate is ``rate_per_s``, by the topology's rates."""
    per_operator = zip(topology.operators, visits(topology).tolist(), strict=True)
    return {o.name: fewest_above(rate_per_s * v, o.service_per_s) for o, v in per_operator}


def processors_of(situation: Situation, name: str) -> int:
    """The running processors of an operator; the least if none were observed."""
    return max(1, situation.running.get(name, situation.limits.least))


def running_of(situation: Situation) -> dict[str, int]:
    """``processors_of`` for every operator."""
    return {name: processors_of(situation, name) for name in situation.topology.names}


def service_of(situation: Situation, name: str) -> float:
    """The true rate of one processor: rows done per second of useful time.

    Of an operator in batches that of the fitted law: the time of a batch includes planning and commit.
    """
    operator, measured = situation.topology.operator(name), situation.observation.of(name).service_per_s
    if operator.batch is None and measured is not None and measured > 0:
        return measured
    return operator.service_per_s


def propagated_of(situation: Situation) -> dict[str, float]:
    """The arrival rate of each operator without backpressure: the pipeline's rate by the traffic equations."""
    reached = max(0.0, situation.arrivals_per_s) * visits(situation.topology)
    return dict(zip(situation.topology.names, reached.tolist(), strict=True))


def arrivals_of(situation: Situation) -> dict[str, float]:
    """The arrival rate of each operator: the situation's, else by the traffic equations."""
    return {name: _arrivals_at(situation, name) for name in situation.topology.names}


def _arrivals_at(situation: Situation, name: str) -> float:
    given = situation.operator_arrivals_per_s.get(name)
    if given is None:
        given = situation.arrivals_per_s * float(visits(situation.topology)[situation.topology.index[name]])
    return max(0.0, given)


def utilisation_of(situation: Situation, name: str) -> float:
    """The busy share of the operator's processors; min(1, lambda/(k mu)) if not measured.

    Of an operator in batches always the latter: its batches follow each other without a gap at any load, so the share
    of time in batches says nothing of how busy the tasks are. While it cannot keep up, what it carried counts as well.
    """
    seen, in_batches = situation.observation.of(name), situation.topology.operator(name).batch is not None
    if seen.utilisation is not None and not in_batches:
        return seen.utilisation
    capacity_per_s = processors_of(situation, name) * service_of(situation, name)
    carried_per_s = seen.saturated_per_s or 0.0
    return min(1.0, max(_arrivals_at(situation, name), carried_per_s) / capacity_per_s)


def busy_processors(situation: Situation) -> float:
    """The number of busy processors over all operators."""
    return sum(processors_of(situation, name) * utilisation_of(situation, name) for name in situation.topology.names)


def waiting_work_s(situation: Situation) -> float:
    """Queued work in seconds of one processor, over all operators (0 where no queue was measured)."""
    return sum(
        max(0.0, situation.observation.of(name).queue_rows or 0.0) / service_of(situation, name)
        for name in situation.topology.names
    )
