"""Learns from observations how many rows reach each operator, its service rate, variability and batch costs, and the
standard error of the service rate.

An operator in micro-batches is learned from its batches (``batch_fit``). One with a queue is learned from its measured
service rate; the standard error comes from the scatter of the measurements, with slow exponential forgetting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sluicegate.domain import BatchCosts, Edge, Observation, Operator, OperatorObservation, Topology, is_sink, is_source
from sluicegate.domain.topology import LARGEST, SLOWEST_PER_S
from sluicegate.model.batch_fit import BatchFits, BatchLaw
from sluicegate.model.node_law import NodeLaw
from sluicegate.model.stations import KEEPS_UP
from sluicegate.model.traffic import pipeline_rate, visits

Floats = NDArray[np.float64]

_FORGET = 0.95
_FORGET_VISITS = 0.9
# Edges are rescaled only when one is off by more than this share: each change recomputes the routing.
_EDGES_OFF = 0.02
# A figure that changed by less than this share keeps its old value, so that unchanged operators are not rebuilt.
_SAME = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """``topology`` with the learned figures in it, and the relative standard error of the service rates.

    The selectivities of its edges give the learned ``visits``, so that a policy which multiplies along the edges plans
    for the arrivals that were measured. ``lessons`` counts the measurements of each operator's visits.
    """

    topology: Topology
    fits: BatchFits
    scatter: Floats
    visits: Floats
    lessons: Floats
    nodes: NodeLaw
    usual_per_s: float = 0.0
    """The pipeline's rate in the measurements of visits, the older the less it weighs."""
    service_rsd: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def start(cls, topology: Topology) -> Learned:
        """The initial state: the topology's declared figures."""
        fits, scatter = BatchFits.start(topology.operators), np.zeros((len(topology.operators), 3))
        return cls(
            topology, fits, scatter, visits(topology), np.zeros(len(topology.operators)), NodeLaw.start(topology)
        )

    def after(self, raw: Observation, smoothed: Observation) -> Learned:
        """The state after one more observation: rates from the smoothed one, scatter and batches from the raw one."""
        measured = raw.all_of(self.topology.names)
        fits = self.fits.learn({n: seen.batches for n, seen in zip(self.topology.names, measured, strict=True)})
        laws = fits.laws() if fits is not self.fits else {}
        scatter = self.scatter.copy()
        fresh = [
            _usable(seen.service_per_s, math.nan) for seen in measured
        ]  # squares of others could overflow for ever
        errors = _scattered(scatter, np.array(fresh, dtype=np.float64), _FORGET)
        steady = smoothed.all_of(self.topology.names)
        operators = tuple(
            _taught(operator, seen, laws.get(operator.name))
            for operator, seen in zip(self.topology.operators, steady, strict=True)
        )
        same = all(a is b for a, b in zip(operators, self.topology.operators, strict=True))
        topology = self.topology if same else self.topology.with_operators(operators)
        reach, lessons, usual_per_s = self._visits(topology, smoothed)
        if reach is not self.visits:
            topology = with_visits(topology, reach)
        nodes = self.nodes.after(raw, topology)
        return Learned(topology, fits, scatter, reach, lessons, nodes, usual_per_s, self._errors(laws, errors))

    def _visits(self, topology: Topology, seen: Observation) -> tuple[Floats, Floats, float]:
        """Measured rows that reach each operator per row of the pipeline's rate, their number, and the usual rate.

        An operator's arrivals are used while all operators upstream of it keep up, whether or not it does itself;
        downstream of one that does not, too few rows arrive, so the known value stays. The declared value counts as one
        measurement, later ones weigh at least 1 - ``_FORGET_VISITS``, times the square of the load's share of the usual
        load: after it has ended, rows of its backlog still arrive downstream, and there are none to relate them to.
        """
        rate = pipeline_rate(topology, seen.arrivals_per_s or 0.0)
        if not rate:
            return self.visits, self.lessons, self.usual_per_s
        measured = _or_nan([o.arrivals_per_s for o in seen.all_of(topology.names)])
        carried = np.array([seen.running.get(o.name, 1) * o.service_per_s for o in topology.operators])
        behind = _behind(topology, self.visits >= KEEPS_UP * carried / rate)
        valid = ~behind & (measured > 0.0)
        if not valid.any():
            return self.visits, self.lessons, self.usual_per_s
        weight = min(rate / self.usual_per_s, 1.0) ** 2 if self.usual_per_s > 0 else 1.0
        counted = self.lessons + weight * valid
        gain = weight * np.maximum(1.0 / (counted + 1.0), 1.0 - _FORGET_VISITS)
        reach = np.where(valid, self.visits + gain * (measured / rate - self.visits), self.visits)
        usual_per_s = self.usual_per_s or rate
        return reach, counted, usual_per_s + (1.0 - _FORGET_VISITS) * (rate - usual_per_s)

    def _errors(self, laws: Mapping[str, BatchLaw], scattered: Floats) -> Mapping[str, float]:
        """Standard errors: from the batch law for operators in batches, else from the scatter of measurements."""
        out = dict(zip(self.topology.names, scattered.tolist(), strict=True))
        for operator in self.topology.operators:
            if operator.batch is not None:
                law = laws.get(operator.name)
                out[operator.name] = law.service_rsd if law else self.service_rsd.get(operator.name, 0.0)
        return out


def _behind(topology: Topology, saturated: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The operators downstream of a saturated operator; on a loop that includes the saturated operator itself."""
    behind = np.zeros(len(saturated), dtype=np.bool_)
    if not saturated.any():
        return behind
    follow: dict[int, list[int]] = {}
    for edge in topology.inner_edges:
        follow.setdefault(topology.index[edge.origin], []).append(topology.index[edge.target])
    frontier = np.flatnonzero(saturated).tolist()
    while frontier:
        fresh = [i for i in follow.get(frontier.pop(), ()) if not behind[i]]
        behind[fresh] = True
        frontier.extend(fresh)
    return behind


def with_visits(topology: Topology, reach: Floats) -> Topology:
    """Rescale selectivities so that ``reach`` rows arrive at each operator; unchanged if within ``_EDGES_OFF``.

    All edges into one operator are scaled by the same factor: v_i = f_i (external_i + sum_j v_j selectivity_ji).

    >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> [edge.selectivity for edge in with_visits(two, np.array([1.0, 10.0])).edges]
    [1.0, 10.0]
    """
    index, inflow, feeding = topology.index, np.zeros(len(reach)), np.zeros(len(reach))
    for edge in topology.edges:
        if not is_sink(edge.target):
            origin = topology.share_of(edge.origin) if is_source(edge.origin) else reach[index[edge.origin]]
            inflow[index[edge.target]] += origin * edge.selectivity
            feeding[index[edge.target]] += origin
    fed = inflow > 0
    factor = np.where(fed, reach / np.where(fed, inflow, 1.0), 1.0)
    if (np.abs(visits(topology) - reach) <= _EDGES_OFF * reach).all():
        return topology

    def scaled(edge: Edge) -> Edge:
        if is_sink(edge.target):
            return edge
        at = index[edge.target]
        if not fed[at]:  # declared as 0: in equal parts from all that could feed it
            return replace(edge, selectivity=float(reach[at] / feeding[at])) if feeding[at] > 0 else edge
        return replace(edge, selectivity=float(edge.selectivity * factor[at]))

    return replace(topology, edges=tuple(scaled(edge) for edge in topology.edges))


def _or_nan(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _taught(operator: Operator, seen: OperatorObservation, law: BatchLaw | None) -> Operator:
    if operator.batch is not None:
        return _batched(operator, operator.batch, law, seen)
    service = _usable(seen.service_per_s, operator.service_per_s)
    arrival_scv = _scv(seen.arrival_scv, operator.arrival_scv)
    service_scv = _scv(seen.service_scv, operator.service_scv)
    if (
        _close(service, operator.service_per_s)
        and _close(arrival_scv, operator.arrival_scv)
        and _close(service_scv, operator.service_scv)
    ):
        return operator
    return operator.with_figures(service, arrival_scv, service_scv, None)


def _batched(operator: Operator, costs: BatchCosts, law: BatchLaw | None, seen: OperatorObservation) -> Operator:
    """The operator with its fitted batch law, and variability for policies that model it as a queue (DRS by GI/G/k)."""
    service = operator.service_per_s if law is None else law.service_per_s
    overhead_s, per_task_s = (costs.overhead_s, costs.per_task_s) if law is None else (law.overhead_s, law.per_task_s)
    arrival_scv = _scv(seen.arrival_scv, operator.arrival_scv)
    service_scv = _scv(seen.service_scv, operator.service_scv)
    if (
        _close(service, operator.service_per_s)
        and _close(overhead_s, costs.overhead_s)
        and _close(per_task_s, costs.per_task_s)
        and _close(arrival_scv, operator.arrival_scv)
        and _close(service_scv, operator.service_scv)
    ):
        return operator
    learned = BatchCosts(overhead_s, per_task_s, costs.commit_s)
    return operator.with_figures(service, arrival_scv, service_scv, learned)


def _usable(measured: float | None, known: float) -> float:
    """The measured rate, or the known one if that is missing or out of range."""
    return measured if measured is not None and SLOWEST_PER_S <= measured <= LARGEST else known


def _scv(measured: float | None, known: float) -> float:
    return measured if measured is not None and 0 <= measured <= LARGEST else known


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= _SAME * max(abs(a), abs(b))


@njit(cache=True)
def _scattered(scatter: Floats, fresh: Floats, forget: float) -> Floats:
    """Update count, mean and mean square in place; returns the relative standard error of each mean."""
    errors = np.zeros(len(fresh))
    for i in range(len(fresh)):
        if np.isfinite(fresh[i]):
            scatter[i, 0] = forget * scatter[i, 0] + 1.0
            step = 1.0 / scatter[i, 0]
            scatter[i, 1] += step * (fresh[i] - scatter[i, 1])
            scatter[i, 2] += step * (fresh[i] * fresh[i] - scatter[i, 2])
        count, mean = scatter[i, 0], scatter[i, 1]
        if count >= 1.9 and mean > 0.0:
            spread = math.sqrt(max(scatter[i, 2] - mean * mean, 0.0)) / mean
            errors[i] = spread / math.sqrt(max(count - 1.0, 1.0))
    return errors
