"""Policies 0 to 7."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import (
    Edge,
    Forecast,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Proposal,
    Situation,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.model.mst import choose_model
from sluicegate.policy.in_steps import InSteps
from sluicegate.policy.papers.uncertainty import Samples, Uncertainty, UncertaintyMemory, cycle_peak, online_sample
from sluicegate.policy.policy import Policy
from sluicegate.policy.spread import spread, sustained_per_s

ONE = Topology("one", (Operator("a", 100.0),), (Edge("source", "a"),))
TWO = Topology("two", (Operator("a", 100.0), Operator("b", 25.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
NOISY: Samples = ((3, 290.0), (4, 430.0), (6, 560.0), (8, 850.0), (24, 2350.0))
BENDING: Samples = tuple((m, 100.0 * m - 1.0 * m * m) for m in (3, 4, 6, 8, 24))


def situation(
    rate: float,
    forecast: Forecast | None = None,
    saturated: float | None = None,
    running: int = 4,
    limits: Limits | None = None,
) -> Situation:
    seen = Observation(0.0, rate, {"a": running}, {"a": OperatorObservation(saturated_per_s=saturated)})
    return Situation(0.0, ONE, seen, rate, {"a": rate}, limits=limits or Limits(), forecast=forecast)


def ahead(mean: float, sd: float, steps: int = 12) -> Forecast:
    return Forecast(60.0, np.full(steps, mean), np.full(steps, sd))


def decided(policy: Uncertainty, now: Situation) -> Proposal:
    return policy.propose(policy.start(), now)[1]


def test_it_is_a_policy() -> None:
    policy: Policy[UncertaintyMemory] = Uncertainty(7)
    assert policy.name == "uncertainty-7"


@pytest.mark.parametrize(
    ("number", "aware", "learns", "forecasts"),
    [
        (0, False, False, False),
        (1, True, False, False),
        (2, False, True, False),
        (3, True, True, False),
        (4, False, False, True),
        (5, True, False, True),
        (6, False, True, True),
        (7, True, True, True),
    ],
)
def test_the_number_says_which_techniques_are_on(number: int, aware: bool, learns: bool, forecasts: bool) -> None:
    policy = Uncertainty(number)
    assert (policy.aware, policy.learns, policy.forecasts) == (aware, learns, forecasts)
    assert policy.forecaster == ("arma" if forecasts else None)


def test_policies_with_a_forecast_decide_the_start_up_time_before_the_cycle() -> None:
    assert [Uncertainty(n).lead_steps for n in range(8)] == [0, 0, 0, 0, 2, 2, 2, 2]


def test_erratum_policy_0_looks_at_the_load_of_now() -> None:
    assert decided(Uncertainty(0), situation(950.0, ahead(5000.0, 100.0))).total == 10


@given(st.floats(0.0, 3000.0))
@settings(max_examples=40, deadline=None)
def test_policy_0_is_eq_4(rate: float) -> None:
    model = choose_model(NOISY)
    least = next((m for m in range(1, 129) if model.mean_per_s(m) > rate), None)
    proposal = decided(Uncertainty(0, training=NOISY), situation(rate))
    assert proposal.feasible == (least is not None)
    if least is not None:
        assert proposal.total == least


@given(st.floats(0.0, 2000.0), st.sampled_from([1, 3, 4, 5, 6, 7]), st.floats(0.0, 300.0))
@settings(max_examples=40, deadline=None)
def test_rho_one_half_is_eq_4_for_every_policy(rate: float, number: int, sd: float) -> None:
    now = situation(rate, ahead(rate, sd))
    half = Uncertainty(number, rho=0.5, training=NOISY)
    assert decided(half, now).total == decided(Uncertainty(0, training=NOISY), now).total


def test_each_variance_adds_machines() -> None:
    now = situation(1000.0, ahead(1000.0, 100.0))
    fine = tuple((10 * m, rate) for m, rate in NOISY)
    plain, curve, load, both = (decided(Uncertainty(n, training=fine, most=600), now).total for n in (0, 1, 4, 5))
    assert plain < curve < both
    assert plain < load < both


def test_policy_5_takes_both_variances_as_in_eq_21() -> None:
    model = choose_model(NOISY)
    expected = model.fewest(1000.0, 0.95, 100.0**2)[0]
    assert decided(Uncertainty(5, training=NOISY), situation(1.0, ahead(1000.0, 100.0))).total == expected


@given(st.integers(0, 7), st.floats(0.0, 1500.0), st.floats(0.0, 500.0), st.floats(0.5, 0.98), st.floats(0.0, 0.019))
@settings(max_examples=60, deadline=None)
def test_more_load_and_more_certainty_never_take_fewer_machines(
    number: int, rate: float, more: float, rho: float, surer: float
) -> None:
    policy = Uncertainty(number, rho=rho, training=NOISY)
    now, busier = situation(rate, ahead(rate, 50.0)), situation(rate + more, ahead(rate + more, 50.0))
    assert decided(policy, busier).total >= decided(policy, now).total
    assert decided(replace(policy, rho=rho + surer), now).total >= decided(policy, now).total


def test_erratum_no_machine_beyond_the_curves_maximum_and_it_says_so() -> None:
    proposal = decided(Uncertainty(0, training=BENDING), situation(1e6))
    assert proposal.total == 50
    assert not proposal.feasible
    assert "no size up to 128 carries" in proposal.reasons[0]
    assert "50 machines carry most" in proposal.reasons[0]


@given(st.integers(0, 7), st.floats(0.0, 1e5), st.integers(1, 60), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_limits_are_kept(number: int, rate: float, budget: int, most: int) -> None:
    limits = Limits(budget=budget, most=most)
    proposal = decided(Uncertainty(number, training=NOISY), situation(rate, ahead(rate, 10.0), limits=limits))
    assert 1 <= proposal.total <= min(budget, most)


def test_the_cycles_peak_is_the_largest_mean_and_two_deviations() -> None:
    mean = np.array([99.0, 10.0, 50.0, 40.0, *([1.0] * 7), 99.0])
    sd = np.array([1.0, 1.0, 1.0, 10.0, *([1.0] * 7), 1.0])
    peak = cycle_peak(Forecast(60.0, mean, sd), startup_steps=2, cycle_steps=10)
    assert (peak.rate_per_s, peak.variance) == (40.0, 100.0)


def test_the_cycle_starts_when_new_machines_are_there() -> None:
    counted = Forecast(60.0, np.arange(1.0, 21.0), np.zeros(20))
    assert cycle_peak(counted, startup_steps=2, cycle_steps=10).rate_per_s == 11.0
    assert cycle_peak(counted, startup_steps=5, cycle_steps=1).rate_per_s == 5.0
    assert cycle_peak(counted, startup_steps=0, cycle_steps=1).rate_per_s == 1.0


def test_a_forecast_shorter_than_the_start_up_gives_its_last_step() -> None:
    assert cycle_peak(Forecast(60.0, np.array([7.0, 8.0]), np.zeros(2)), 5, 10).rate_per_s == 8.0


def test_without_a_forecast_the_present_rate_counts_and_it_says_so() -> None:
    proposal = decided(Uncertainty(4), situation(950.0))
    assert proposal.total == 10
    assert "no forecast yet" in proposal.reasons[0]


def test_a_saturated_operator_teaches_the_policies_that_learn() -> None:
    now = situation(950.0, ahead(950.0, 1.0), saturated=200.0, running=4)
    for number in range(8):
        policy = Uncertainty(number, training=NOISY)
        memory, proposal = policy.propose(policy.start(), now)
        assert memory.learned == (1 if policy.learns else 0)
        assert memory.model is not None
        assert memory.model.samples.number == 5 + memory.learned
        assert (
            any("learned online: 4 machines sustained 200 rows/s" in why for why in proposal.reasons) == policy.learns
        )


def test_learning_that_machines_carry_less_takes_more_of_them() -> None:
    policy = Uncertainty(2, training=NOISY)
    memory = policy.start()
    before = decided(policy, situation(950.0)).total
    for _ in range(5):
        memory, proposal = policy.propose(memory, situation(950.0, saturated=600.0, running=before))
    assert proposal.total > before


def test_no_sample_is_taken_during_a_rescale_or_from_nothing() -> None:
    now = situation(950.0, saturated=200.0)
    assert online_sample(now) == (4, 200.0)
    assert online_sample(replace(now, observation=replace(now.observation, rescaling=True))) is None
    assert online_sample(situation(950.0)) is None
    assert online_sample(situation(950.0, saturated=0.0)) is None


def test_a_sample_of_one_of_several_operators_is_a_rate_of_the_pipeline() -> None:
    seen = {"a": OperatorObservation(), "b": OperatorObservation(saturated_per_s=60.0)}
    now = Situation(0.0, TWO, Observation(0.0, 500.0, {"a": 3, "b": 2}, seen), 500.0, {"a": 500.0, "b": 250.0})
    assert online_sample(now) == (5, 120.0)


def test_an_operator_that_next_to_no_row_reaches_teaches_nothing() -> None:
    rare = replace(TWO, edges=tuple(replace(e, selectivity=1e-310) if e.target == "b" else e for e in TWO.edges))
    seen = {"a": OperatorObservation(), "b": OperatorObservation(saturated_per_s=60.0)}
    now = Situation(0.0, rare, Observation(0.0, 500.0, {"a": 3, "b": 2}, seen), 500.0, {"a": 500.0, "b": 0.0})
    assert online_sample(now) is None


def test_machines_are_spread_over_the_operators() -> None:
    now = Situation(0.0, TWO, Observation(0.0, 390.0, {"a": 1, "b": 1}), 390.0, {"a": 390.0, "b": 195.0})
    proposal = decided(Uncertainty(0), now)
    assert proposal.processors == spread(TWO, proposal.total)
    assert sustained_per_s(TWO, spread(TWO, proposal.total)) > 390.0
    assert sustained_per_s(TWO, spread(TWO, proposal.total - 2)) < 390.0


def test_operators_that_need_more_than_the_load_get_their_least_and_it_says_so() -> None:
    now = Situation(0.0, TWO, Observation(0.0, 1.0, {"a": 1, "b": 1}), 1.0, {"a": 1.0, "b": 0.5})
    proposal = decided(Uncertainty(0), now)
    assert proposal.processors == {"a": 1, "b": 1}
    assert "2 machines instead of 1" in proposal.reasons[1]


def test_a_curve_of_measurements_is_trained_once() -> None:
    policy = Uncertainty(1, training=((3, 300.0), (4, 400.0), (6, 600.0)))
    memory, _ = policy.propose(policy.start(), situation(500.0))
    again, _ = policy.propose(memory, situation(900.0))
    assert again.model is memory.model


def test_a_curve_of_guessed_rates_follows_what_is_learned_of_them() -> None:
    """On Spark the first decision stands on guesses: a curve kept from then would be wrong for ever."""
    policy, slow = Uncertainty(0), situation(500.0)
    memory, fast = policy.propose(policy.start(), slow)
    halved = tuple(replace(o, service_per_s=o.service_per_s / 2) for o in slow.topology.operators)
    _, then = policy.propose(memory, replace(slow, topology=slow.topology.with_operators(halved)))
    assert then.total >= 2 * fast.total - 1


def test_a_pipeline_that_no_row_reaches_runs_on_the_least() -> None:
    dry = Topology("dry", (Operator("a", 100.0),), (Edge("source", "a", 0.0),))
    now = replace(situation(100.0), topology=dry)
    proposal = decided(Uncertainty(7), now)
    assert proposal.processors == {"a": 1}
    assert "no rows reach" in proposal.reasons[0]


def test_no_load_takes_one_machine() -> None:
    assert decided(Uncertainty(0), situation(0.0)).total == 1


def test_an_application_that_does_not_scale_runs_on_one_machine() -> None:
    flat: Samples = tuple((m, 60.0) for m in (3, 4, 6, 8, 24))
    assert decided(Uncertainty(0, training=flat), situation(49.0)).total == 1


def test_the_reason_carries_the_numbers() -> None:
    reason, curve = decided(Uncertainty(5, training=NOISY), situation(1.0, ahead(1000.0, 100.0))).reasons
    assert "above 1,000 rows/s (forecast 2 steps ahead, sd 100 rows/s)" in reason
    assert "wanted 0.95" in reason
    assert "(chosen by training error), fitted to 5 samples of 3, 4, 6, 8, 24 machines, 0 of them learned" in curve
    assert curve.startswith("model ")
    assert "rows/s is counted" in curve


@pytest.mark.parametrize(
    ("number", "rho", "cycle", "startup", "most"),
    [
        (8, 0.9, 10, 2, None),
        (-1, 0.9, 10, 2, None),
        (0, 0.4, 10, 2, None),
        (0, 1.0, 10, 2, None),
        (0, 0.9, 0, 2, None),
        (0, 0.9, 10, -1, None),
        (0, 0.9, 10, 2, 0),
    ],
)
def test_options_that_cannot_work_are_refused(
    number: int, rho: float, cycle: int, startup: int, most: int | None
) -> None:
    with pytest.raises(BadInput):
        Uncertainty(number, rho=rho, cycle_steps=cycle, startup_steps=startup, most=most)


def test_a_held_decision_stays_infeasible() -> None:
    policy = InSteps(Uncertainty(0, training=((1, 10.0), (2, 20.0), (3, 30.0)), most=3), 60.0)
    one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))

    def at(now_s: float) -> Situation:
        return Situation(now_s, one, Observation(now_s, 95.0, {"a": 1}), 95.0, {"a": 95.0})

    memory, first = policy.propose(policy.start(), at(0.0))
    assert not first.feasible
    assert not policy.propose(memory, at(10.0))[1].feasible
