"""Samples kept by size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.model.mst_samples import samples_of

pairs = st.lists(st.tuples(st.integers(1, 9), st.floats(1.0, 1e6)), min_size=1, max_size=40)


@given(pairs)
def test_what_is_kept_gives_the_residuals_of_every_sample(drawn: list[tuple[int, float]]) -> None:
    samples = samples_of(drawn)
    line = {m: 1000.0 * m for m, _ in drawn}
    expected = sum((rate - line[m]) ** 2 for m, rate in drawn)
    assert samples.residual_squares(np.array([line[int(m)] for m in samples.sizes])) == pytest.approx(expected)
    assert samples.number == len(drawn)
    assert samples.largest == max(m for m, _ in drawn)


@given(pairs)
def test_sizes_rise_each_once(drawn: list[tuple[int, float]]) -> None:
    assert samples_of(drawn).sizes.tolist() == sorted({m for m, _ in drawn})


def test_one_more_sample_leaves_the_first_value_as_it_was() -> None:
    before = samples_of([(3, 100.0)])
    after = before.with_one(3, 200.0).with_one(1, 40.0)
    assert before.mean_per_s.tolist() == [100.0]
    assert after.mean_per_s.tolist() == [40.0, 150.0]
    assert after.mean_inverse_s.tolist() == pytest.approx([1 / 40, (1 / 100 + 1 / 200) / 2])


@pytest.mark.parametrize("pair", [(0, 10.0), (3, 0.0), (3, -1.0), (3, float("inf")), (3, float("nan"))])
def test_a_sample_that_is_none_is_refused(pair: tuple[int, float]) -> None:
    with pytest.raises(BadInput):
        samples_of([pair])


def test_no_samples_are_refused() -> None:
    with pytest.raises(BadInput, match="measure at least one"):
        samples_of([])


def test_a_rate_that_is_no_bound_leaves_the_residuals_finite() -> None:
    samples = samples_of([(1, 1e308), (2, 1.0)])
    assert np.isfinite(samples.residual_squares(np.zeros(2)))
    assert np.isfinite(samples.with_one(1, 1.0).residual_squares(np.zeros(2)))
