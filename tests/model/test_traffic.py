from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.model.traffic import outside_rate, solve, visits


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
