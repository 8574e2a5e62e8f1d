"""Means against theory, each within the simulation's own confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.lab.simulate import (
    Behaviour,
    SimulationResult,
    deterministic,
    poisson,
    renewal,
    simulate,
    trace,
    weighted,
)
from sluicegate.lab.simulate.distributions import of_scv, uniform
from sluicegate.model.erlang import mean_sojourn_s, mean_wait_s
from sluicegate.model.traffic import outside_rate, visits


def one(service_per_s: float = 1.0, arrival_scv: float = 1.0, service_scv: float = 1.0) -> Topology:
    return Topology("one", (Operator("a", service_per_s, arrival_scv, service_scv),), (Edge("source", "a"),))


def loop() -> Topology:
    """Three operators, of which the second sends a fifth of its rows back and the third has a loop of its own."""
    return Topology(
        "loop",
        (Operator("a", 4.0), Operator("b", 2.4), Operator("c", 5.0)),
        (Edge("source", "a"), Edge("a", "b"), Edge("b", "a", 0.2), Edge("b", "c", 0.8), Edge("c", "c", 0.25)),
    )


def jackson_mean_s(topology: Topology, rate: float, servers: dict[str, int]) -> float:
    """DRS Eq 4 over M/M/k stations."""
    arrivals = rate * visits(topology)
    spent = sum(
        x * mean_sojourn_s(x, operator.service_per_s, servers[operator.name])
        for x, operator in zip(arrivals, topology.operators, strict=True)
    )
    return float(spent) / outside_rate(topology, rate)


def assert_near(result: SimulationResult, expected_s: float, most_relative_ci: float = 0.15) -> None:
    assert result.stable
    assert result.mean_s is not None
    assert result.ci95_s is not None
    assert abs(result.mean_s - expected_s) <= result.ci95_s
    assert result.ci95_s <= most_relative_ci * expected_s, "an interval this wide would prove nothing"


@pytest.mark.parametrize(
    ("servers", "load"), [(1, 0.3), (1, 0.7), (1, 0.9), (2, 0.8), (5, 0.5), (5, 0.9), (20, 0.7), (64, 0.95)]
)
def test_a_station_agrees_with_erlang(servers: int, load: float) -> None:
    rate = servers * load
    result = simulate(one(), rate, {"a": servers}, seconds=400_000 / rate, seed=servers)
    assert_near(result, mean_sojourn_s(rate, 1.0, servers))
    station = result.operators["a"]
    assert station.utilisation == pytest.approx(load, rel=0.02)
    wait = mean_wait_s(rate, 1.0, servers)
    assert station.queue == pytest.approx(rate * wait, rel=0.25, abs=0.01)
    assert station.mean_s == pytest.approx(result.mean_s)


@pytest.mark.parametrize(("rate", "seconds"), [(0.5, 4_000), (0.8, 20_000), (0.9, 100_000)])
def test_of_many_seeds_about_19_in_20_intervals_hold_the_true_mean(rate: float, seconds: float) -> None:
    expected = mean_sojourn_s(rate, 1.0, 1)
    held, means = 0, []
    for seed in range(100):
        result = simulate(one(), rate, {"a": 1}, seconds, seed)
        assert result.mean_s is not None
        assert result.ci95_s is not None
        held += abs(result.mean_s - expected) <= result.ci95_s
        means.append(result.mean_s)
    assert held >= 90
    assert np.mean(means) == pytest.approx(expected, abs=3 * float(np.std(means)) / 10), "no bias over the seeds"


def test_quantiles_of_a_single_server_are_those_of_an_exponential() -> None:
    result = simulate(one(), 0.5, {"a": 1}, seconds=1_000_000, seed=3)
    for found, level in ((result.p50_s, 0.50), (result.p95_s, 0.95), (result.p99_s, 0.99)):
        assert found == pytest.approx(-math.log(1 - level) / 0.5, rel=0.04)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_network_with_loops_agrees_with_jackson(seed: int) -> None:
    servers = {"a": 3, "b": 4, "c": 2}
    result = simulate(loop(), 6.0, servers, seconds=60_000, seed=seed)
    assert_near(result, jackson_mean_s(loop(), 6.0, servers))
    assert result.completion_mean_s == pytest.approx(result.mean_s), "a row that never splits has one time only"
    for name, arrivals in zip(loop().names, 6.0 * visits(loop()), strict=True):
        found = result.operators[name]
        expected = mean_sojourn_s(float(arrivals), loop().operator(name).service_per_s, servers[name])
        assert found.arrivals_per_s == pytest.approx(arrivals, rel=0.02)
        assert found.mean_s is not None
        assert found.ci95_s is not None
        assert abs(found.mean_s - expected) <= 1.5 * found.ci95_s


def test_a_split_adds_the_sojourns_of_all_copies_but_completes_with_the_last() -> None:
    fork = Topology(
        "fork",
        (Operator("a", 5.0), Operator("b", 4.0), Operator("c", 3.0)),
        (Edge("source", "a"), Edge("a", "b"), Edge("a", "c")),
    )
    servers = {"a": 1, "b": 1, "c": 1}
    result = simulate(fork, 2.0, servers, seconds=200_000, seed=5)
    assert_near(result, jackson_mean_s(fork, 2.0, servers))
    assert result.completion_mean_s is not None
    assert result.mean_s is not None
    assert result.completion_mean_s < 0.85 * result.mean_s


def test_several_sources_have_their_shares_of_the_rate() -> None:
    two = Topology(
        "two",
        (Operator("a", 4.0), Operator("b", 9.0)),
        (Edge("source:x", "a"), Edge("source:y", "b"), Edge("a", "b")),
        {"source:x": 1.0, "source:y": 0.5},
    )
    servers = {"a": 1, "b": 1}
    result = simulate(two, 3.0, servers, seconds=100_000, seed=2)
    assert result.arrivals_per_s == pytest.approx(4.5, rel=0.01)
    assert_near(result, jackson_mean_s(two, 3.0, servers))


@given(
    st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.4, 2.0, 3.5]), min_size=2, max_size=2),
    st.sampled_from([0.2, 1.0, 2.5]),
)
@settings(max_examples=12, deadline=None)
def test_every_operator_receives_what_the_traffic_equations_say(out: list[float], first: float) -> None:
    tree = Topology(
        "tree",
        (Operator("a", 90.0), Operator("b", 90.0), Operator("c", 90.0)),
        (Edge("source", "a", first), Edge("a", "b", out[0]), Edge("a", "c", out[1]), Edge("b", "sink", 1.0)),
    )
    result = simulate(tree, 20.0, {"a": 2, "b": 4, "c": 4}, seconds=2_000, seed=1)
    for name, arrivals in zip(tree.names, 20.0 * visits(tree), strict=True):
        assert result.operators[name].arrivals_per_s == pytest.approx(arrivals, rel=0.06, abs=0.01)


@pytest.mark.parametrize("scv", [0.0, 0.4, 1.0, 3.0])
def test_poisson_arrivals_at_one_server_wait_as_pollaczek_and_khinchine_say(scv: float) -> None:
    rate = 0.7
    result = simulate(one(service_scv=scv), rate, {"a": 1}, seconds=500_000, seed=7)
    assert_near(result, 1 + rate / (1 - rate) * (1 + scv) / 2)


def test_regular_arrivals_at_an_exponential_server_wait_as_their_root_says() -> None:
    """D/M/1: sigma = exp(-mu (1 - sigma)/lambda), sojourn 1/(mu (1 - sigma))."""
    rate, sigma = 0.8, 0.5
    for _ in range(200):
        sigma = math.exp(-(1 - sigma) / rate)
    result = simulate(one(), deterministic(rate), {"a": 1}, seconds=400_000, seed=8)
    assert_near(result, 1 / (1 - sigma))


def test_bursts_at_an_exponential_server_wait_as_their_root_says() -> None:
    """H2/M/1: sigma solves sigma = E[exp(-mu (1 - sigma) gap)]."""
    load = renewal(0.6, of_scv(5.0))
    share, first, second = load.gaps.a, load.gaps.b / 0.6, load.gaps.c / 0.6
    sigma = 0.5
    for _ in range(2000):
        sigma = share / (1 + (1 - sigma) * first) + (1 - share) / (1 + (1 - sigma) * second)
    result = simulate(one(), load, {"a": 1}, seconds=800_000, seed=9)
    assert_near(result, 1 / (1 - sigma), 0.2)


@pytest.mark.parametrize(("arrival_scv", "service_scv"), [(0.5, 0.5), (4.0, 0.5), (0.0, 3.0), (3.0, 3.0)])
@pytest.mark.parametrize("servers", [1, 4])
def test_general_stations_stay_below_kingmans_bound(arrival_scv: float, service_scv: float, servers: int) -> None:
    """E[Q] <= lambda (var a + var s/k + (1 - 1/k)/(k mu^2)) / (2 (1 - rho))."""
    rate = 0.8 * servers
    topology = one(arrival_scv=arrival_scv, service_scv=service_scv)
    result = simulate(topology, rate, {"a": servers}, seconds=300_000 / rate, seed=10)
    bound = rate * (arrival_scv / rate**2 + service_scv / servers + (1 - 1 / servers) / servers) / (2 * 0.2)
    assert result.mean_s is not None
    assert result.ci95_s is not None
    assert 1 - result.ci95_s <= result.mean_s <= 1 + bound + result.ci95_s


def test_a_regular_row_at_a_regular_server_never_waits_and_takes_exactly_its_service() -> None:
    result = simulate(one(5.0, service_scv=0.0), deterministic(4.0), {"a": 1}, seconds=1_000, seed=1)
    assert result.mean_s == pytest.approx(0.2, rel=1e-9)
    assert result.ci95_s == pytest.approx(0.0, abs=1e-9)
    assert result.operators["a"].queue == pytest.approx(0.0, abs=1e-9)
    assert result.operators["a"].utilisation == pytest.approx(0.8, rel=1e-3)


def test_a_regular_chain_takes_exactly_the_sum_of_its_services() -> None:
    chain = Topology(
        "chain",
        (Operator("a", 5.0, service_scv=0.0), Operator("b", 8.0, service_scv=0.0)),
        (Edge("source", "a"), Edge("a", "b")),
    )
    result = simulate(chain, deterministic(4.0), {"a": 1, "b": 1}, seconds=1_000, seed=1)
    assert result.mean_s == pytest.approx(0.2 + 0.125, rel=1e-9)


def test_uniform_gaps_and_services_are_milder_than_exponential_ones() -> None:
    """The setting of DRS Fig 10: U[1/8, 1/2] s between rows give 3.2 rows/s (erratum), not 5."""
    gaps = uniform(1 / 8, 1 / 2)
    result = simulate(
        one(2.0), renewal(3.2, gaps), {"a": 2}, 50_000, 4, behaviour=Behaviour(service={"a": uniform(0.2, 0.8)})
    )
    assert result.mean_s is not None
    assert result.mean_s < mean_sojourn_s(3.2, 2.0, 2)
    assert result.arrivals_per_s == pytest.approx(3.2, rel=0.005)


def test_a_trace_is_followed_step_by_step() -> None:
    load = trace(100.0, [5.0, 0.0, 10.0])
    result = simulate(one(20.0), load, {"a": 1}, seconds=300.0, seed=1)
    assert result.warm_up_s == 0.0
    assert result.arrivals_per_s == pytest.approx(5.0, rel=0.1)
    regular = simulate(one(20.0), trace(100.0, [5.0, 0.0, 10.0], of_scv(0.0)), {"a": 1}, seconds=300.0, seed=1)
    assert regular.arrivals_per_s * 300 == pytest.approx(1500, abs=1)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    servers = {"a": 3, "b": 4, "c": 2}
    first, again, other = (simulate(loop(), 6.0, servers, 2_000, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.mean_s != other.mean_s


def test_another_allocation_meets_the_same_arrivals() -> None:
    few, many = (simulate(one(), 3.0, {"a": k}, 5_000, seed=4) for k in (4, 8))
    assert few.arrivals_per_s == many.arrivals_per_s


def test_an_overloaded_operator_is_reported_and_its_times_withheld() -> None:
    result = simulate(one(10.0), 25.0, {"a": 2}, seconds=2_000, seed=1)
    assert not result.stable
    assert result.mean_s is None
    assert result.ci95_s is None
    assert result.p95_s is None
    assert result.growth_per_s == pytest.approx(5.0, rel=0.2)
    assert result.operators["a"].utilisation == pytest.approx(1.0, abs=0.01)
    assert "a is offered 1.25 of what its 2 processors can do" in result.reasons[0]


def test_an_instance_with_too_large_a_share_is_reported() -> None:
    behaviour = Behaviour(routing={"a": weighted(3, 1)})
    result = simulate(one(10.0), 15.0, {"a": 2}, seconds=1_000, seed=1, behaviour=behaviour)
    assert not result.stable


def test_a_rate_of_0_is_a_quiet_run() -> None:
    result = simulate(one(), 0.0, {"a": 1}, seconds=10.0, seed=1)
    assert (result.mean_s, result.p95_s, result.events, result.stable) == (None, None, 0, True)
    assert result.operators["a"].utilisation == 0.0


def test_progress_rises_to_1() -> None:
    told: list[float] = []
    simulate(one(), 0.5, {"a": 1}, seconds=100.0, seed=1, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_memory_follows_the_rows_inside_not_the_rows_that_passed() -> None:
    from sluicegate.lab.simulate.build import build
    from sluicegate.lab.simulate.kernel import advance
    from sluicegate.lab.simulate.scenario import scenario

    net, finished = advance(build(scenario(one(), 0.8, {"a": 1}), seed=1), 1_000_000.0)
    assert finished
    assert int(net.totals["events"][0]) > 1_500_000
    assert len(net.rows) <= 1024


@pytest.mark.parametrize(
    "order",
    [
        lambda: simulate(one(), 1.0, {}, 10.0, 1),
        lambda: simulate(one(), 1.0, {"a": 0}, 10.0, 1),
        lambda: simulate(one(), 1.0, {"a": 1, "zz": 1}, 10.0, 1),
        lambda: simulate(one(), -1.0, {"a": 1}, 10.0, 1),
        lambda: simulate(one(), 1.0, {"a": 1}, 0.0, 1),
        lambda: simulate(one(), {"source:x": poisson(1.0)}, {"a": 1}, 10.0, 1),
        lambda: simulate(one(), 1.0, {"a": 1}, 10.0, 1, behaviour=Behaviour(capacity={"a": -1})),
        lambda: simulate(one(), 1.0, {"a": 1}, 10.0, 1, mode="micro-batch", behaviour=Behaviour(capacity={"a": 5})),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(order: Callable[[], SimulationResult]) -> None:
    with pytest.raises(BadInput) as refused:
        order()
    assert "\n" not in str(refused.value)


def test_a_loop_in_which_rows_multiply_is_refused() -> None:
    growing = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"), Edge("a", "a", 1.0)))
    with pytest.raises(BadInput, match="gain"):
        simulate(growing, 1.0, {"a": 1}, 10.0, 1)


def test_operators_run_as_they_declare() -> None:
    mixed = Topology(
        "mixed",
        (Operator("a", 50.0, batch=BatchCosts(0.1, 0.01)), Operator("b", 50.0)),
        (Edge("source", "a"), Edge("a", "b")),
    )
    result = simulate(mixed, 20.0, {"a": 1, "b": 1}, 2_000, 1, mode="declared")
    assert result.operators["a"].batch_s is not None
    assert result.operators["b"].batch_s is None
    means = [operator.mean_s for operator in result.operators.values()]
    assert result.mean_s == pytest.approx(np.sum([mean for mean in means if mean is not None]), rel=0.01)
