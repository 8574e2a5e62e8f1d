"""Claims about the capacity learned from few small sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.policy.capacity_law import capacity_law

SMALL = [(m, 100.0 * m**0.9) for m in (3, 4, 6, 8)]


def test_doubt_grows_away_from_what_was_measured() -> None:
    curve = capacity_law(SMALL).curve()
    relative = curve.sd_per_s / curve.mean_per_s
    assert relative[99] > relative[23] > relative[5]


def test_steps_on_time_correct_the_sinking_that_late_ones_alone_would_cause() -> None:
    rng = np.random.default_rng(0)
    noisy = [(m, rate * (1 + 0.05 * rng.standard_normal())) for m, rate in SMALL for _ in range(5)]
    both = only_late = capacity_law(noisy)
    truth, load = 100.0 * 40**0.9, 100.0 * 40**0.9 * 0.93
    for _ in range(3000):
        capacity = truth * (1 + 0.05 * rng.standard_normal())
        if capacity <= load:
            both, only_late = both.late(40, capacity), only_late.late(40, capacity)
        else:
            both = both.on_time(40, load)
    assert only_late.curve().mean_per_s[39] < 0.95 * truth
    assert both.curve().mean_per_s[39] == pytest.approx(truth, rel=0.02)


def test_a_step_far_from_its_limit_says_nothing() -> None:
    law = capacity_law(SMALL)
    assert law.on_time(40, 10.0) is law
    assert law.late(40, 0.0) is law
    assert law.measured(40, 0.0) is law


def test_another_law_than_a_power_is_followed_where_it_is_used() -> None:
    rng = np.random.default_rng(1)
    truth = {m: m / (1 + 0.008 * (m - 1) + 2e-5 * m * (m - 1)) for m in (3, 4, 6, 8, 40)}
    law = capacity_law([(m, truth[m]) for m in (3, 4, 6, 8)])
    for _ in range(200):
        law = law.measured(40, float(truth[40] * (1 + 0.05 * rng.standard_normal())))
    assert law.curve().mean_per_s[39] == pytest.approx(truth[40], rel=0.05)


def test_a_shape_that_is_no_power_is_learned_at_every_size_in_use() -> None:
    rng = np.random.default_rng(2)
    truth = {m: 100.0 * min(m, 12) ** 0.9 * (max(m, 12) / 12) ** 0.5 for m in range(1, 49)}
    law = capacity_law([(m, truth[m]) for m in (3, 4, 6, 8)])
    for m in rng.integers(4, 49, 2000).tolist():
        law = law.measured(m, float(truth[m] * (1 + 0.05 * rng.standard_normal())))
    for m in (4, 8, 12, 24, 40):
        assert law.curve().mean_per_s[m - 1] == pytest.approx(truth[m], rel=0.05)  # a kink between two hats


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.12])
def test_the_noise_of_a_draw_is_learned(noise: float) -> None:
    rng = np.random.default_rng(3)
    law = capacity_law(SMALL)
    for _ in range(1000):
        law = law.measured(10, float(100.0 * 10**0.9 * math.exp(noise * rng.standard_normal())))
    assert law.noise == pytest.approx(noise, rel=0.1)


def test_steps_that_share_a_draw_count_as_one() -> None:
    law = capacity_law(SMALL)
    once, ten = law.measured(40, 2000.0), law
    for _ in range(10):
        ten = ten.measured(40, 2000.0, weight=0.1)
    assert ten.curve().mean_per_s[39] == pytest.approx(once.curve().mean_per_s[39], rel=0.02)


@pytest.mark.parametrize("samples", [[], [(0, 5.0)], [(3, 0.0)]])
def test_samples_that_say_nothing_are_refused(samples: list[tuple[int, float]]) -> None:
    with pytest.raises(BadInput):
        capacity_law(samples)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 128), st.floats(1e-3, 1e9)), min_size=1, max_size=12))
def test_any_samples_give_a_finite_curve_above_zero(samples: list[tuple[int, float]]) -> None:
    curve = capacity_law(samples).curve()
    assert np.all(np.isfinite(curve.mean_per_s))
    assert np.all(curve.mean_per_s > 0)
    assert np.all(curve.sd_per_s > 0)
