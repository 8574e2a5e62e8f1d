"""Claims about recursive least squares."""

from __future__ import annotations

import numpy as np

from sluicegate.forecast.least_squares import dot, regress


def test_it_finds_the_line_behind_noisy_samples() -> None:
    rng = np.random.default_rng(0)
    weights, inverse = np.zeros(2), 100 * np.eye(2)
    for _ in range(2000):
        x = np.array([1.0, rng.random()])
        y = 3 - 2 * x[1] + 0.1 * rng.standard_normal()
        regress(weights, inverse, x, y - dot(weights, x), 1.0)
    assert np.allclose(weights, [3, -2], atol=0.05)


def test_forgetting_follows_a_line_that_changes() -> None:
    weights, inverse = np.zeros(1), np.eye(1)
    for slope in (1.0, 5.0):
        for _ in range(300):
            regress(weights, inverse, np.ones(1), slope - weights[0], 0.98)
    assert abs(weights[0] - 5) < 0.05


def test_a_direction_never_seen_does_not_run_away() -> None:
    weights, inverse = np.zeros(2), np.eye(2)
    for _ in range(5000):
        regress(weights, inverse, np.array([1.0, 0.0]), 1 - weights[0], 0.99)
    assert np.trace(inverse) < 101
    assert np.all(np.isfinite(inverse))
