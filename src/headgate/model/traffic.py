"""Traffic equations: what each operator receives when the outside world sends at some rate.

    lambda = external + P^T lambda,      P_ij = selectivity of the edge i -> j

Without loops one pass upstream first solves them; loops make it a sparse linear solve. A loop whose gain is 1 or
more has no steady state: rows multiply for ever. (DRS measures the rates; planning ahead needs them computed.)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from headgate.domain import Topology, is_source
from headgate.errors import BadInput

Floats = NDArray[np.float64]
_DENSE_LOOP = 400


def visits(topology: Topology) -> Floats:
    """Rows that reach each operator per row of the pipeline's rate, in the order of ``topology.names``.

    >>> from headgate.domain import Edge, Operator
    >>> loop = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"), Edge("a", "a", 0.5)))
    >>> visits(loop).tolist()
    [2.0]
    """
    return solve(topology, {source: topology.share_of(source) for source in topology.sources})


def solve(topology: Topology, source_rates: Mapping[str, float]) -> Floats:
    """Arrival rate at each operator when every source sends at its own rate."""
    external = np.zeros(len(topology.operators))
    for edge in topology.edges:
        if is_source(edge.origin) and edge.target in topology.index:
            external[topology.index[edge.target]] += source_rates.get(edge.origin, 0.0) * edge.selectivity
    if not topology.has_loop:
        return _pass_downstream(topology, external)
    routing = routing_matrix(topology)
    refuse_loops_that_grow(topology, routing)
    system = csc_array(eye_array(len(external)) - routing.T)
    return np.maximum(splu(system).solve(external), 0.0)


def outside_rate(topology: Topology, rate_per_s: float) -> float:
    """lambda_0: rows per second that enter from all sources together."""
    return rate_per_s * sum(topology.share_of(source) for source in topology.sources)


def routing_matrix(topology: Topology) -> csr_array[np.float64]:
    """P, sparse."""
    n, index = len(topology.operators), topology.index
    edges = topology.inner_edges
    rows = np.array([index[e.origin] for e in edges], dtype=np.int64)
    columns = np.array([index[e.target] for e in edges], dtype=np.int64)
    values = np.array([e.selectivity for e in edges], dtype=np.float64)
    return csr_array((values, (rows, columns)), shape=(n, n))


def refuse_loops_that_grow(topology: Topology, routing: csr_array[np.float64]) -> None:
    """Raise where a strongly connected part has a spectral radius of 1 or more; the error names the loop."""
    _, labels = connected_components(routing, directed=True, connection="strong")
    members: dict[int, list[int]] = {}
    for i, label in enumerate(labels):
        members.setdefault(int(label), []).append(i)
    for part in members.values():
        gain = _spectral_radius(routing[part][:, part])
        if gain >= 1 - 1e-12:
            names = [topology.names[i] for i in part]
            raise BadInput(
                f"loop through {', '.join(map(repr, names[:6]))} has gain {gain:.3g}: rows multiply for ever; "
                "lower the selectivity of one of its edges until the gain is below 1"
            )


def _spectral_radius(part: csr_array[np.float64]) -> float:
    size = part.shape[0]
    if size == 1:
        return float(part.toarray()[0, 0])
    if size <= _DENSE_LOOP:
        return float(np.abs(np.linalg.eigvals(part.toarray())).max())
    # A shift makes the power iteration converge on periodic loops too; the Collatz-Wielandt ratio bounds the radius.
    vector = np.ones(size)
    for _ in range(2000):
        image = part @ vector + vector
        low, high = float((image / vector).min()), float((image / vector).max())
        vector = image / image.max()
        if high - low < 1e-9:
            break
    return high - 1


def _pass_downstream(topology: Topology, external: Floats) -> Floats:
    arrivals = external
    outgoing: dict[str, list[tuple[int, float]]] = {}
    for edge in topology.inner_edges:
        outgoing.setdefault(edge.origin, []).append((topology.index[edge.target], edge.selectivity))
    for name in topology.order:
        here = arrivals[topology.index[name]]
        for target, selectivity in outgoing.get(name, ()):
            arrivals[target] += here * selectivity
    return arrivals
