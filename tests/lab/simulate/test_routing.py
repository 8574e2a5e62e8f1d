from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.lab.simulate import Behaviour, RowRouting, keyed, shuffle, simulate, spread, weighted
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


def test_skewed_keys_wait_longer_than_even_ones() -> None:
    assert run(keyed(0.0), rate=2.0)[0] < run(keyed(0.8), rate=2.0)[0]


@given(st.floats(0, 3), st.integers(1, 256), st.integers(1, 64))
def test_shares_add_up_to_1(skew: float, groups: int, servers: int) -> None:
    shares = keyed(skew, groups).shares(servers)
    assert len(shares) == servers
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0


def test_shares_for_another_number_of_servers_are_even() -> None:
    assert weighted(3, 1).shares(4) == (0.25,) * 4


@pytest.mark.parametrize("shares", [(0.0, 0.0), (-1.0,)])
def test_impossible_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(BadInput):
        weighted(*shares)


@pytest.mark.parametrize(("skew", "groups"), [(-1.0, 8), (1.0, 0)])
def test_impossible_keys_are_refused(skew: float, groups: int) -> None:
    with pytest.raises(BadInput):
        keyed(skew, groups)


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
