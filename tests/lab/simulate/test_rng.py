from __future__ import annotations

import numpy as np
from scipy import stats

from sluicegate.lab.simulate import rng


def draws(n: int = 20_000) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    streams = rng.seeded(3, 1)
    return np.array([rng.exponential(streams, 0) for _ in range(n)])


def test_the_ziggurat_draws_an_exponential() -> None:
    found = draws()
    assert stats.kstest(found, "expon").pvalue > 0.01
    assert found.max() > 7.7, "the tail beyond the layers is drawn too"


def test_the_polar_method_draws_a_normal() -> None:
    streams = rng.seeded(4, 1)
    found = np.array([rng.normal(streams, 0) for _ in range(20_000)])
    assert stats.kstest(found, "norm").pvalue > 0.01


def test_uniform_numbers_fill_the_unit_interval_evenly() -> None:
    streams = rng.seeded(5, 1)
    found = np.array([rng.uniform(streams, 0) for _ in range(20_000)])
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert 0 <= found.min() < found.max() < 1


def test_the_generator_is_xoshiro256_plus_plus() -> None:
    streams = np.array([[1, 2, 3, 4]], dtype=np.uint64)
    words = [int(rng.next_word(streams, 0)) for _ in range(3)]
    # by hand from the published recurrence, starting at 1, 2, 3, 4
    assert words == [41943041, 58720359, 3588806011781223]


def test_a_stream_does_not_disturb_another() -> None:
    alone, both = rng.seeded(6, 2), rng.seeded(6, 2)
    expected = [rng.uniform(alone, 1) for _ in range(5)]
    found = []
    for _ in range(5):
        rng.exponential(both, 0)
        found.append(rng.uniform(both, 1))
    assert found == expected
