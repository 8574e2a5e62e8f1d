"""How often a row of the pipeline passes each operator on its way from a source to the end.

DRS's Eq 4 weighs an operator by its visits, lambda_i/lambda_0: all that becomes of a row is added up, both branches of
a split and every word of a line. What is measured of micro-batches is how old a row is when what became of it comes
out, much or little, and that is one way through the graph:

    p_i = (share of the sources that lead to i) + sum over j before i of  p_j/(number of targets of j)

Loops have no such order: there the visits of Eq 4 stay.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headgate.domain import Edge, Topology, is_source

Floats = NDArray[np.float64]


def passages(topology: Topology) -> Floats | None:
    """For each operator the share of rows that pass it, in the order of ``topology.names``; ``None`` with a loop.

    >>> from headgate.domain import Operator
    >>> names = ("split", "left", "right", "join")
    >>> ways = (("source", "split"), ("split", "left"), ("split", "right"), ("left", "join"), ("right", "join"))
    >>> diamond = Topology("t", tuple(Operator(n, 9.0) for n in names), tuple(Edge(a, b) for a, b in ways))
    >>> passages(diamond).tolist()
    [1.0, 0.5, 0.5, 1.0]
    """
    if topology.has_loop:
        return None
    shares = tuple(topology.share_of(source) for source in topology.sources)
    return _passed(topology.names, topology.order, topology.edges, topology.sources, shares)


@lru_cache(maxsize=64)
def _passed(
    names: tuple[str, ...],
    order: tuple[str, ...],
    edges: tuple[Edge, ...],
    sources: tuple[str, ...],
    shares: tuple[float, ...],
) -> Floats:
    targets = Counter(edge.origin for edge in edges)
    total = sum(shares) or 1.0
    passed = {**dict.fromkeys(names, 0.0), **{s: share / total for s, share in zip(sources, shares, strict=True)}}
    rank = {name: i for i, name in enumerate(order)}
    for edge in sorted(edges, key=lambda e: -1 if is_source(e.origin) else rank[e.origin]):
        if edge.target in rank:
            passed[edge.target] += passed[edge.origin] / targets[edge.origin]
    found = np.array([passed[name] for name in names])
    found.setflags(write=False)
    return found
