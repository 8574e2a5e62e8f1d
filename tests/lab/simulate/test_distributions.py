from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sluicegate.errors import BadInput
from sluicegate.lab.simulate import distributions
from sluicegate.lab.simulate.distributions import Distribution, draw
from sluicegate.lab.simulate.rng import seeded

LAWS = {
    "exponential": distributions.exponential(),
    "constant": distributions.constant(),
    "uniform": distributions.uniform(1, 4),
    "erlang": distributions.gamma(0.25),
    "gamma below shape 1": distributions.gamma(2.5),
    "hyperexponential": distributions.of_scv(4.0),
}


def sample(law: Distribution, n: int = 60_000) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    streams = seeded(11, 1)
    return np.array([draw(int(law.kind), law.a, law.b, law.c, streams, 0) for _ in range(n)])


@pytest.mark.parametrize("name", LAWS)
def test_every_distribution_has_mean_1_and_the_variability_it_states(name: str) -> None:
    found = sample(LAWS[name])
    error = 4 * found.std() / np.sqrt(len(found))
    assert abs(found.mean() - 1) <= error + 1e-12
    assert found.var() == pytest.approx(LAWS[name].scv, rel=0.12, abs=1e-12)
    assert found.min() >= 0


@pytest.mark.parametrize("scv", [0.0, 0.1, 0.5, 1.0, 1.5, 10.0])
def test_of_scv_keeps_the_scv_asked_for(scv: float) -> None:
    assert distributions.of_scv(scv).scv == pytest.approx(scv)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: distributions.of_scv(-1.0),
        lambda: distributions.uniform(2, 2),
        lambda: distributions.hyperexponential(1.5, 1, 1),
        lambda: distributions.gamma(0.0),
    ],
)
def test_impossible_distributions_are_refused(bad: Callable[[], Distribution]) -> None:
    with pytest.raises(BadInput):
        bad()
