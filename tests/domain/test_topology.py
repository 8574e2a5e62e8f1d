from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.errors import BadInput


def build(names: list[str], edges: list[tuple[str, str]]) -> Topology:
    return Topology("t", tuple(Operator(n, 1.0) for n in names), tuple(Edge(*e) for e in edges))


@pytest.mark.parametrize(
    ("names", "edges", "problem"),
    [
        ([], [("source", "a")], "no operators"),
        (["a"], [], "no source"),
        (["a", "a"], [("source", "a")], "'a' is there twice"),
        (["parse"], [("source", "prase")], "unknown operator 'prase' .did you mean 'parse'"),
        (["a", "b"], [("source", "a")], "no path from a source to 'b'"),
        (["a"], [("source", "a"), ("source", "a")], "is there twice"),
        (["a"], [("source", "a"), ("sink", "a")], "a sink sends nothing"),
        (["a"], [("source", "a"), ("a", "source")], "a source takes nothing"),
        (["a"], [("source", "a"), ("source", "sink")], "passes no operator"),
        (["source"], [("source", "source")], "reserved"),
        (["1 a"], [("source", "1 a")], "use letters"),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(names: list[str], edges: list[tuple[str, str]], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        build(names, edges)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_selectivities_and_rates_must_be_numbers_that_can_be(value: float) -> None:
    with pytest.raises(BadInput, match="selectivity"):
        Edge("a", "b", value)
    with pytest.raises(BadInput, match="service_rate_per_s"):
        Operator("a", value)


def test_upstream_comes_first_in_the_order() -> None:
    t = build(["d", "c", "b", "a"], [("source", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert t.order.index("a") == 0
    assert t.order.index("d") == 3
    assert not t.has_loop


def test_a_loop_is_noticed() -> None:
    assert build(["a", "b"], [("source", "a"), ("a", "b"), ("b", "a")]).has_loop
    assert build(["a"], [("source", "a"), ("a", "a")]).has_loop


def test_a_chain_of_ten_thousand_needs_no_recursion() -> None:
    names = [f"o{i}" for i in range(10_000)]
    t = build(names, [("source", "o0"), *pairwise(names)])
    assert t.order == tuple(names)


def test_other_figures_for_the_same_graph_keep_what_was_worked_out() -> None:
    t = build(["a"], [("source", "a")])
    twin = t.with_operators((Operator("a", 9.0),))
    assert twin.operator("a").service_per_s == 9.0
    assert t.operator("a").service_per_s == 1.0
    assert twin.graph is t.graph


@given(st.integers(1, 12), st.data())
def test_in_a_graph_without_loops_every_edge_leads_downstream(n: int, data: st.DataObject) -> None:
    names = [f"o{i}" for i in range(n)]
    pairs = data.draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1])))
    edges = [("source", name) for name in names] + [(names[a], names[b]) for a, b in pairs]
    t = build(names, edges)
    rank = {name: i for i, name in enumerate(t.order)}
    assert sorted(t.order) == sorted(names)
    assert all(rank[e.origin] < rank[e.target] for e in t.inner_edges)
    assert not t.has_loop
