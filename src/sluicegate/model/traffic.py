"""Traffic equations: the arrival rate at each operator for given source rates.

    lambda = external + P^T lambda,      P_ij = selectivity of the edge i -> j

Solved with (I - P)^-1, computed once per graph. A loop whose gain is 1 or more has no steady state (rows multiply for
ever) and is refused. DRS measures the arrival rates; planning for a future load needs them computed.

Also the expected number of times that a single path of a row, from source to sink, passes each operator. DRS's Eq 4
weighs an operator by its visits, lambda_i/lambda_0, which sum over all descendants of a row: both branches of a split
and every word of a line. The latency measured for micro-batches is instead the age of a row when its output is written,
however many output rows it has, and that is one path through the graph:

    p_i = (share of the sources that lead to i) + sum over j that lead to i of  p_j s_ji

    s_ji = r_j if j -> i leads back, r_j being the share of j's rows that loop again; else (1 - r_j)/(targets of j)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import SuperLU, splu

from sluicegate.domain import Edge, Graph, Operator, Topology, is_source
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


MOST_RETURNING = 0.95
"""Cap on the share of an operator's rows that loop back; nearer to 1, paths of unbounded length would be predicted."""


def in_batches(topology: Topology) -> bool:
    """Whether all operators run in batches, so that paths are counted instead of visits."""
    return all(operator.batch for operator in topology.operators)


def one_way(topology: Topology, returning: Mapping[str, float] | None = None) -> Topology:
    """The topology with each row sent to one target only: a share back along loops, the rest evenly over the others.

    ``returning`` gives, for each operator that a loop leads back to, the share of rows that loop; without it, the
    selectivities of the edges that lead back are used.
    """
    back = {e: e.selectivity if returning is None else returning.get(e.target, 0.0) for e in topology.edges_back}
    onward = Counter(edge.origin for edge in topology.edges if edge not in back and edge.selectivity > 0)
    wanted: dict[str, float] = defaultdict(float)
    for edge, share in back.items():
        wanted[edge.origin] += share

    def sent(edge: Edge) -> float:
        asked = wanted[edge.origin]
        again = min(asked, MOST_RETURNING)
        if edge in back:
            return back[edge] * again / asked if asked > 0 else 0.0
        return (1.0 - again) / onward[edge.origin] if edge.selectivity > 0 else 0.0

    kept = (edge for edge in topology.edges if edge not in back or sent(edge) > 0)
    return replace(topology, edges=tuple(replace(edge, selectivity=sent(edge)) for edge in kept))


def passages(topology: Topology) -> Floats:
    """How often a row passes each operator on average, in the order of the pipeline's ``names``.

    >>> names = ("split", "left", "right", "join")
    >>> ways = (("source", "split"), ("split", "left"), ("split", "right"), ("left", "join"), ("right", "join"))
    >>> diamond = Topology("t", tuple(Operator(n, 9.0) for n in names), tuple(Edge(a, b) for a, b in ways))
    >>> passages(diamond).tolist()
    [1.0, 0.5, 0.5, 1.0]
    """
    shares = tuple((source, topology.share_of(source)) for source in topology.sources)
    return _passed(topology.names, topology.edges, shares)


@lru_cache(maxsize=64)
def _passed(names: tuple[str, ...], edges: tuple[Edge, ...], shares: tuple[tuple[str, float], ...]) -> Floats:
    """Cached per graph: the control loop needs it at every tick and the graph seldom changes."""
    graph = Topology("ways", tuple(Operator(name, 1.0) for name in names), edges, dict(shares))
    found: Floats = visits(one_way(graph)) / (sum(share for _, share in shares) or 1.0)
    found.setflags(write=False)
    return found
