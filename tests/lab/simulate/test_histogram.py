from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.lab.simulate.histogram import BINS, count, edges, quantile


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_off_by_at_most_the_width_of_a_bin(values: list[float], level: float) -> None:
    counted = np.zeros(BINS, dtype=np.int64)
    for value in values:
        count(counted, value)
    exact = float(np.quantile(values, level, method="inverted_cdf"))
    found = quantile(counted, level)
    assert found is not None
    assert exact / 1.04 <= found <= exact * 1.04


def test_values_beyond_the_range_go_to_its_ends() -> None:
    counted = np.zeros(BINS, dtype=np.int64)
    for value in (0.0, 1e-300, 1e300):
        count(counted, value)
    assert counted[0] == 2
    assert counted[-1] == 1


def test_bins_are_at_most_3_percent_wide() -> None:
    bounds = edges()
    assert float((bounds[1:] / bounds[:-1]).max()) == pytest.approx(1 + 1 / 32)
