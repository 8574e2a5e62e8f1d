"""The window and margin that would have been best."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sluicegate.errors import BadInput
from sluicegate.policy.peers import RecentPeak, cheapest_recent_peak
from sluicegate.policy.peers.recent_peak_grid import MARGINS, WINDOWS, GridPoint, GridProtocol, machines_for

TENS: NDArray[np.float64] = np.linspace(0.0, 990.0, 100)


def _one(rates: list[float], protocol: GridProtocol, window: int, margin: float = 0.0, ahead: int = 2) -> GridPoint:
    answer = cheapest_recent_peak(
        np.array(rates),
        TENS,
        0.5,
        protocol=protocol,
        windows=(window,),
        margins=(margin,),
        cycle_steps=4,
        ahead_steps=ahead,
        first_step=4,
    )
    return answer.best


def test_the_grid_is_the_specified_one() -> None:
    assert (WINDOWS[0], WINDOWS[-1], len(WINDOWS)) == (3, 20, 18)
    assert (MARGINS[0], MARGINS[-1], len(MARGINS)) == (0.0, 0.4, 21)


def test_a_cycle_is_decided_ahead_of_it_from_finished_steps_only() -> None:
    # decided at step 2 for steps 4 to 7, from steps 0 and 1: 25 rows/s, 3 machines of 10
    point = _one([15.0, 25.0, 99.0, 99.0, 20.0, 29.0, 30.0, 31.0], "cycle", window=2)
    assert point == GridPoint(2, 0.0, 0.5, 12)


def test_capacity_equal_to_the_load_is_late() -> None:
    assert _one([9.0] * 4 + [9.9, 9.9, 9.9, 10.0], "cycle", window=2).on_time == 0.75


def test_free_machines_serve_after_their_start_up_and_are_paid_from_the_start() -> None:
    # wanted from step 5 on: 5 (40 seen at step 4); it serves from step 7
    point = _one([9.0, 9.0, 9.0, 9.0, 40.0, 40.0, 40.0, 40.0], "free", window=1)
    assert point.machine_steps == 1 + 5 + 5 + 5
    assert point.on_time == 0.25


def test_in_the_free_protocol_machines_stop_at_once() -> None:
    point = _one([40.0, 40.0, 40.0, 40.0, 9.0, 9.0, 9.0, 9.0], "free", window=1)
    assert point.machine_steps == 5 + 1 + 1 + 1
    assert point.on_time == 1.0


def test_a_start_up_that_is_called_off_never_serves() -> None:
    # a spike at step 4 asks for machines at step 5 that are stopped again at step 6
    point = _one([9.0, 9.0, 9.0, 9.0, 40.0, 9.0, 9.0, 9.0], "free", window=1)
    assert point.machine_steps == 1 + 5 + 1 + 1
    assert point.on_time == 0.75


def test_noise_lowers_what_is_carried_but_not_what_is_decided() -> None:
    rates, noise = np.full(40, 19.0), np.ones(40)
    noise[30] = 0.9
    answer = cheapest_recent_peak(rates, TENS, 0.99, windows=(3,), margins=(0.0,), noise=noise, first_step=20)
    assert answer.cheapest is None
    assert answer.best == GridPoint(3, 0.0, 0.95, 40)


def test_the_cheapest_that_reaches_the_target_is_chosen() -> None:
    rng = np.random.default_rng(7)
    rates = 200 + 50 * np.sin(np.arange(2000) / 100) + rng.normal(0, 10, 2000)
    easy = cheapest_recent_peak(rates, TENS, 0.9).cheapest
    hard = cheapest_recent_peak(rates, TENS, 0.999).cheapest
    assert easy is not None
    assert hard is not None
    assert easy.on_time >= 0.9
    assert hard.on_time >= 0.999
    assert easy.machine_steps < hard.machine_steps


def test_an_unreachable_target_gives_none_and_the_best_there_is() -> None:
    answer = cheapest_recent_peak(np.full(100, 5000.0), TENS, 0.5)
    assert answer.cheapest is None
    assert (answer.best.on_time, answer.best.machine_steps) == (0.0, 99 * 70)


def test_the_grid_agrees_with_the_policy_it_is_a_grid_of() -> None:
    from sluicegate.domain import Edge, Observation, Operator, Situation, Topology

    rates = np.random.default_rng(3).uniform(50, 400, 120)
    one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    policy = RecentPeak(window_steps=7, margin=0.14)
    memory, paid = policy.start(), 0
    for step, rate in enumerate(rates[:-1].tolist()):  # the rate of a step is known when the next begins
        now_s = 60.0 * (step + 1)
        memory, proposal = policy.propose(memory, Situation(now_s, one, Observation(now_s, rate, {}), rate, {}))
        paid += proposal.total if step + 1 >= 20 else 0
    grid = cheapest_recent_peak(rates, TENS, 0.0, protocol="free", windows=(7,), margins=(0.14,), first_step=20)
    assert grid.best.machine_steps == paid


def test_a_window_longer_than_the_trace_sees_all_there_is() -> None:
    answer = cheapest_recent_peak(np.full(5, 19.0), TENS, 0.9, protocol="free", windows=(9,), first_step=4)
    assert answer.cheapest == GridPoint(9, 0.0, 1.0, 2)


def test_more_machines_than_there_are_cannot_be_had() -> None:
    assert machines_for(np.array([5.0, 10.0, 1e9]), np.array([0.0, 10.0, 10.0, 30.0])).tolist() == [1, 3, 3]


def test_input_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadInput, match="falls"):
        cheapest_recent_peak(np.ones(100), np.array([0.0, 2.0, 1.0]), 0.9)
    with pytest.raises(BadInput, match="too few"):
        cheapest_recent_peak(np.ones(10), TENS, 0.9)
    with pytest.raises(BadInput, match="windows"):
        cheapest_recent_peak(np.ones(100), TENS, 0.9, windows=())
    with pytest.raises(BadInput, match="margins"):
        cheapest_recent_peak(np.ones(100), TENS, 0.9, margins=(-0.1,))
    with pytest.raises(BadInput, match="one factor per rate"):
        cheapest_recent_peak(np.ones(100), TENS, 0.9, noise=np.ones(3))
