from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.lab.simulate import distributions
from sluicegate.lab.simulate.arrivals import Arrivals, after, deterministic, poisson, trace


def integral(rates: list[float], step_s: float, until: float) -> float:
    """R(t), plainly."""
    return sum(rate * min(max(until - i * step_s, 0.0), step_s) for i, rate in enumerate(rates))


@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=6),
    st.floats(0.1, 10),
    st.floats(0, 20),
    st.floats(0.01, 30),
)
def test_the_next_arrival_lies_where_the_integrated_rate_has_grown_by_the_gap(
    rates: list[float], step_s: float, now: float, gap: float
) -> None:
    found = after(now, gap, np.array(rates), 0, len(rates), step_s)
    if math.isinf(found):
        end = len(rates) * step_s
        assert integral(rates, step_s, end) - integral(rates, step_s, min(now, end)) <= gap + 1e-6
    else:
        grown = integral(rates, step_s, found) - integral(rates, step_s, now)
        assert grown == pytest.approx(gap, rel=1e-6, abs=1e-6)


def test_a_steady_rate_spaces_arrivals_by_gap_over_rate() -> None:
    assert after(10.0, 1.0, np.array([4.0]), 0, 1, math.inf) == 10.25


def test_nothing_comes_after_the_end_of_a_trace_nor_at_rate_0() -> None:
    assert after(2.5, 1.0, np.array([1.0, 1.0]), 0, 2, 1.0) == math.inf
    assert after(0.0, 1.0, np.array([0.0]), 0, 1, math.inf) == math.inf


@pytest.mark.parametrize(
    "bad",
    [
        lambda: poisson(-1.0),
        lambda: poisson(math.nan),
        lambda: trace(0.0, [1.0]),
        lambda: trace(math.inf, [1.0]),
        lambda: trace(60.0, []),
        lambda: Arrivals((1.0, 2.0)),
    ],
)
def test_bad_arrivals_are_refused_in_one_line(bad: Callable[[], Arrivals]) -> None:
    with pytest.raises(BadInput) as refused:
        bad()
    assert "\n" not in str(refused.value)


def test_scaling_keeps_the_pattern() -> None:
    half = trace(60.0, [10.0, 20.0], distributions.constant()).scaled(0.5)
    assert half.rates_per_s == (5.0, 10.0)
    assert half.gaps == deterministic(1.0).gaps
