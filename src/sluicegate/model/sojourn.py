"""Predicts the time from source to sink: mean and quantiles, per operator and end to end.

Mean, DRS Eq 4: E[T] = sum of (lambda_i/lambda_0) E[T_i].

Per operator the quantiles are exact for M/M/k (an exponential service after a wait that is zero with probability 1 - C
and exponential otherwise); for micro-batches they are those of an even wait over one batch and a gamma distribution of
the rest; where the service is not exponential they are approximated by a gamma distribution with the same
mean and variance. End to end, let M_i and V_i be mean and variance of the remaining time of a row and its descendants
once it enters operator i:

    M = E[T] + P M        V = Var[T] + P V + spread of the routing

and a gamma distribution with the mean and variance seen from the sources gives the quantiles. Sojourns at different
operators are assumed independent, which Jackson networks without overtaking satisfy. Where the selectivities out of an
operator sum to at most 1, a row takes one of the edges; otherwise each edge copies it independently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincinv

from sluicegate.domain import OperatorPrediction, Prediction, Sojourn, Topology
from sluicegate.model.microbatch import wait_tail
from sluicegate.model.stations import Counts, Floats, Laws, Moments, Stations
from sluicegate.model.traffic import Flow, flow_of, in_batches, one_way

LEVELS = (0.5, 0.95, 0.99)


def predict(
    topology: Topology, stations: Stations, processors: Mapping[str, int], sustained_per_s: float
) -> Prediction:
    """Predicted sojourns and utilisation under ``processors``; ``inf`` where an operator cannot keep up."""
    k = np.array([processors[name] for name in topology.names], dtype=np.int64)
    mean, quantiles = stations.mean_s(k), operator_quantiles_s(stations, k)
    arrivals, used = stations.laws.arrivals_per_s, stations.offered / k
    operators = {
        name: OperatorPrediction(
            int(k[i]), float(arrivals[i]), float(used[i]), float(mean[i]), *map(float, quantiles[:, i])
        )
        for i, name in enumerate(topology.names)
    }
    return Prediction(end_to_end(topology, stations, k), sustained_per_s, operators)


def operator_quantiles_s(stations: Stations, processors: Counts) -> Floats:
    """Sojourn quantiles. Rows: p50, p95, p99; columns: operators."""
    moments = stations.moments(processors)
    count = len(stations.names)
    rows = [[_quantile(stations.laws, moments, i, int(processors[i]), level) for i in range(count)] for level in LEVELS]
    return np.array(rows)


def end_to_end(topology: Topology, stations: Stations, processors: Counts) -> Sojourn:
    """Mean and quantiles from source to sink."""
    mean = stations.total_mean_s(processors)
    reached = np.flatnonzero(stations.laws.arrivals_per_s > 0)
    if math.isinf(mean) or not len(reached):
        return Sojourn(mean, mean, mean, mean)
    if len(reached) == 1 and not topology.has_loop and math.isclose(stations.weights[reached[0]], 1.0):
        return Sojourn(mean, *map(float, operator_quantiles_s(stations, processors)[:, reached[0]]))
    way = one_way(topology) if in_batches(topology) else topology
    variance = _variance_from_sources(way, stations.moments(processors))
    return Sojourn(mean, *(gamma_quantile(mean, variance, level) for level in LEVELS))


def quantile_s(topology: Topology, stations: Stations, processors: Counts) -> dict[str, float]:
    """End-to-end sojourn by the names used in goals: mean, p50, p95, p99."""
    sojourn = end_to_end(topology, stations, processors)
    values = (sojourn.mean_s, sojourn.p50_s, sojourn.p95_s, sojourn.p99_s)
    return {what: value for what, value in zip(("mean", "p50", "p95", "p99"), values, strict=True) if value is not None}


def gamma_quantile(mean: float, variance: float, level: float) -> float:
    """Quantile of the gamma distribution with this mean and variance; the mean itself if the variance is zero.

    >>> round(gamma_quantile(1.0, 1.0, 0.95), 4), gamma_quantile(2.0, 0.0, 0.95)
    (2.9957, 2.0)
    """
    if not math.isfinite(mean) or mean <= 0 or variance <= 1e-18 * mean * mean:
        return mean
    shape = mean * mean / variance
    return float(gammaincinv(shape, level)) * variance / mean


def _quantile(laws: Laws, moments: Moments, i: int, k: int, level: float) -> float:
    mean, variance = float(moments.mean_s[i]), float(moments.variance_s2[i])
    if not math.isfinite(mean):
        return math.inf
    if laws.overhead_s[i] > 0:
        return max(_in_batches_s(laws, moments, i, k, level) - float(laws.commit_s[i]), 0.0)
    if laws.service_scv[i] == 1.0:
        tail = _markov_tail(float(moments.busy[i]), float(moments.pause_s[i]), 1.0 / float(laws.service_per_s[i]))
        return _invert(tail, 1.0 - level, mean + math.sqrt(variance))
    return gamma_quantile(mean, variance, level)


def _in_batches_s(laws: Laws, moments: Moments, i: int, k: int, level: float) -> float:
    """Quantile of the time to the end of a row's batch: at once with probability 1 - q, else after a wait."""
    during, seen, variance = float(moments.busy[i]), float(moments.pause_s[i]), float(moments.variance_s2[i])
    service = k * float(laws.service_per_s[i])
    least = float(laws.overhead_s[i] + laws.per_task_s[i] * k) + 1.0 / service
    if during <= 0.0:
        return least
    beyond = (0.5 + float(laws.arrivals_per_s[i]) / service) * seen
    tail = wait_tail(during, seen, beyond, variance / during - (1.0 - during) * beyond * beyond)
    if tail(0.0) <= 1.0 - level:
        return least
    return least + _invert(tail, 1.0 - level, beyond)


def _markov_tail(busy: float, pause_s: float, service_s: float) -> Callable[[float], float]:
    """P(T > t) of an exponential service after a wait that is exponential with probability ``busy``, else zero."""

    def tail(t: float) -> float:
        alone = math.exp(-t / service_s)
        if busy == 0.0 or pause_s == 0.0:
            return alone
        if math.isclose(pause_s, service_s, rel_tol=1e-6):
            both = alone * (1.0 + t / service_s)
        else:
            both = (pause_s * math.exp(-t / pause_s) - service_s * alone) / (pause_s - service_s)
        return (1.0 - busy) * alone + busy * both

    return tail


def _invert(tail: Callable[[float], float], probability: float, scale: float) -> float:
    high = scale
    while tail(high) > probability:
        high *= 2.0
    return float(brentq(lambda t: tail(t) - probability, 0.0, high, xtol=1e-12 * scale, rtol=1e-10))


def _variance_from_sources(topology: Topology, moments: Moments) -> float:
    flow = flow_of(topology)
    onward = flow.onward(moments.mean_s)
    spread = flow.onward(moments.variance_s2 + _routing_variance(flow, onward))
    return max(_entering_variance(topology, onward, spread), 0.0)


def _routing_variance(flow: Flow, onward: Floats) -> Floats:
    """Variance of the remaining time due to which, and how many, edges a row takes."""
    squares = onward * onward
    one_of_them = flow.expected(squares) - flow.expected(onward) ** 2
    copies = np.asarray(flow.odd @ squares, dtype=np.float64)
    chosen: Floats = np.where(flow.one_way, one_of_them, copies)
    return chosen


def _entering_variance(topology: Topology, onward: Floats, spread: Floats) -> float:
    """Variance over outside rows: a source routes or copies rows like an operator, sources are mixed by rate."""
    total = sum(topology.share_of(source) for source in topology.sources)
    first = second = 0.0
    for source in topology.sources:
        edges = [e for e in topology.edges if e.origin == source and e.target in topology.index]
        share = topology.share_of(source) / total if total > 0 else 0.0
        p = np.array([e.selectivity for e in edges])
        m = np.array([onward[topology.index[e.target]] for e in edges])
        v = np.array([spread[topology.index[e.target]] for e in edges])
        mean = float(p @ m)
        if p.sum() <= 1.0:
            variance = float(p @ (v + m * m)) - mean * mean
        else:
            part = np.modf(p)[0]
            variance = float(p @ v + (part * (1 - part)) @ (m * m))
        first += share * mean
        second += share * (variance + mean * mean)
    return second - first * first
