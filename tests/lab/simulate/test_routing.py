from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.lab.simulate import (
    Behaviour,
    RowRouting,
    advance,
    begin,
    inside,
    shuffle,
    simulate,
    spread,
    weighted,
)
from sluicegate.lab.simulate.world import World
from sluicegate.model.erlang import mean_sojourn_s


def run(routing: RowRouting | None, rate: float = 3.0, servers: int = 4, seed: int = 1) -> tuple[float, float]:
    topology = Topology("one", (Operator("a", 1.0),), (Edge("source", "a"),))
    behaviour = Behaviour(routing={"a": routing} if routing else {})
    result = simulate(topology, rate, {"a": servers}, 100_000, seed, behaviour=behaviour)
    assert result.mean_s is not None
    assert result.ci95_s is not None
    return result.mean_s, result.ci95_s


def test_rows_sent_at_random_make_every_instance_a_single_server() -> None:
    mean, ci = run(weighted())
    assert abs(mean - mean_sojourn_s(0.75, 1.0, 1)) <= ci


def test_unequal_shares_make_unequal_single_servers() -> None:
    """At 90% load single runs wander far, so many seeds are held against theory, not one."""
    expected = 0.75 * mean_sojourn_s(0.9, 1.0, 1) + 0.25 * mean_sojourn_s(0.3, 1.0, 1)
    runs = [run(weighted(3, 1), rate=1.2, servers=2, seed=seed) for seed in range(40)]
    means = np.array([mean for mean, _ in runs])
    assert means.mean() == pytest.approx(expected, abs=3 * means.std() / np.sqrt(40))
    assert sum(abs(mean - expected) <= ci for mean, ci in runs) >= 34


def test_a_shared_queue_beats_turns_and_turns_beat_chance() -> None:
    together, in_turn, by_chance = run(None)[0], run(shuffle())[0], run(weighted())[0]
    assert together < in_turn < by_chance


def test_shares_for_another_number_of_servers_are_even() -> None:
    assert weighted(3, 1).shares(4) == (0.25,) * 4


@pytest.mark.parametrize("shares", [(0.0, 0.0), (-1.0,)])
def test_impossible_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(BadInput):
        weighted(*shares)


def test_shares_in_an_even_order_wait_less_than_at_random() -> None:
    """The same shares: sent evenly an instance sees fewer bursts."""
    evenly, by_chance = (run(routing, rate=1.2, servers=2)[0] for routing in (spread(3, 1), weighted(3, 1)))
    assert evenly < 0.9 * by_chance


def test_an_even_order_keeps_to_the_shares() -> None:
    """One instance of a quarter of the rows would drown with more: it is nine tenths busy."""
    topology = Topology("one", (Operator("a", 1.0),), (Edge("source", "a"),))
    result = simulate(topology, 1.2, {"a": 2}, 20_000, 1, behaviour=Behaviour(routing={"a": spread(3, 1)}))
    assert result.stable
    assert result.operators["a"].utilisation == pytest.approx(0.6, abs=0.02)


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
    st.sampled_from([RowRouting(), shuffle(), weighted(), weighted(5, 1, 1)]),
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
