from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import skew

from sluicegate.errors import BadInput
from sluicegate.model.skewness import skewness

shares = st.floats(0.0, 1.0)


@given(st.lists(shares, min_size=3, max_size=30).filter(lambda loads: float(np.std(loads)) > 1e-3))
def test_it_is_the_population_skewness_with_the_papers_factor(loads: list[float]) -> None:
    n = len(loads)
    assert skewness(loads).value == pytest.approx(float(skew(loads)) * n * n / ((n - 1) * (n - 2)), abs=1e-6)


def test_one_hot_node_among_idle_ones_is_above_zero() -> None:
    assert skewness([0.1, 0.1, 0.1, 0.9]).value > 0 > skewness([0.9, 0.9, 0.9, 0.1]).value


@pytest.mark.parametrize("loads", [[], [0.4], [0.1, 0.9]])
def test_erratum_fewer_than_three_nodes_have_no_skewness(loads: list[float]) -> None:
    found = skewness(loads)
    assert found.value == 0.0
    assert found.note == f"skewness needs 3 nodes, {len(loads)} in use: taken as 0"


@given(shares, st.integers(3, 20))
def test_erratum_equal_loads_have_no_skewness(load: float, nodes: int) -> None:
    found = skewness([load] * nodes)
    assert (found.value, found.mean) == pytest.approx((0.0, load))
    assert found.note is not None


def test_a_load_that_was_not_measured_is_refused() -> None:
    with pytest.raises(BadInput, match="not finite"):
        skewness([0.1, math.nan, 0.3])
