from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.model.erlang import (
    erlang_b,
    fewest_stable,
    mean_sojourn_s,
    mean_wait_s,
    wait_probability,
)


def erlang_c(offered: float, servers: int) -> float:
    return wait_probability(erlang_b(offered, servers), offered, servers)


def exact_c(offered: Fraction, servers: int) -> Fraction:
    """Erlang C by its textbook sum, in exact arithmetic."""
    term, total = Fraction(1), Fraction(0)
    for n in range(servers):
        total += term
        term = term * offered / (n + 1)
    last = term * servers / (servers - offered)
    return last / (total + last)


@given(st.integers(1, 60), st.integers(1, 999))
def test_erlang_c_equals_exact_rational_arithmetic(servers: int, permille: int) -> None:
    offered = Fraction(servers * permille, 1000)
    assert erlang_c(float(offered), servers) == pytest.approx(float(exact_c(offered, servers)), rel=1e-10)


@pytest.mark.parametrize(
    ("offered", "servers", "blocked"),
    [
        (1.0, 1, 0.5),
        (10.0, 10, 0.21458),
        (10.0, 15, 0.03650),
        (20.0, 30, 0.00846),
        (50.0, 50, 0.10479),
        (2.0, 5, 0.03670),
    ],
)
def test_erlang_b_agrees_with_published_tables(offered: float, servers: int, blocked: float) -> None:
    assert erlang_b(offered, servers) == pytest.approx(blocked, abs=6e-6)


@pytest.mark.parametrize(("offered", "servers", "waits"), [(1.0, 2, 1 / 3), (2.0, 3, 4 / 9), (8.0, 10, 0.40918)])
def test_erlang_c_agrees_with_published_tables(offered: float, servers: int, waits: float) -> None:
    assert erlang_c(offered, servers) == pytest.approx(waits, abs=6e-6)


def test_a_million_servers_neither_overflow_nor_vanish() -> None:
    wait = mean_wait_s(999_000.0, 1.0, 1_000_000)
    # heavy traffic: C/(k mu - lambda), with C by the Halfin-Whitt limit at beta = 1
    phi, cdf = math.exp(-0.5) / math.sqrt(2 * math.pi), 0.5 * (1 + math.erf(1 / math.sqrt(2)))
    assert wait == pytest.approx(1 / (1 + cdf / phi) / 1000.0, rel=0.01)


def test_factorials_beyond_twelve_do_no_harm() -> None:
    assert 0 < mean_wait_s(12.0, 1.0, 13) < math.inf
    assert mean_wait_s(12.0, 1.0, 300) == pytest.approx(0.0, abs=1e-12)


def test_a_station_that_cannot_keep_up_waits_for_ever() -> None:
    assert mean_wait_s(4.0, 1.0, 4) == math.inf
    assert mean_sojourn_s(5.0, 1.0, 4) == math.inf


def test_nothing_arrives_nothing_waits() -> None:
    assert mean_wait_s(0.0, 3.0, 1) == 0.0
    assert mean_sojourn_s(0.0, 4.0, 1) == 0.25


@given(st.floats(0.1, 50), st.floats(0.1, 10), st.floats(0, 3), st.floats(0, 3))
def test_variability_scales_the_wait_alone(arrivals: float, service: float, a: float, s: float) -> None:
    k = fewest_stable(arrivals, service)
    wait = mean_wait_s(arrivals, service, k)
    assert mean_wait_s(arrivals, service, k, a, s) == pytest.approx(wait * (a + s) / 2)
    assert mean_wait_s(arrivals, service, k, 1, 1) == wait


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e3))
def test_fewest_stable_is_the_least_that_keeps_up(arrivals: float, service: float) -> None:
    k = fewest_stable(arrivals, service)
    assert k >= 1
    assert k * service > arrivals
    assert k == 1 or (k - 1) * service <= arrivals


@given(st.floats(0.1, 30), st.floats(0.1, 5), st.integers(0, 20))
def test_the_wait_is_convex_and_falls_with_servers(arrivals: float, service: float, more: int) -> None:
    k = fewest_stable(arrivals, service) + more
    first, second, third = (mean_wait_s(arrivals, service, k + i) for i in range(3))
    assert first >= second >= third >= 0
    assert first - second >= (second - third) * (1 - 1e-9)


@pytest.mark.parametrize("bad", [(-1.0, 1.0, 1), (1.0, 0.0, 1), (1.0, 1.0, 0), (math.nan, 1.0, 1), (1.0, math.inf, 1)])
def test_impossible_stations_are_clear_errors(bad: tuple[float, float, int]) -> None:
    with pytest.raises(BadInput):
        mean_wait_s(*bad)
