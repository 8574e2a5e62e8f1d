from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.model.erlang import fewest_stable, mean_sojourn_s
from sluicegate.model.marginal import best_servers

loads = st.floats(0.01, 60.0)
betas = st.floats(0.001, 0.95)


def mean_in_system(arrivals_per_s: float, service_per_s: float, servers: int) -> float:
    """Q(k), by Little's law."""
    return arrivals_per_s * mean_sojourn_s(arrivals_per_s, service_per_s, servers)


def weighted_cost(load: float, servers: int, beta: float) -> float:
    """z(k), Eq 8."""
    return beta * servers + (1 - beta) * mean_in_system(load, 1.0, servers)


@settings(max_examples=60)
@given(loads, betas)
def test_no_other_number_of_instances_costs_less(load: float, beta: float) -> None:
    best = best_servers(load, 1.0, beta).servers
    least = weighted_cost(load, best, beta)
    others = range(max(1, best - 6), best + 7)
    assert all(least <= weighted_cost(load, k, beta) + 1e-9 for k in others)


@settings(max_examples=60)
@given(loads, betas)
def test_both_sides_of_eq_11_hold_at_the_answer(load: float, beta: float) -> None:
    best = best_servers(load, 1.0, beta)
    assert best.next_gain <= best.price <= best.last_gain
    here, there = mean_in_system(load, 1.0, best.servers), mean_in_system(load, 1.0, best.servers + 1)
    assert best.next_gain == pytest.approx(here - there, abs=1e-9)


@settings(max_examples=40)
@given(loads, st.lists(betas, min_size=2, max_size=5))
def test_a_dearer_instance_never_asks_for_more(load: float, some: list[float]) -> None:
    counts = [best_servers(load, 1.0, beta).servers for beta in sorted(some)]
    assert all(more >= fewer for more, fewer in pairwise(counts))


def test_erratum_algorithm_1_starts_one_above_the_load() -> None:
    # 3 busy instances: floor(3) = 3 would have an infinite queue, and beta near 1 buys nothing beyond the first stable.
    assert math.isinf(mean_in_system(3.0, 1.0, 3))
    assert best_servers(3.0, 1.0, beta=0.999).servers == fewest_stable(3.0, 1.0) == 4


def test_erratum_line_7_compares_with_what_the_last_instance_took_off_the_queue() -> None:
    best = best_servers(3.0, 1.0, beta=0.25)
    assert best.last_gain == pytest.approx(mean_in_system(3.0, 1.0, 4) - mean_in_system(3.0, 1.0, 5))
    assert best.last_gain > 0


def test_erratum_the_gain_of_the_smallest_stable_number_is_infinite() -> None:
    assert math.isinf(best_servers(3.0, 1.0, beta=0.999).last_gain)


def test_erratum_eq_14_multiplies_by_p_0() -> None:
    rho, k = 3.0, 4
    terms = [rho**n / math.factorial(n) if n <= k else rho**n / (math.factorial(k) * k ** (n - k)) for n in range(400)]
    p_0 = 1 / sum(terms)
    direct = sum(n * term * p_0 for n, term in enumerate(terms))
    assert mean_in_system(rho, 1.0, k) == pytest.approx(direct)


def test_erratum_eq_7_the_service_rate_is_that_of_one_instance() -> None:
    # Were mu the sum over instances, 4 instances of rate 1 would need only one to carry 3 rows/s.
    assert best_servers(3.0, 1.0, beta=0.5).servers >= 4


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, 4.0, math.nan])
def test_erratum_beta_is_a_share_of_a_node(beta: float) -> None:
    with pytest.raises(BadInput, match="share of a node"):
        best_servers(3.0, 1.0, beta)


def test_an_idle_operator_keeps_one_instance() -> None:
    assert best_servers(0.0, 5.0, beta=0.1).servers == 1


def test_the_most_ends_the_search() -> None:
    best = best_servers(3.0, 1.0, beta=0.001, most=5)
    assert (best.servers, best.next_gain > best.price, best.keeps_up) == (5, True, True)


@pytest.mark.parametrize("arrivals_per_s", [4.0, 1e9, 1e15])
def test_too_few_instances_are_told_not_looped_over(arrivals_per_s: float) -> None:
    best = best_servers(arrivals_per_s, 1.0, beta=0.1, most=4)
    assert (best.servers, best.keeps_up) == (4, False)


def test_a_division_that_rounds_down_does_not_make_an_instance_enough() -> None:
    arrivals, service, k = 557.2783999999999, 39.8056, 14
    assert arrivals / service < k
    assert k * service <= arrivals
    assert not best_servers(arrivals, service, 0.1, most=k).keeps_up
    assert best_servers(arrivals, service, 0.1).servers > k


def test_a_million_busy_instances_are_found_in_one_pass() -> None:
    best = best_servers(900_000.0, 1.0, beta=0.05)
    assert 900_000 < best.servers < 910_000


@pytest.mark.parametrize(("arrivals", "service"), [(-1.0, 1.0), (math.nan, 1.0), (1.0, 0.0), (1.0, math.inf)])
def test_rates_that_are_none_are_refused(arrivals: float, service: float) -> None:
    with pytest.raises(BadInput, match="rate is"):
        best_servers(arrivals, service, 0.1)


def test_at_least_one_instance_must_be_allowed() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        best_servers(1.0, 1.0, 0.1, most=0)
