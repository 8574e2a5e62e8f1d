"""CPU model of the nodes: the CPU time of all batches per second must fit the free cores.

    cores needed = sum over operators i of  (a + c k_i)/T_i + r_i lambda_i

a is CPU seconds per batch, c per task, r_i per row of operator i; T_i is seconds from one batch start to the next,
lambda_i rows per second. If that exceeds the cores, batches take longer than the micro-batch law says, and more tasks
make it worse: each costs c again without adding capacity. Longer paces and fewer tasks need fewer cores.

The coefficients are learned from observations: the CPU time that the executors and their child processes used (Python
workers and, in local mode, the driver are included) against the batches, tasks and rows of the same time. This is a
ridge regression with a prior: a row uses CPU for all of its service time, a batch and a task cost usual values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain import Cores, Observation, Topology

Floats = NDArray[np.float64]

_PER_BATCH_S, _PER_TASK_S = 0.05, 0.02
"""Prior means; the standard deviation of each is as large as its mean."""
_FORGET = 0.98
"""Weight kept per observation. At 0.96 and 0.99 half is forgotten after 17 and 69 observations."""
_BLEND = 0.8
"""Weight of the past in running sums of CPU time and batches, as both are not counted over the same seconds."""
_NOISE_CORE_S = 0.3
_LEAST_LOOKS = 5
_MOST_OPERATORS = 300
"""For larger pipelines the regression would take longer than a polling interval."""
FILLED = 0.9
"""The share of the free cores that batches may use; above it they delay each other. 0.8 requests cores that a batch
every second does not need, at 1.0 any burst makes batches late."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeLaw:
    """The learned state. ``precision`` and ``moment`` are the regression's sums without the prior."""

    names: tuple[str, ...]
    precision: Floats
    moment: Floats
    counts: Floats
    spent_core_s: float = 0.0
    looks: int = 0
    at_s: float | None = None
    busy_cores: float | None = None
    cores: Cores | None = field(default=None)

    @classmethod
    def start(cls, topology: Topology) -> NodeLaw:
        """The initial state; arrays stay empty until the cores of a node are known."""
        return cls(topology.names, np.zeros((0, 0)), np.zeros(0), np.zeros(0))

    def after(self, seen: Observation, topology: Topology) -> NodeLaw:
        """The state after one more observation; unchanged if the cores of no node are known."""
        nodes = [node for node in seen.nodes if node.cores]
        if not nodes or len(self.names) > _MOST_OPERATORS:
            return self
        busy = sum(node.busy_cores for node in nodes)
        law = replace(self if len(self.counts) else self._laid_out(), at_s=seen.at_s, busy_cores=busy)
        if self.at_s is not None and seen.at_s > self.at_s:
            law = law._learned(seen, busy * (seen.at_s - self.at_s))
        there = sum(node.cores for node in nodes)
        free = max(there - sum(node.other_cores for node in nodes), 0.0)
        return replace(law, cores=law._cores(topology, there, free, there / len(nodes)))

    def _laid_out(self) -> NodeLaw:
        size = len(self.names) + 2
        return replace(self, precision=np.zeros((size, size)), moment=np.zeros(size), counts=np.zeros(size))

    def _learned(self, seen: Observation, core_s: float) -> NodeLaw:
        ended = [seen.of(name).batches for name in self.names]
        rows = [sum(batch.rows for batch in batches) for batches in ended]
        tasks = sum(batch.processors for batches in ended for batch in batches)
        fresh = np.array([float(sum(map(len, ended))), float(tasks), *rows])
        counts, spent = _BLEND * self.counts + fresh, _BLEND * self.spent_core_s + core_s
        if not fresh.any():
            return replace(self, counts=counts, spent_core_s=spent)
        weight = 1.0 / _NOISE_CORE_S**2
        return replace(
            self,
            precision=_FORGET * self.precision + weight * np.outer(counts, counts),
            moment=_FORGET * self.moment + weight * spent * counts,
            counts=counts,
            spent_core_s=spent,
            looks=self.looks + 1,
        )

    def _cores(self, topology: Topology, there: float, free: float, each: float) -> Cores | None:
        if self.looks < _LEAST_LOOKS:
            return None
        prior = np.array([_PER_BATCH_S, _PER_TASK_S, *(1.0 / o.service_per_s for o in topology.operators)])
        ridge = np.diag(1.0 / prior**2)
        found = np.maximum(np.linalg.solve(self.precision + ridge, self.moment + ridge @ prior), 0.0)
        rows = dict(zip(self.names, found[2:].tolist(), strict=True))
        return Cores(float(found[0]), float(found[1]), rows, there, free, each)


def cores_needed(
    cores: Cores, arrivals_per_s: Mapping[str, float], processors: Mapping[str, int], every_s: Mapping[str, float]
) -> float:
    """The cores that batches keep busy if each operator starts one every ``every_s``.

    >>> cores = Cores(0.1, 0.05, {"a": 0.002}, there=2.0, free=1.0)
    >>> [round(cores_needed(cores, {"a": 150.0}, {"a": k}, {"a": T}), 3) for k, T in ((2, 0.25), (8, 0.5), (2, 1.0))]
    [1.1, 1.3, 0.5]
    """
    total = 0.0
    for name, k in processors.items():
        own = cores.per_batch_s + cores.per_task_s * k
        total += own / every_s[name] if every_s[name] > 0 else math.inf
        total += cores.per_row_s.get(name, 0.0) * arrivals_per_s[name]
    return total
