"""Latency models of all operators of a pipeline, as arrays.

The model depends on how an operator runs: micro-batches (``Operator.batch`` set) or a queue with servers, which is
M/M/k, or GI/G/k through the factor (a + s)/2 on the wait (DRS Eq 5). Arrays make ten thousand operators affordable; the
compiled functions below are used by the predictions and by the greedy planner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sluicegate.domain import Topology
from sluicegate.model.erlang import erlang_b, wait_from_b, wait_probability
from sluicegate.model.microbatch import back_to_back
from sluicegate.model.traffic import in_batches, passages

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

KEEPS_UP = 0.95
"""Utilisation above which an operator counts as not keeping up. At half, measurements of busy operators are not used.
At 1, a slowly growing queue is missed."""


class Laws(NamedTuple):
    """Arrays over the operators. A named tuple, so that compiled code can take it as one argument.

    ``passing_per_s`` is an operator's weight in E[T]: its arrivals (Eq 4), or if all operators run in batches the
    pipeline's rows that pass it (``traffic.passages``). ``wait_factor`` is (a + s)/2. ``overhead_s`` is above 0 if and
    only if the operator runs in batches.
    """

    arrivals_per_s: Floats
    passing_per_s: Floats
    service_per_s: Floats
    wait_factor: Floats
    service_scv: Floats
    overhead_s: Floats
    per_task_s: Floats
    commit_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Stations:
    """The operators' laws in the order of ``names``; ``outside_per_s`` is lambda_0."""

    names: tuple[str, ...]
    outside_per_s: float
    laws: Laws

    @classmethod
    def of(cls, topology: Topology, arrivals_per_s: Floats, outside_per_s: float) -> Stations:
        """The stations of a topology under given arrivals (see ``model.traffic``)."""
        rows = [
            (
                o.service_per_s,
                (o.arrival_scv + o.service_scv) / 2,
                o.service_scv,
                *((o.batch.overhead_s, o.batch.per_task_s, o.batch.commit_s) if o.batch else (0.0, 0.0, 0.0)),
            )
            for o in topology.operators
        ]
        columns = np.array(rows, dtype=np.float64).T.copy()
        arrivals = np.asarray(arrivals_per_s, dtype=np.float64)
        ways = passages(topology) if in_batches(topology) else None
        passing = arrivals if ways is None else np.where(arrivals > 0, ways * outside_per_s, 0.0)
        return cls(topology.names, outside_per_s, Laws(arrivals, passing, *columns))

    def loaded(self, factor: float) -> Stations:
        """The same stations under ``factor`` times the load."""
        laws = self.laws._replace(
            arrivals_per_s=self.laws.arrivals_per_s * factor, passing_per_s=self.laws.passing_per_s * factor
        )
        return replace(self, outside_per_s=self.outside_per_s * factor, laws=laws)

    def markovian(self) -> Stations:
        """The same stations with every variability at 1: DRS's basic model, M/M/k."""
        ones = np.ones(len(self.names))
        return replace(self, laws=self.laws._replace(wait_factor=ones, service_scv=ones))

    def queueing(self) -> Stations:
        """The same stations without the micro-batch law: every operator is a queue with servers, as in DRS."""
        none, laws = np.zeros(len(self.names)), self.laws
        queues = laws._replace(passing_per_s=laws.arrivals_per_s, overhead_s=none, per_task_s=none, commit_s=none)
        return replace(self, laws=queues)

    @property
    def offered(self) -> Floats:
        """lambda_i/mu_i: the processors that would be busy."""
        with np.errstate(over="ignore"):  # beyond any float is beyond any limit: the planners say so
            offered: Floats = self.laws.arrivals_per_s / self.laws.service_per_s
        return offered

    @property
    def weights(self) -> Floats:
        """Weight of each operator in E[T]: visits per outside row, lambda_i/lambda_0 (Eq 4); zero without arrivals."""
        if self.outside_per_s <= 0:
            return np.zeros_like(self.laws.passing_per_s)
        weights: Floats = self.laws.passing_per_s / self.outside_per_s
        return weights

    def moments(self, processors: Counts) -> Moments:
        """Mean and variance of every operator's sojourn, and the probability and mean length of its wait."""
        return Moments(*_moments(self.laws, np.asarray(processors, dtype=np.int64)))

    def mean_s(self, processors: Counts) -> Floats:
        """E[T_i] of every operator."""
        return self.moments(processors).mean_s

    def total_mean_s(self, processors: Counts) -> float:
        """E[T] by Eq 4; operators that nothing reaches do not count."""
        reached = self.laws.arrivals_per_s > 0
        return float(np.sum(self.weights[reached] * self.mean_s(processors)[reached]))


class Moments(NamedTuple):
    """Arrays over the operators; a wait happens with probability ``busy`` and then lasts ``pause_s`` on average.

    In batches ``busy`` and ``pause_s`` are q and S of ``model.microbatch``.
    """

    mean_s: Floats
    variance_s2: Floats
    busy: Floats
    pause_s: Floats


@njit(cache=True)
def _moments(laws: Laws, k: Counts) -> tuple[Floats, Floats, Floats, Floats]:
    """A wait that happens is exponential with rate eta = k mu - lambda, stretched by the factor f:
    E[W] = C f/eta, E[W^2] = 2 C (f/eta)^2.
    """
    n = len(k)
    mean, variance, busy, pause = np.empty(n), np.empty(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        arrivals, service = laws.arrivals_per_s[i], laws.service_per_s[i]
        if laws.overhead_s[i] > 0.0:
            to_end, variance[i], busy[i], pause[i] = back_to_back(
                arrivals, service, k[i], laws.overhead_s[i], laws.per_task_s[i]
            )
            mean[i] = max(to_end - laws.commit_s[i], 0.0)
            continue
        spare = k[i] * service - arrivals
        if spare <= 0.0:
            mean[i] = variance[i] = math.inf
            busy[i], pause[i] = 1.0, math.inf
            continue
        offered = arrivals / service
        busy[i] = wait_probability(erlang_b(offered, k[i]), offered, k[i])
        pause[i] = laws.wait_factor[i] / spare
        mean[i] = busy[i] * pause[i] + 1.0 / service
        variance[i] = busy[i] * (2.0 - busy[i]) * pause[i] ** 2 + laws.service_scv[i] / service**2
    return mean, variance, busy, pause


@njit(cache=True)
def varying_s(laws: Laws, i: int, b: float, k: int) -> float:
    """The part of E[T_i] that k changes: the wait (``b`` is Erlang B at k), or the whole sojourn in batches."""
    arrivals, service = laws.arrivals_per_s[i], laws.service_per_s[i]
    if laws.overhead_s[i] > 0.0:
        to_end, _, _, _ = back_to_back(arrivals, service, k, laws.overhead_s[i], laws.per_task_s[i])
        return max(to_end - float(laws.commit_s[i]), 0.0)
    wait = wait_from_b(b, arrivals, service, k)
    return wait if math.isinf(wait) else float(laws.wait_factor[i]) * wait
