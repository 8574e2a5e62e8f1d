"""Claims about conformal scores."""

from __future__ import annotations

import numpy as np

from sluicegate.forecast.conformal import achieved, announced, empty_pool, published, with_scores


def test_before_any_score_the_law_is_symmetric_and_heavy() -> None:
    scores = published(empty_pool(1), 0)
    assert np.allclose(scores, -scores[::-1])
    assert scores[-1] > 3


def test_coverage_returns_to_the_announced_level_when_the_scores_change_law() -> None:
    rng = np.random.default_rng(0)
    pool = empty_pool(1)
    for scale in (1.0, 2.0):
        for score in scale * rng.standard_normal(3000):
            pool = with_scores(pool, np.array([score]))
    assert abs(achieved(pool)[0] - 0.99) < 0.004
    assert announced(pool)[0] > 3.5


def test_the_pool_that_is_given_stays_as_it_is() -> None:
    pool = empty_pool(2)
    fresh = pool.fresh.copy()
    with_scores(pool, np.array([1.0, 2.0]))
    assert np.array_equal(pool.fresh, fresh)
    assert pool.number == 0


def test_only_positive_scores_are_corrected() -> None:
    pool = empty_pool(1)
    missed = with_scores(pool, np.array([9.0]))
    before, after = published(pool, 0), published(missed, 0)
    assert np.array_equal(before[before < 0], after[after < 0])
    assert after[-1] > before[-1]


def test_a_surprise_that_nobody_could_have_served_is_a_miss_and_teaches_nothing() -> None:
    pool = empty_pool(1)
    for score in [0.5] * 59 + [1000.0]:
        pool = with_scores(pool, np.array([score]))
    calm = empty_pool(1)
    for score in [0.5] * 59 + [0.0]:
        calm = with_scores(calm, np.array([score]))
    assert published(pool, 0)[-1] <= published(calm, 0)[-1] * 1.001
    assert achieved(pool)[0] < achieved(calm)[0] == 1.0
