from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.lab.simulate import Behaviour, RowRouting, advance, begin, inside, shared, shuffle, simulate, weighted
from sluicegate.lab.simulate.world import World


def tandem(first: float = 1.0, second: float = 1.0) -> Topology:
    return Topology("tandem", (Operator("a", first), Operator("b", second)), (Edge("source", "a"), Edge("a", "b")))


@pytest.mark.parametrize("room", [0, 1, 3, 10])
def test_a_saturated_pair_of_equal_servers_passes_what_its_buffer_allows(room: int) -> None:
    """Two exponential servers with room for n rows between them, the first never starved: mu (n + 2)/(n + 3)."""
    behaviour = Behaviour(capacity={"b": room})
    result = simulate(tandem(), 1.5, {"a": 1, "b": 1}, 200_000, seed=1, behaviour=behaviour)
    assert result.operators["b"].arrivals_per_s == pytest.approx((room + 2) / (room + 3), rel=0.01)
    assert not result.stable


def test_a_network_slowed_below_its_load_by_back_pressure_alone_is_unstable() -> None:
    result = simulate(tandem(), 0.8, {"a": 1, "b": 1}, 100_000, seed=1, behaviour=Behaviour(capacity={"b": 0}))
    assert not result.stable
    assert "back-pressure" in result.reasons[0]
    assert result.growth_per_s == pytest.approx(0.8 - 2 / 3, rel=0.15)


def test_a_blocked_server_is_not_busy_and_the_blocker_is_named() -> None:
    result = simulate(
        tandem(first=10.0), 0.9, {"a": 1, "b": 1}, 100_000, seed=2, behaviour=Behaviour(capacity={"b": 5})
    )
    assert result.stable
    first, second = result.operators["a"], result.operators["b"]
    assert second.backpressure == pytest.approx(first.blocked, rel=0.02)
    assert second.backpressure > 0.2
    assert first.utilisation == pytest.approx(0.09, rel=0.05)
    assert second.utilisation == pytest.approx(0.9, rel=0.05)


def test_back_pressure_moves_the_waiting_but_little_of_the_time() -> None:
    """With a fast first server, rows wait for the second in front of either: M/M/1 at the second in the end."""
    bounded = simulate(
        tandem(first=1000.0), 0.7, {"a": 1, "b": 1}, 300_000, seed=3, behaviour=Behaviour(capacity={"b": 2})
    )
    assert bounded.mean_s is not None
    assert bounded.ci95_s is not None
    assert abs(bounded.mean_s - 1 / 0.3) <= bounded.ci95_s + 0.01


def test_rows_held_outside_count_from_their_birth() -> None:
    held = simulate(tandem(), 0.6, {"a": 1, "b": 1}, 100_000, seed=4, behaviour=Behaviour(capacity={"a": 0, "b": 0}))
    free = simulate(tandem(), 0.6, {"a": 1, "b": 1}, 100_000, seed=4)
    assert held.mean_s is not None
    assert free.mean_s is not None
    assert held.mean_s > free.mean_s
    assert held.mean_s == pytest.approx(held.completion_mean_s)


def test_a_loop_with_full_queues_does_not_lock_up() -> None:
    loop = Topology(
        "loop",
        (Operator("a", 10.0), Operator("b", 10.0)),
        (Edge("source", "a"), Edge("a", "b"), Edge("b", "a", 0.5)),
    )
    result = simulate(loop, 20.0, {"a": 1, "b": 1}, 1_000, seed=1, behaviour=Behaviour(capacity={"a": 1, "b": 1}))
    assert result.operators["b"].arrivals_per_s > 5.0


def longest_queue(world: World, name: str) -> int:
    node = world.net.nodes[world.index(name)]
    first = int(node["first"])
    return int(world.net.slots["waiting"][first : first + int(node["servers"])].max())


@given(
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([shared(), shuffle(), weighted(), weighted(5, 1, 1)]),
    st.integers(1, 3),
    st.sampled_from([0.5, 1.0, 1.7, 3.0]),
    st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_a_queue_never_exceeds_its_bound_and_no_row_is_lost(
    count_rows: Callable[[World], int],
    first: int,
    second: int,
    routing: RowRouting,
    servers: int,
    copies: float,
    seed: int,
) -> None:
    topology = Topology(
        "t",
        (Operator("a", 9.0), Operator("b", 8.0), Operator("c", 9.0)),
        (Edge("source", "a"), Edge("a", "b", copies), Edge("a", "c", 0.4), Edge("b", "c")),
    )
    behaviour = Behaviour(routing={"b": routing}, capacity={"b": first, "c": second})
    world = begin(topology, 12.0, {"a": 2, "b": servers, "c": 2}, seed, behaviour=behaviour)
    for step in range(1, 60):
        advance(world, step * 0.25)
        assert longest_queue(world, "b") <= first
        assert longest_queue(world, "c") <= second
        assert count_rows(world) == inside(world)
