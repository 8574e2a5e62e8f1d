from __future__ import annotations

import numpy as np
import pytest

from sluicegate.measure.tally import Tally


def test_one_value_has_no_variability() -> None:
    assert Tally().plus(2.0).scv is None


def test_exponential_times_have_a_squared_coefficient_of_variation_of_one() -> None:
    tally = Tally()
    for time_s in np.random.default_rng(1).exponential(0.01, 5000):
        tally = tally.plus(float(time_s))
    assert tally.scv == pytest.approx(1.0, abs=0.1)
