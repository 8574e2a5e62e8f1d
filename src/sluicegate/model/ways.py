"""Expected number of times that a single path of a row, from source to sink, passes each operator.

DRS's Eq 4 weighs an operator by its visits, lambda_i/lambda_0, which sum over all descendants of a row: both branches
of a split and every word of a line. The latency measured for micro-batches is instead the age of a row when its output
is written, however many output rows it has, and that is one path through the graph:

    p_i = (share of the sources that lead to i) + sum over j that lead to i of  p_j s_ji

    s_ji = r_j if j -> i leads back, r_j being the share of j's rows that loop again; else (1 - r_j)/(targets of j)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.model.traffic import visits

Floats = NDArray[np.float64]
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
