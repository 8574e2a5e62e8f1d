"""Throughput curves: fit, choice, guards and the fewest machines."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.model.mst import Form, MstModel, choose_model, disagreeing_sizes, fit_model
from sluicegate.model.mst_samples import samples_of

SIZES = (3, 4, 6, 8, 24)


def at(sizes: tuple[int, ...], curve: Callable[[float], float]) -> list[tuple[int, float]]:
    return [(m, curve(m)) for m in sizes]


def saturating(m: float) -> float:
    return 1 / (0.001 + 0.01 / m + 0.0001 * m)


def bending(m: float) -> float:
    return 5.0 + 10.0 * m - 0.05 * m * m


forms = st.sampled_from([1, 2])
noisy = st.lists(st.floats(0.5, 1.5), min_size=5, max_size=5).map(
    lambda shakes: [(m, 10.0 * m**0.8 * shake) for m, shake in zip(SIZES, shakes, strict=True)]
)


def curve_of(model: MstModel) -> list[float]:
    return [model.mean_per_s(m) for m in range(1, model.largest + 1)]


def test_each_form_finds_the_curve_it_describes() -> None:
    for model, curve in (
        (fit_model(samples_of(at(SIZES, saturating)), 1), saturating),
        (fit_model(samples_of(at(SIZES, bending)), 2), bending),
    ):
        assert [model.mean_per_s(m) for m in (1, 10, 60)] == pytest.approx([curve(m) for m in (1, 10, 60)], rel=1e-6)
        assert model.sd_per_s == pytest.approx(0.0, abs=1e-6)


def test_the_form_that_fits_the_training_is_chosen() -> None:
    assert choose_model(at(SIZES, saturating)).form == 1
    assert choose_model(at(SIZES, bending)).form == 2


def test_validation_where_the_forms_disagree_overrules_the_training() -> None:
    training = at(SIZES, saturating)
    other = fit_model(samples_of(training), 2)
    apart = disagreeing_sizes(fit_model(samples_of(training), 1), other)
    assert 14 in apart
    assert choose_model(training, validation=[(14, other.mean_per_s(14))]).form == 2


def test_validation_where_the_forms_agree_decides_nothing() -> None:
    training = at(SIZES, saturating)
    assert 5 not in disagreeing_sizes(fit_model(samples_of(training), 1), fit_model(samples_of(training), 2))
    assert choose_model(training, validation=[(5, 1e6)]).form == 1


def test_measured_sizes_are_not_worth_measuring_again() -> None:
    samples = samples_of(at(SIZES, saturating))
    assert not set(SIZES) & set(disagreeing_sizes(fit_model(samples, 1), fit_model(samples, 2), threshold=0.0))


def test_erratum_eq_6_residuals_of_form_1_are_in_units_of_throughput() -> None:
    pairs = [(m, saturating(m) * shake) for m, shake in zip(SIZES, (1.05, 0.95, 1.05, 0.97, 1.02), strict=True)]
    model = fit_model(samples_of(pairs), 1)
    squares = sum((rate - model.mean_per_s(m)) ** 2 for m, rate in pairs)
    assert model.sd_per_s == pytest.approx(math.sqrt(squares / (5 - len(model.weights))))
    assert model.sd_per_s > 1.0


@pytest.mark.parametrize(("form", "free"), [(1, 1), (2, 2)])
def test_erratum_five_sizes_leave_one_or_two_degrees_of_freedom(form: Form, free: int) -> None:
    curve = saturating if form == 1 else bending
    model = fit_model(samples_of(at(SIZES, curve)), form)
    assert model.samples.number - len(model.weights) == free


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_samples_carry_few_coefficients(form: Form, count: int) -> None:
    model = fit_model(samples_of(at(SIZES[:count], lambda m: 10.0 * m)), form)
    assert len(model.weights) <= max(1, count - 1)
    assert model.mean_per_s(40) == pytest.approx(400.0)


def test_one_sample_scales_in_proportion_and_is_taken_as_10_percent_sure() -> None:
    model = choose_model([(4, 80.0)])
    assert model.mean_per_s(2) == pytest.approx(40.0)
    assert model.sd_per_s == pytest.approx(8.0)


def test_samples_of_a_single_size_give_their_deviation() -> None:
    model = choose_model([(4, 70.0), (4, 80.0), (4, 90.0)])
    assert model.mean_per_s(4) == pytest.approx(80.0)
    assert model.sd_per_s == pytest.approx(10.0)


def test_erratum_a_pole_of_the_curve_is_never_passed() -> None:
    # 1/MST falls to zero near m = 40: fitted as it is, MST would be infinite there and negative beyond
    falling = fit_model(samples_of(at((3, 4, 6, 8, 24), lambda m: 1 / (0.1 / m + 0.01 - 0.0003 * m))), 1)
    curve = curve_of(falling)
    assert all(math.isfinite(value) and value >= 0 for value in curve)
    assert max(curve) <= falling.mean_per_s(24) * 128 / 24 * (1 + 1e-9)


def test_erratum_no_size_beyond_the_maximum_is_chosen() -> None:
    model = fit_model(samples_of(at(SIZES, bending)), 2)
    assert model.fewest(1e9) == (100, False)
    assert model.fewest(1e9, most=40) == (40, False)
    assert model.mean_per_s(120) < model.mean_per_s(100)


def test_erratum_a_curve_that_crosses_zero_stays_at_zero() -> None:
    model = fit_model(samples_of(at(SIZES, lambda m: 30.0 * m - m * m)), 2)
    assert model.mean_per_s(40) == 0.0
    assert model.fewest(0.0) == (1, True)


def test_beyond_the_largest_measured_size_nothing_scales_better_than_in_proportion() -> None:
    model = fit_model(samples_of(at(SIZES, lambda m: m + 0.1 * m * m)), 2)
    assert model.mean_per_s(48) == pytest.approx(2 * model.mean_per_s(24))


@given(noisy, forms, st.floats(0.0, 2000.0), st.floats(0.5, 0.999), st.floats(0.0, 1e4), st.integers(1, 128))
@settings(max_examples=60, deadline=None)
def test_fewest_is_the_least_size_that_satisfies_eq_21(
    pairs: list[tuple[int, float]], form: Form, rate: float, rho: float, extra: float, most: int
) -> None:
    model = fit_model(samples_of(pairs), form)
    machines, reached = model.fewest(rate, rho, extra, most)
    means = curve_of(model)[:most]
    assert 1 <= machines <= int(np.argmax(means)) + 1
    below = [m for m in range(1, machines) if model.probability(m, rate, extra) > rho + 1e-9]
    assert not below
    if reached:
        assert model.probability(machines, rate, extra) >= rho - 1e-9
    else:
        assert means[machines - 1] == max(means)


@given(noisy, forms, st.floats(0.0, 500.0))
@settings(max_examples=40, deadline=None)
def test_rho_one_half_is_eq_4(pairs: list[tuple[int, float]], form: Form, rate: float) -> None:
    model = fit_model(samples_of(pairs), form)
    enough = [m for m, mean in enumerate(curve_of(model), 1) if mean > rate]
    machines, reached = model.fewest(rate, 0.5)
    assert reached == bool(enough)
    if enough:
        assert machines == enough[0]


def test_throughput_equal_to_the_load_is_not_enough() -> None:
    model = fit_model(samples_of([(1, 10.0), (2, 20.0)]), 2)
    assert model.fewest(10.0)[0] == 2


@given(noisy, st.floats(0.0, 400.0), st.floats(0.0, 100.0), st.floats(0.5, 0.99), st.floats(0.0, 0.009))
@settings(max_examples=40, deadline=None)
def test_more_load_and_more_certainty_never_take_fewer_machines(
    pairs: list[tuple[int, float]], rate: float, more: float, rho: float, surer: float
) -> None:
    model = choose_model(pairs)
    assert model.fewest(rate + more, rho)[0] >= model.fewest(rate, rho)[0]
    assert model.fewest(rate, rho + surer)[0] >= model.fewest(rate, rho)[0]


def test_certain_takes_the_curve_as_exact() -> None:
    model = choose_model([(4, 70.0), (4, 80.0), (4, 90.0)])
    assert model.fewest(80.0, 0.99)[0] > model.certain.fewest(80.0, 0.99)[0] == 5
    assert model.certain.probability(5, 80.0) == 1.0
    assert model.certain.probability(3, 80.0) == 0.0


def test_online_learning_refits_the_chosen_form_and_does_not_choose_again() -> None:
    model = choose_model(at(SIZES, saturating))
    grown = model
    for m in (30, 40, 50, 60):
        grown = grown.with_sample(m, bending(m))
    assert grown.form == model.form == 1
    assert abs(grown.mean_per_s(50) - bending(50)) < abs(model.mean_per_s(50) - bending(50))
    assert model.samples.number == 5


def test_a_sample_learned_online_equals_one_trained_on() -> None:
    pairs = [(3, 31.0), (4, 39.0), (6, 58.0), (8, 83.0), (24, 230.0), (8, 79.0)]
    trained, learned = fit_model(samples_of(pairs), 2), fit_model(samples_of(pairs[:-1]), 2).with_sample(*pairs[-1])
    assert learned.weights == pytest.approx(trained.weights)
    assert learned.sd_per_s == pytest.approx(trained.sd_per_s)


def test_sizes_beyond_the_predicted_ones_have_a_mean_too() -> None:
    model = fit_model(samples_of(at(SIZES, lambda m: 10.0 * m)), 2, largest=30)
    assert model.mean_per_s(300) == pytest.approx(3000.0)
    assert model.fewest(1000.0) == (30, False)


@pytest.mark.parametrize("rho", [0.4, 1.0, float("nan")])
def test_a_probability_out_of_range_is_refused(rho: float) -> None:
    with pytest.raises(BadInput, match="rho"):
        choose_model([(1, 1.0)]).fewest(1.0, rho)


def test_sizes_and_rates_that_are_none_are_refused() -> None:
    model = choose_model([(1, 1.0)])
    with pytest.raises(BadInput, match="finite"):
        model.fewest(float("nan"))
    with pytest.raises(BadInput, match="at least 1"):
        model.mean_per_s(0)
    with pytest.raises(BadInput, match="largest"):
        fit_model(model.samples, 1, largest=0)
