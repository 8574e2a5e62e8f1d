from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.model.learned import with_visits
from sluicegate.model.stations import Stations
from sluicegate.model.traffic import visits
from sluicegate.model.ways import in_batches, one_way, passages

COSTS = BatchCosts(0.2, 0.01)


def pipeline(*edges: tuple[str, str, float], batch: BatchCosts | None = COSTS) -> Topology:
    names = list(dict.fromkeys(target for _, target, _ in edges))
    return Topology("t", tuple(Operator(n, 500.0, batch=batch) for n in names), tuple(Edge(*edge) for edge in edges))


def mean_s(topology: Topology, rate: float = 100.0) -> float:
    k = np.full(len(topology.names), 4)
    return Stations.of(topology, visits(topology) * rate, rate).total_mean_s(k)


def test_a_row_goes_one_way_through_a_split() -> None:
    split = pipeline(("source", "a", 1.0), ("a", "b", 1.0), ("a", "c", 1.0), ("b", "d", 1.0), ("c", "d", 0.5))
    assert dict(zip(split.names, passages(split).tolist(), strict=True)) == {"a": 1.0, "b": 0.5, "c": 0.5, "d": 1.0}


def test_several_sources_share_the_rows() -> None:
    two = pipeline(("source:x", "a", 1.0), ("source:y", "b", 1.0), ("a", "c", 1.0), ("b", "c", 1.0))
    assert passages(two).tolist() == [0.5, 0.5, 1.0]


def test_in_batches_many_rows_out_of_one_do_not_make_the_way_longer() -> None:
    """Only busier: eight words a line cost their work, they do not pass the counter one after the other."""
    words, lines = pipeline(("source", "a", 1.0), ("a", "b", 8.0)), pipeline(("source", "a", 1.0), ("a", "b", 1.0))
    assert mean_s(lines) < mean_s(words) < 2 * mean_s(lines)


def test_queues_are_weighed_by_their_visits_as_in_eq_4() -> None:
    words = pipeline(("source", "a", 1.0), ("a", "b", 8.0), batch=None)
    stations = Stations.of(words, visits(words) * 100.0, 100.0)
    assert stations.weights.tolist() == pytest.approx([1.0, 8.0])


def test_a_row_goes_round_a_loop_as_often_as_its_edge_says() -> None:
    loop = pipeline(("source", "a", 1.0), ("a", "a", 0.5))
    assert in_batches(loop)
    assert Stations.of(loop, visits(loop) * 100.0, 100.0).weights.tolist() == pytest.approx([2.0])


def test_before_a_loop_many_rows_out_of_one_do_not_make_the_way_longer_either() -> None:
    """Seven subsets a transaction are seven rows for a detector that loops, and one way through it, a little longer."""
    loop = pipeline(("source", "a", 1.0), ("a", "b", 7.0), ("b", "b", 0.02), ("b", "c", 0.01))
    assert passages(loop).tolist() == pytest.approx([1.0, 1 / 0.98, 1.0])


def test_a_loop_of_which_more_returns_than_comes_has_a_way_with_an_end() -> None:
    loop = pipeline(("source", "a", 1.0), ("a", "b", 0.3), ("b", "a", 3.0), ("b", "c", 1.0))
    assert passages(loop)[:2].tolist() == pytest.approx([20.0, 20.0])


def test_two_edges_that_lead_back_share_what_returns() -> None:
    loop = pipeline(("source", "a", 1.0), ("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 0.9), ("c", "b", 0.9))
    sent = {(e.origin, e.target): e.selectivity for e in one_way(loop).edges}
    assert sent["c", "a"] == sent["c", "b"] == pytest.approx(0.475)
    assert np.isfinite(passages(loop)).all()


@given(st.data())
def test_every_way_has_an_end_whatever_leads_back(data: st.DataObject) -> None:
    names = [f"n{i}" for i in range(data.draw(st.integers(1, 6)))]
    chain = {("source", "n0"), *pairwise(names)}
    pairs = data.draw(st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=8))
    sizes = st.floats(0.0, 10.0)
    edges = tuple(Edge(a, b, data.draw(sizes)) for a, b in sorted(chain | pairs))
    loops = Topology("t", tuple(Operator(n, 500.0, batch=COSTS) for n in names), edges)
    found = passages(loops)
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_the_share_of_rows_that_pass_is_that_of_the_one_way_topology() -> None:
    split = pipeline(("source", "a", 3.0), ("a", "b", 8.0), ("a", "c", 0.1), ("b", "d", 1.0), ("c", "d", 0.5))
    assert visits(one_way(split)).tolist() == pytest.approx(passages(split).tolist())


def test_a_branch_without_rows_takes_no_share_of_the_paths() -> None:
    operators = tuple(Operator(name, 9.0) for name in "abc")
    edges = (Edge("source", "a"), Edge("a", "b"), Edge("a", "c", 0.0))
    assert passages(Topology("t", operators, edges)).tolist() == [1.0, 1.0, 0.0]


def test_small_errors_of_many_edges_do_not_add_up() -> None:
    names = [f"o{number}" for number in range(15)]
    edges = (Edge("source", "o0"), *(Edge(a, b) for a, b in pairwise(names)))
    chain = Topology("c", tuple(Operator(name, 10.0) for name in names), edges)
    reach = np.array([1.019 ** (number + 1) for number in range(15)])
    assert visits(with_visits(chain, reach)) == pytest.approx(reach, rel=0.02)
    silent = Topology("s", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b", 0.0)))
    assert visits(with_visits(silent, np.array([1.0, 0.5]))).tolist() == [1.0, 0.5]
