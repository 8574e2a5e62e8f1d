"""What the running pipeline has taught: how many rows reach each operator, its service rate, variability and batch
costs, and how surely.

An operator in micro-batches is learned from its batches (``batch_fit``). One with a queue is learned from its measured
service rate; the standard error comes from how much the measurements scatter, with the past forgotten slowly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headgate.domain import BatchCosts, Observation, Operator, OperatorObservation, Topology
from headgate.domain.topology import LARGEST, SLOWEST_PER_S
from headgate.model.batch_fit import BatchFits, BatchLaw
from headgate.model.traffic import pipeline_rate, visits

Floats = NDArray[np.float64]

_FORGET = 0.95
_FORGET_VISITS = 0.9
_KEEPS_UP = 0.95
# A figure that moved by less than this is left as it was: it saves rebuilding values that plan the same.
_SAME = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """``topology`` with the learned figures in it, and the relative standard error of the service rates."""

    topology: Topology
    fits: BatchFits
    scatter: Floats
    visits: Floats
    service_rsd: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def start(cls, topology: Topology) -> Learned:
        """Before anything was measured: what the topology says."""
        fits, scatter = BatchFits.start(topology.operators), np.zeros((len(topology.operators), 3))
        return cls(topology, fits, scatter, visits(topology))

    def after(self, raw: Observation, smoothed: Observation) -> Learned:
        """With one more observation; rates are taken from the smoothed one, scatter and batches from the raw one."""
        fits = self.fits.learn({name: raw.of(name).batches for name in self.topology.names})
        laws = fits.laws() if fits is not self.fits else {}
        scatter = _scattered(self.scatter, [raw.of(name).service_per_s for name in self.topology.names])
        operators = tuple(
            _taught(operator, smoothed.of(operator.name), laws.get(operator.name))
            for operator in self.topology.operators
        )
        same = all(a is b for a, b in zip(operators, self.topology.operators, strict=True))
        topology = self.topology if same else self.topology.with_operators(operators)
        reach = _visits(self.visits, topology, smoothed)
        return Learned(topology, fits, scatter, reach, self._errors(laws, scatter))

    def _errors(self, laws: Mapping[str, BatchLaw], scatter: Floats) -> Mapping[str, float]:
        count, mean, square = scatter.T
        known = count >= 2
        spread = np.sqrt(np.maximum(square - mean * mean, 0.0)) / np.where(mean > 0, mean, 1.0)
        errors = np.where(known, spread / np.sqrt(np.maximum(count - 1, 1.0)), 0.0).tolist()
        out = dict(zip(self.topology.names, errors, strict=True))
        for operator in self.topology.operators:
            if operator.batch is not None:
                law = laws.get(operator.name)
                out[operator.name] = law.service_rsd if law else self.service_rsd.get(operator.name, 0.0)
        return out


def _visits(known: Floats, topology: Topology, seen: Observation) -> Floats:
    """Rows that reach each operator per outside row, as measured while every operator keeps up.

    Behind an operator that does not, less arrives than will once it does: then what was known stays.
    """
    rate = pipeline_rate(topology, seen.arrivals_per_s or 0.0)
    if not rate:
        return known
    measured = np.array([seen.of(name).arrivals_per_s or np.nan for name in topology.names], dtype=np.float64) / rate
    carried = np.array([seen.running.get(o.name, 1) * o.service_per_s for o in topology.operators])
    if (known * rate >= _KEEPS_UP * carried).any():
        return known
    blended: Floats = np.where(np.isnan(measured), known, _FORGET_VISITS * known + (1 - _FORGET_VISITS) * measured)
    return blended


def _taught(operator: Operator, seen: OperatorObservation, law: BatchLaw | None) -> Operator:
    if operator.batch is not None:
        return operator if law is None else _batched(operator, operator.batch, law)
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


def _batched(operator: Operator, costs: BatchCosts, law: BatchLaw) -> Operator:
    if (
        _close(law.service_per_s, operator.service_per_s)
        and _close(law.overhead_s, costs.overhead_s)
        and _close(law.per_task_s, costs.per_task_s)
    ):
        return operator
    learned = BatchCosts(law.overhead_s, law.per_task_s, costs.commit_s)
    return operator.with_figures(law.service_per_s, operator.arrival_scv, operator.service_scv, learned)


def _usable(measured: float | None, known: float) -> float:
    """A measured rate, unless it is missing or beyond reason."""
    return measured if measured is not None and SLOWEST_PER_S <= measured <= LARGEST else known


def _scv(measured: float | None, known: float) -> float:
    return measured if measured is not None and 0 <= measured <= LARGEST else known


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= _SAME * max(abs(a), abs(b))


def _scattered(scatter: Floats, measured: list[float | None]) -> Floats:
    """Per operator: values counted, their mean and mean square, each with the past forgotten."""
    fresh = np.array([np.nan if value is None else value for value in measured], dtype=np.float64)
    known = np.isfinite(fresh)
    if not known.any():
        return scatter
    value = np.where(known, fresh, 0.0)
    count, mean, square = scatter.T
    grown = _FORGET * count + 1.0
    step = 1.0 / grown
    after = np.stack([grown, mean + step * (value - mean), square + step * (value * value - square)], axis=1)
    kept: Floats = np.where(known[:, None], after, scatter)
    return kept
