"""Whether the six allocations of figures 6 and 7 live are apart enough to be measured, without Spark."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from drs_live import NAMES, SIX, SIX_PER_S, SIX_WAITS_MS, model_s, stations
from sluicegate.domain import BatchCosts
from sluicegate.model.microbatch import mean_sojourn_s
from sluicegate.policy.papers.drs import assign_processors

BATCH = BatchCosts(0.25, 0.03)
"""About what a batch of such an operator costs on two cores."""


def by_batches_s(k: tuple[int, ...]) -> float:
    each = zip(NAMES, k, strict=True)
    return sum(mean_sojourn_s(SIX_PER_S, 1e3 / SIX_WAITS_MS[name], count, BATCH) for name, count in each)


def test_both_laws_agree_on_the_order_and_neighbours_are_apart() -> None:
    assert len({sum(k) for k in SIX}) == 1
    for law, apart in ((model_s, 1.05), (by_batches_s, 1.1)):
        assert all(law(a) * apart <= law(b) for a, b in pairwise(SIX)), law


def test_the_first_of_them_is_what_algorithm_1_recommends() -> None:
    best = assign_processors(stations(SIX_PER_S, SIX_WAITS_MS), sum(SIX[0]))
    assert np.array_equal(best, SIX[0])
