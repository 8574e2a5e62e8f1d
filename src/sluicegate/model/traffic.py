"""Traffic equations: the arrival rate at each operator for given source rates.

    lambda = external + P^T lambda,      P_ij = selectivity of the edge i -> j

Solved with (I - P)^-1, computed once per graph. A loop whose gain is 1 or more has no steady state (rows multiply for
ever) and is refused. DRS measures the arrival rates; planning for a future load needs them computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import SuperLU, splu

from sluicegate.domain import Graph, Topology, is_source
from sluicegate.errors import BadInput

Floats = NDArray[np.float64]
_DENSE = 256
_DENSE_LOOP = 400


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """The routing of one graph with (I - P)^-1: a dense matrix if small, else LU factors of I - P and its transpose.

    ``odd`` holds f(1 - f) for the fraction f of each selectivity: the variance of how many copies an edge makes.
    ``one_way`` marks the operators whose rows take at most one of their edges (selectivities that sum to 1 or less).
    """

    routing: csr_array[np.float64]
    odd: csr_array[np.float64]
    one_way: NDArray[np.bool_]
    inverse: Floats | tuple[SuperLU, SuperLU]

    def downstream(self, external: Floats) -> Floats:
        """Arrivals: (I - P^T)^-1 external."""
        if isinstance(self.inverse, tuple):
            return np.maximum(self.inverse[1].solve(external), 0.0)
        arrivals: Floats = np.maximum(external @ self.inverse, 0.0)
        return arrivals

    def onward(self, own: Floats) -> Floats:
        """The sum of ``own`` over all operators that a row passes from each operator on: (I - P)^-1 own."""
        if isinstance(self.inverse, tuple):
            return self.inverse[0].solve(own)
        gathered: Floats = self.inverse @ own
        return gathered

    def expected(self, values: Floats) -> Floats:
        """P values: the sum over the edges out of each operator, weighted by selectivity."""
        return np.asarray(self.routing @ values, dtype=np.float64)


@lru_cache(maxsize=64)
def _flow(graph: Graph) -> Flow:
    routing = _routing(graph)
    _refuse_loops_that_grow(graph.names, routing)
    part = np.modf(routing.data)[0]
    odd = csr_array((part * (1.0 - part), routing.indices, routing.indptr), shape=routing.shape)
    one_way = np.asarray(routing @ np.ones(len(graph.names))) <= 1.0
    rest = csc_array(eye_array(len(graph.names)) - routing)
    if len(graph.names) > _DENSE:
        return Flow(routing, odd, one_way, (splu(rest), splu(csc_array(rest.T))))
    inverse: Floats = np.linalg.inv(rest.toarray()).astype(np.float64)
    return Flow(routing, odd, one_way, inverse)


def flow_of(topology: Topology) -> Flow:
    """The topology's routing, cached per graph. Raises ``BadInput`` if a loop's gain is 1 or more."""
    return _flow(topology.graph)


def visits(topology: Topology) -> Floats:
    """Rows that reach each operator per row of the pipeline's rate, in the order of ``topology.names``.

    >>> from sluicegate.domain import Edge, Operator
    >>> loop = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"), Edge("a", "a", 0.5)))
    >>> visits(loop).tolist()
    [2.0]
    """
    return solve(topology, {source: topology.share_of(source) for source in topology.sources})


def solve(topology: Topology, source_rates: Mapping[str, float]) -> Floats:
    """Arrival rate at each operator when every source sends at its own rate."""
    external = np.zeros(len(topology.operators))
    for edge in topology.edges:
        if is_source(edge.origin):
            external[topology.index[edge.target]] += source_rates.get(edge.origin, 0.0) * edge.selectivity
    return flow_of(topology).downstream(external)


def outside_rate(topology: Topology, rate_per_s: float) -> float:
    """lambda_0: rows per second that enter from all sources together."""
    return rate_per_s * sum(topology.share_of(source) for source in topology.sources)


def pipeline_rate(topology: Topology, outside_per_s: float) -> float:
    """The pipeline's rate when ``outside_per_s`` rows enter from all sources together: inverse of ``outside_rate``."""
    together = outside_rate(topology, 1.0)
    return outside_per_s / together if together > 0 else 0.0


def with_source_rates(topology: Topology, rate_per_s: float, source_rates: Mapping[str, float] | None) -> Topology:
    """The topology whose sources have the shares that they have in these rates.

    >>> from sluicegate.domain import Edge, Operator
    >>> edges = (Edge("source:x", "a"), Edge("source:y", "a"))
    >>> with_source_rates(Topology("t", (Operator("a", 9.0),), edges), 4.0, {"source:x": 6.0}).source_shares
    {'source:x': 1.5, 'source:y': 0.0}
    """
    if source_rates is None or not rate_per_s > 0:
        return topology
    return replace(topology, source_shares={s: source_rates.get(s, 0.0) / rate_per_s for s in topology.sources})


def _routing(graph: Graph) -> csr_array[np.float64]:
    index = {name: i for i, name in enumerate(graph.names)}
    rows = np.array([index[e.origin] for e in graph.edges], dtype=np.int64)
    columns = np.array([index[e.target] for e in graph.edges], dtype=np.int64)
    values = np.array([e.selectivity for e in graph.edges], dtype=np.float64)
    return csr_array((values, (rows, columns)), shape=(len(index), len(index)))


def _refuse_loops_that_grow(names: tuple[str, ...], routing: csr_array[np.float64]) -> None:
    """Raise if a strongly connected component has a spectral radius of 1 or more; the error names the loop."""
    parts, labels = connected_components(routing, directed=True, connection="strong")
    members: list[list[int]] = [[] for _ in range(parts)]
    for i, label in enumerate(labels):
        members[label].append(i)
    alone = routing.diagonal()
    for part in members:
        grows = alone[part[0]] >= 1 if len(part) == 1 else _grows(csc_array(routing[part][:, part]))
        if grows:
            loop = ", ".join(repr(names[i]) for i in part[:6])
            gain = f" {_spectral_radius(routing[part][:, part]):.3g}" if len(part) <= _DENSE_LOOP else ""
            raise BadInput(
                f"loop through {loop} has gain{gain} >= 1: rows multiply without bound; "
                "lower the selectivity of one of its edges until the gain is below 1"
            )


def _grows(part: csc_array[np.float64]) -> bool:
    """Whether an irreducible part's radius is 1 or more: it is below 1 if and only if (I - P) x = 1 has x >= 1."""
    size = part.shape[0]
    try:
        x = splu(csc_array(eye_array(size) - part)).solve(np.ones(size))
    except RuntimeError:  # exactly singular: the gain is exactly 1
        return True
    return bool((x < 1 - 1e-9).any() or (x > 1e12).any() or not np.isfinite(x).all())


def _spectral_radius(part: csr_array[np.float64]) -> float:
    return float(np.abs(np.linalg.eigvals(part.toarray())).max())
