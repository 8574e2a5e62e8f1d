from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.model.learned import with_visits
from sluicegate.model.stations import Stations
from sluicegate.model.traffic import in_batches, one_way, outside_rate, passages, solve, visits


def topology(count: int, *edges: Edge, shares: dict[str, float] | None = None) -> Topology:
    return Topology("t", tuple(Operator(f"o{i}", 10.0) for i in range(count)), edges, shares or {})


def test_a_split_and_a_join_add_up() -> None:
    diamond = topology(
        4, Edge("source", "o0"), Edge("o0", "o1", 0.4), Edge("o0", "o2", 0.6), Edge("o1", "o3"), Edge("o2", "o3")
    )
    assert visits(diamond).tolist() == pytest.approx([1, 0.4, 0.6, 1.0])


def test_outputs_are_duplicated_to_all_out_edges() -> None:
    star = topology(3, Edge("source", "o0"), Edge("source", "o1"), Edge("o0", "o2"), Edge("o1", "o2"))
    assert visits(star).tolist() == [1, 1, 2]


def test_a_loop_multiplies_what_enters_it() -> None:
    loop = topology(2, Edge("source", "o0"), Edge("o0", "o1"), Edge("o1", "o0", 0.75))
    assert visits(loop).tolist() == pytest.approx([4, 4])


@pytest.mark.parametrize("gain", [1.0, 1.5])
def test_a_loop_that_grows_is_an_error_that_names_it(gain: float) -> None:
    with pytest.raises(BadInput, match=r"'o1', 'o2'.*gain.*selectivity"):
        visits(topology(3, Edge("source", "o0"), Edge("o0", "o1"), Edge("o1", "o2"), Edge("o2", "o1", gain)))


def test_a_self_loop_that_grows_is_an_error() -> None:
    with pytest.raises(BadInput, match="'o0' has gain 1 >= 1"):
        visits(topology(1, Edge("source", "o0"), Edge("o0", "o0", 1.0)))


def test_two_loops_that_share_an_operator_are_judged_together() -> None:
    edges = (Edge("source", "o0"), Edge("o0", "o1", 0.6), Edge("o1", "o0"), Edge("o0", "o2", 0.6), Edge("o2", "o0"))
    with pytest.raises(BadInput, match="gain"):
        visits(topology(3, *edges))


def test_named_sources_send_at_their_own_rates() -> None:
    two = topology(1, Edge("source:plus", "o0"), Edge("source:minus", "o0"), shares={"source:minus": 0.5})
    assert visits(two).tolist() == [1.5]
    assert outside_rate(two, 100.0) == 150.0
    assert solve(two, {"source:plus": 3.0, "source:minus": 4.0}).tolist() == [7.0]


def test_large_loops_are_solved_sparsely() -> None:
    n = 600
    ring = [Edge(f"o{i}", f"o{(i + 1) % n}", 1.0 if i else 0.5) for i in range(n)]
    assert visits(topology(n, Edge("source", "o0"), *ring))[0] == pytest.approx(2.0)
    with pytest.raises(BadInput, match="gain"):
        visits(topology(n, Edge("source", "o0"), *[Edge(f"o{i}", f"o{(i + 1) % n}", 1.01) for i in range(n)]))


@given(st.lists(st.floats(0, 0.9), min_size=1, max_size=6), st.floats(0, 0.9))
def test_what_comes_in_goes_through(selectivities: list[float], back: float) -> None:
    n = len(selectivities) + 1
    chain = [Edge(f"o{i}", f"o{i + 1}", s) for i, s in enumerate(selectivities)]
    loop = topology(n, Edge("source", "o0"), *chain, Edge(f"o{n - 1}", f"o{n - 1}", back))
    rates = visits(loop) * 50.0
    matrix = np.zeros((n, n))
    for edge in loop.inner_edges:
        matrix[loop.index[edge.origin], loop.index[edge.target]] = edge.selectivity
    external = np.zeros(n)
    external[0] = 50.0
    assert rates == pytest.approx(external + matrix.T @ rates, abs=1e-9)


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
