"""Defines and validates a simulation: a pipeline, its load, its processors, and the behaviour of both.

Routing within an operator:

    shared     one queue for all its servers (M/M/k): the default
    shuffle    a queue per server, rows in turn
    weighted   a queue per server, rows at random by shares (even shares if none are given)
    spread     as weighted, but in a low-discrepancy sequence instead of at random
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal, TypeAlias

import numpy as np

from sluicegate.domain import BatchCosts, Operator, Placement, Topology
from sluicegate.domain.topology import require, require_number
from sluicegate.lab.simulate.arrivals import Arrivals, poisson, renewal
from sluicegate.lab.simulate.distributions import Distribution, of_scv
from sluicegate.lab.simulate.microbatch import SPARK_BATCH
from sluicegate.model.traffic import visits

Mode: TypeAlias = Literal["queue", "micro-batch", "declared"]
"""Servers everywhere; batches everywhere; or each operator as it declares (batches where it has batch costs)."""

Load: TypeAlias = float | Arrivals | Mapping[str, Arrivals]
"""The pipeline's rate or arrivals (each source gets its share), or the arrivals of every source."""


class Discipline(Enum):
    SHARED = "shared"
    SHUFFLE = "shuffle"
    WEIGHTED = "weighted"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class RowRouting:
    """How rows of an operator are assigned to its servers. Use the functions below."""

    discipline: Discipline = Discipline.SHARED
    given: tuple[float, ...] = ()

    def shares(self, servers: int) -> tuple[float, ...]:
        """The share of rows of each server; even if the given shares are for another number of servers."""
        weights = np.array(self.given if len(self.given) == servers else [1.0] * servers)
        return tuple(float(share) for share in weights / weights.sum())


def shuffle() -> RowRouting:
    return RowRouting(Discipline.SHUFFLE)


def weighted(*shares: float) -> RowRouting:
    """Random routing by shares, which need not add up to 1.

    >>> weighted(3.0, 1.0).shares(2), weighted().shares(2)
    ((0.75, 0.25), (0.5, 0.5))
    """
    for share in shares:
        require_number(share, "share of rows")
    require(not shares or sum(shares) > 0, "shares are all 0: give at least one above 0")
    return RowRouting(Discipline.WEIGHTED, shares)


def spread(*shares: float) -> RowRouting:
    """Routing by shares as evenly as possible, by a low-discrepancy sequence instead of at random."""
    return replace(weighted(*shares), discipline=Discipline.SPREAD)


@dataclass(frozen=True, eq=False, slots=True)
class Behaviour:
    """Settings that a topology file does not contain. Operators that are not named use the defaults.

    ``service``: distribution of service times instead of the default one with the operator's ``service_scv``.
    ``capacity``: rows that may wait at each queue of an operator; beyond it its senders are blocked.
    ``placement``: threads on slots, which slow each other by their profiles; with ``pooled_cpu`` threads of a machine
    share all of its CPU, else threads of a slot share its own. ``pace_s``: trigger interval of batches.
    ``batch_noise``: the factor on a batch's duration; with ``steady_work`` it applies only to the overhead of a batch,
    not to its rows.
    """

    service: Mapping[str, Distribution] = field(default_factory=dict)
    routing: Mapping[str, RowRouting] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    placement: Placement | None = None
    pace_s: Mapping[str, float] = field(default_factory=dict)
    batch_noise: Mapping[str, Distribution] = field(default_factory=dict)
    steady_work: bool = False
    pooled_cpu: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Scenario:
    """A validated simulation setup."""

    topology: Topology
    arrivals: Mapping[str, Arrivals]
    allocation: Mapping[str, int]
    batches: Mapping[str, BatchCosts]
    behaviour: Behaviour

    def routing(self, name: str) -> RowRouting:
        return self.behaviour.routing.get(name, RowRouting())

    def service(self, operator: Operator) -> Distribution:
        return self.behaviour.service.get(operator.name) or of_scv(operator.service_scv)


def scenario(
    topology: Topology,
    load: Load,
    allocation: Mapping[str, int],
    mode: Mode = "queue",
    behaviour: Behaviour | None = None,
) -> Scenario:
    """Validate a simulation setup and fill in defaults."""
    behaviour = behaviour or Behaviour()
    batches = {o.name: o.batch or SPARK_BATCH for o in topology.operators if _batched(o, mode)}
    _check_names(topology, allocation, behaviour)
    visits(topology)  # raises for loops in which rows multiply without bound
    for name in topology.names:
        require(name in allocation, f"no processors for {name!r}: give its number, such as {name}=2")
        require(allocation[name] >= 1, f"{allocation[name]} processors for {name!r}: give at least 1")
    for name, bound in behaviour.capacity.items():
        require(bound >= 0, f"capacity of {name!r} is {bound}: give 0 or more rows")
    for name, pace in behaviour.pace_s.items():
        require_number(pace, f"pace of {name!r}")
    require(
        not (batches and behaviour.capacity),
        "bounded queues and micro-batches: edges of batches are logs without a bound; leave the capacity out",
    )
    _check_placement(topology, allocation, behaviour.placement)
    return Scenario(topology, _by_source(topology, load), dict(allocation), batches, behaviour)


def _batched(operator: Operator, mode: Mode) -> bool:
    return mode == "micro-batch" or (mode == "declared" and operator.batch is not None)


def _check_names(topology: Topology, allocation: Mapping[str, int], behaviour: Behaviour) -> None:
    by_operator = (behaviour.service, behaviour.routing, behaviour.capacity, behaviour.pace_s, behaviour.batch_noise)
    named = (allocation, *by_operator)
    for name in {name for mapping in named for name in mapping}:
        require(name in topology.index, f"unknown operator {name!r}: the topology has {', '.join(topology.names[:8])}")


def _check_placement(topology: Topology, allocation: Mapping[str, int], placement: Placement | None) -> None:
    for name in topology.names if placement else ():
        threads = sum(placement.threads(name).values()) if placement else 0
        require(
            threads == allocation[name],
            f"{name!r} has {allocation[name]} processors but {threads} placed threads: make them equal",
        )


def _by_source(topology: Topology, load: Load) -> dict[str, Arrivals]:
    if isinstance(load, Mapping):
        missing = [source for source in topology.sources if source not in load]
        require(not missing, f"no arrivals for {', '.join(map(repr, missing))}: give them for every source")
        return {source: load[source] for source in topology.sources}
    if isinstance(load, Arrivals):
        return {source: load.scaled(topology.share_of(source)) for source in topology.sources}
    require_number(load, "rate")
    return {source: _usual(topology, source, load * topology.share_of(source)) for source in topology.sources}


def _usual(topology: Topology, source: str, rate_per_s: float) -> Arrivals:
    """Poisson arrivals; renewal with ``arrival_scv`` if the source feeds one operator alone, with selectivity 1."""
    targets = [edge for edge in topology.edges if edge.origin == source]
    if len(targets) == 1 and targets[0].selectivity == 1:
        name = targets[0].target
        feeds = [edge for edge in topology.edges if edge.target == name]
        scv = topology.operator(name).arrival_scv
        if len(feeds) == 1 and scv != 1:
            return renewal(rate_per_s, of_scv(scv))
    return poisson(rate_per_s)
