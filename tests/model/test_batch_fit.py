from __future__ import annotations

import numpy as np
import pytest

from sluicegate.domain import Batch, BatchCosts, Operator
from sluicegate.model.batch_fit import BatchFits

GUESS = Operator("a", 200.0, batch=BatchCosts(0.5, 0.1))


def batches(count: int, ks: tuple[int, ...], noise: float = 0.0, seed: int = 1) -> tuple[Batch, ...]:
    rng = np.random.default_rng(seed)
    rows = rng.uniform(100, 3000, count)
    return tuple(
        Batch(n, k, (0.137 + 0.029 * k + n / (k * 500.0)) * (1 + noise * rng.standard_normal()))
        for n, k in zip(rows, np.resize(ks, count).tolist(), strict=True)
    )


def test_the_law_comes_out_of_its_own_batches() -> None:
    law = BatchFits.start((GUESS,)).learn({"a": batches(200, (1, 2, 4, 8))}).law("a")
    assert (law.overhead_s, law.per_task_s, law.service_per_s) == pytest.approx((0.137, 0.029, 500.0), rel=0.02)
    assert law.service_rsd < 0.01


def test_noise_widens_the_error_and_keeps_the_truth_within_it() -> None:
    law = BatchFits.start((GUESS,)).learn({"a": batches(200, (1, 2, 4, 8), noise=0.05)}).law("a")
    assert abs(law.service_per_s - 500.0) < 4 * law.service_rsd * 500.0 + 1
    assert law.service_rsd > 1e-4


def test_before_any_batch_the_topology_is_believed() -> None:
    law = BatchFits.start((GUESS,)).law("a")
    assert (law.overhead_s, law.per_task_s, law.service_per_s, law.batches) == (0.5, 0.1, 200.0, 0.0)


def test_one_k_alone_cannot_send_coefficients_astray() -> None:
    law = BatchFits.start((GUESS,)).learn({"a": batches(100, (4,))}).law("a")
    assert law.overhead_s + 4 * law.per_task_s == pytest.approx(0.137 + 0.029 * 4, rel=0.05)
    assert law.service_per_s == pytest.approx(500.0, rel=0.05)
    assert law.per_task_s >= 0


def test_coefficients_never_turn_negative() -> None:
    falling = tuple(Batch(100.0, k, 1.0 / k) for k in (1, 2, 3, 4, 5, 6, 7, 8) * 5)
    law = BatchFits.start((GUESS,)).learn({"a": falling}).law("a")
    assert law.overhead_s > 0
    assert law.per_task_s >= 0
    assert law.service_per_s > 0


def test_a_slower_machine_is_noticed() -> None:
    fits = BatchFits.start((GUESS,)).learn({"a": batches(200, (1, 2, 4, 8))})
    slower = tuple(Batch(b.rows, b.processors, 2 * b.duration_s) for b in batches(200, (1, 2, 4, 8), seed=2))
    assert fits.learn({"a": slower}).law("a").service_per_s == pytest.approx(250.0, rel=0.1)


def test_learning_leaves_what_was_known_untouched_and_ignores_the_unusable() -> None:
    fits = BatchFits.start((GUESS,))
    before = fits.sums.copy()
    fits.learn({"a": batches(10, (2,))})
    assert (fits.sums == before).all()
    assert fits.learn({"a": (Batch(0.0, 2, 1.0), Batch(5.0, 0, 1.0), Batch(5.0, 1, 0.0))}) is fits
    assert fits.learn({"stranger": batches(3, (2,))}) is fits


def test_a_guess_does_not_slow_what_was_measured() -> None:
    fits = BatchFits.start((Operator("a", 1000.0, batch=BatchCosts(0.5, 0.1)),))
    seen = tuple(Batch(5e5, 1, 1.0, 0.5) for _ in range(50))
    assert fits.learn({"a": seen}).law("a").service_per_s == pytest.approx(1e6, rel=0.1)


def test_slow_first_batches_of_few_rows_do_not_make_rows_seem_free() -> None:
    """As measured on a busy machine: rows of 5 ms each; the batches get faster while they grow, since code warms up."""
    seen = ((20, 1.591), (60, 0.537), (20, 0.285), (120, 0.767), (30, 0.683), (150, 0.985))
    law = BatchFits.start((GUESS,)).learn({"a": tuple(Batch(n, 1, w + 0.9, w) for n, w in seen)}).law("a")
    assert 50.0 < law.service_per_s < 800.0
    assert law.service_rsd > 0.5
