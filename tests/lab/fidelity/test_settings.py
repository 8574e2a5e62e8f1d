from __future__ import annotations

import pytest

from sluicegate.lab.fidelity.settings import Compared, Figures, allocations, median_error, pairs_in_order, spread_out


def compared(predicted_s: float, measured_s: float) -> Compared:
    return Compared(
        10.0, {"a": 1}, Figures(predicted_s, predicted_s, 1.0), predicted_s, Figures(measured_s, measured_s, 1.0)
    )


def test_every_allocation_keeps_up_and_fits() -> None:
    busy, most = {"a": 0.7, "b": 3.1}, {"a": 2, "b": 9}
    found = allocations(busy, most, slots=10)
    assert len(found) > 4
    assert all(busy[name] <= 0.85 * k <= 0.85 * most[name] for one in found for name, k in one.items())
    assert all(sum(one.values()) <= 10 for one in found)


def test_a_rate_beyond_all_slots_has_no_allocation() -> None:
    assert allocations({"a": 20.0}, {"a": 16}, slots=16) == []


def test_many_operators_do_not_make_a_million_of_them() -> None:
    names = [f"op{i}" for i in range(7)]
    assert 6 <= len(allocations(dict.fromkeys(names, 0.5), dict.fromkeys(names, 8), slots=64)) <= 2000


def test_settings_lie_apart_and_none_is_far_slower_than_the_fastest() -> None:
    means = [1.0, 1.01, 1.02, 1.5, 2.2, 3.1, 50.0]
    assert spread_out(means, 4) == [0, 3, 4, 5]


def test_errors_are_shares_of_what_was_measured() -> None:
    assert compared(1.1, 1.0).error == pytest.approx(0.1)
    assert median_error([compared(1.1, 1.0), compared(0.8, 1.0), compared(1.0, 1.0)]) == pytest.approx(0.1)


def test_pairs_in_the_wrong_order_are_counted() -> None:
    settings = [compared(1.0, 1.2), compared(2.0, 1.1), compared(3.0, 2.0)]
    assert pairs_in_order(settings, lambda one: one.predicted.mean_s) == (2, 3)
