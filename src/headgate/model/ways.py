"""A row's way from a source to the end: which operators it passes, and how often.

DRS's Eq 4 weighs an operator by its visits, lambda_i/lambda_0: all that becomes of a row is added up, both branches of
a split and every word of a line. What is measured of micro-batches is how old a row is when what became of it comes
out, much or little, and that is one way through the graph:

    p_i = (share of the sources that lead to i) + sum over j before i of  p_j/(number of targets of j)

Where a loop leads back, as many go round as is said; where that is not known, the visits of Eq 4 stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headgate.domain import Edge, Topology, is_source

Floats = NDArray[np.float64]


def in_batches(topology: Topology) -> bool:
    """Whether a row's way counts, and not its visits: all operators run in batches, and none leads back."""
    return all(operator.batch for operator in topology.operators) and not topology.has_loop


def one_way(topology: Topology, returning: Mapping[str, float] | None = None) -> Topology:
    """Each row to one of the targets: back where a loop leads, as many as ``returning`` says, onward all alike."""
    rank = {name: i for i, name in enumerate(topology.order)}
    back = {e for e in topology.edges if not is_source(e.origin) and rank.get(e.target, len(rank)) <= rank[e.origin]}
    onward = Counter(edge.origin for edge in topology.edges if edge not in back)
    round_again = {edge.origin: (returning or {}).get(edge.target, 0.0) for edge in back}

    def sent(edge: Edge) -> float:
        again = round_again.get(edge.origin, 0.0)
        return again if edge in back else (1.0 - again) / onward[edge.origin]

    return replace(topology, edges=tuple(replace(e, selectivity=sent(e)) for e in topology.edges if sent(e) > 0))


def passages(topology: Topology) -> Floats:
    """For each operator of a pipeline without loops the share of rows that pass it, in the order of its ``names``.

    >>> from headgate.domain import Operator
    >>> names = ("split", "left", "right", "join")
    >>> ways = (("source", "split"), ("split", "left"), ("split", "right"), ("left", "join"), ("right", "join"))
    >>> diamond = Topology("t", tuple(Operator(n, 9.0) for n in names), tuple(Edge(a, b) for a, b in ways))
    >>> passages(diamond).tolist()
    [1.0, 0.5, 0.5, 1.0]
    """
    shares = tuple((source, topology.share_of(source)) for source in topology.sources)
    return _passed(topology.names, topology.order, topology.edges, shares)


@lru_cache(maxsize=64)
def _passed(
    names: tuple[str, ...], order: tuple[str, ...], edges: tuple[Edge, ...], shares: tuple[tuple[str, float], ...]
) -> Floats:
    """By one pass down the graph; the loop asks at every tick, for a graph that does not change."""
    targets, total = Counter(edge.origin for edge in edges), sum(share for _, share in shares) or 1.0
    passed = {**dict.fromkeys(names, 0.0), **{source: share / total for source, share in shares}}
    rank = {name: i for i, name in enumerate(order)}
    for edge in sorted(edges, key=lambda e: rank.get(e.origin, -1)):
        if edge.target in rank:
            passed[edge.target] += passed[edge.origin] / targets[edge.origin]
    found = np.array([passed[name] for name in names])
    found.setflags(write=False)
    return found
