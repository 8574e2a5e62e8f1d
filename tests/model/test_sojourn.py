from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.model.erlang import erlang_b, wait_probability
from sluicegate.model.sojourn import end_to_end, gamma_quantile, operator_quantiles_s, predict
from sluicegate.model.stations import Stations
from sluicegate.model.traffic import outside_rate, visits


def stations(topology: Topology, rate: float) -> Stations:
    return Stations.of(topology, visits(topology) * rate, outside_rate(topology, rate))


def one() -> Topology:
    return Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))


def test_one_server_has_an_exponential_sojourn() -> None:
    sojourn = end_to_end(one(), stations(one(), 6.0), np.array([1]))
    assert sojourn.mean_s == pytest.approx(1 / 4)
    assert (sojourn.p50_s, sojourn.p95_s, sojourn.p99_s) == pytest.approx(
        (math.log(2) / 4, math.log(20) / 4, math.log(100) / 4)
    )


def test_quantiles_of_many_servers_match_sampled_sojourns() -> None:
    # P(wait) and the wait's rate are known for M/M/k; sampling them gives an independent answer
    rng, k, rate = np.random.default_rng(3), 4, 35.0
    waiting = wait_probability(erlang_b(3.5, k), 3.5, k)
    waits = rng.exponential(1 / (k * 10.0 - rate), 400_000) * (rng.random(400_000) < waiting)
    sampled = np.quantile(waits + rng.exponential(0.1, 400_000), [0.5, 0.95, 0.99])
    assert operator_quantiles_s(stations(one(), rate), np.array([k]))[:, 0] == pytest.approx(sampled, rel=0.02)


def test_a_micro_batch_operator_waits_evenly_over_one_batch() -> None:
    batch = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029, 0.04)),), (Edge("source", "a"),))
    sojourn = end_to_end(batch, stations(batch, 800.0), np.array([4]))
    b = (0.137 + 0.029 * 4) / (1 - 800 / 2000)
    assert sojourn.mean_s == pytest.approx(1.5 * b - 0.04, rel=0.002)
    assert sojourn.p50_s == pytest.approx(1.5 * b - 0.04, rel=0.002)
    assert sojourn.p95_s == pytest.approx(1.95 * b - 0.04, rel=0.01)


def test_a_chain_adds_means_and_variances() -> None:
    chain = Topology("t", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b")))
    sojourn = end_to_end(chain, stations(chain, 6.0), np.array([1, 1]))
    assert sojourn.mean_s == pytest.approx(0.5)
    # two exponential stages of rate 4 are a gamma law of shape 2: exact
    assert sojourn.p95_s == pytest.approx(gamma_quantile(0.5, 2 / 16, 0.95))
    assert sojourn.p95_s == pytest.approx(4.743865 / 4, rel=1e-5)


def test_a_loop_repeats_the_sojourn_geometrically() -> None:
    loop = Topology("t", (Operator("a", 20.0),), (Edge("source", "a"), Edge("a", "a", 0.5)))
    sojourn = end_to_end(loop, stations(loop, 6.0), np.array([1]))
    # a geometric number of exponential visits is exponential: mean 2/(20 - 12)
    assert sojourn.mean_s == pytest.approx(0.25)
    assert sojourn.p95_s == pytest.approx(0.25 * math.log(20), rel=1e-6)


def test_mean_is_eq_4_with_visits() -> None:
    split = Topology(
        "t",
        (Operator("a", 10.0), Operator("b", 10.0)),
        (Edge("source", "a"), Edge("a", "b", 0.5), Edge("a", "sink", 0.5)),
    )
    s = stations(split, 6.0)
    assert s.total_mean_s(np.array([1, 1])) == pytest.approx(1 / 4 + 0.5 / 7)


def test_an_operator_that_nothing_reaches_does_not_count() -> None:
    dry = Topology("t", (Operator("a", 10.0), Operator("b", 1.0)), (Edge("source", "a"), Edge("a", "b", 0.0)))
    assert end_to_end(dry, stations(dry, 6.0), np.array([1, 1])).mean_s == pytest.approx(0.25)


def test_overload_is_infinite_and_never_a_number() -> None:
    sojourn = end_to_end(one(), stations(one(), 16.0), np.array([1]))
    assert (sojourn.mean_s, sojourn.p95_s) == (math.inf, math.inf)


def test_nothing_entering_takes_no_time() -> None:
    assert end_to_end(one(), stations(one(), 0.0), np.array([1])).mean_s == 0.0


@given(st.floats(1, 200), st.floats(0.5, 50), st.integers(0, 10), st.floats(0, 3), st.floats(0, 3), st.booleans())
def test_quantiles_are_ordered_under_every_law(
    rate: float, service: float, more: int, a: float, s: float, batch: bool
) -> None:
    costs = BatchCosts(0.1, 0.01) if batch else None
    operator = Operator("a", service, arrival_scv=a, service_scv=s, batch=costs)
    t = Topology("t", (operator, Operator("b", service)), (Edge("source", "a"), Edge("a", "b", 0.5)))
    k = {"a": int(rate / service) + 1 + more, "b": int(rate / service) + 1 + more}
    for found in predict(t, stations(t, rate), k, rate).operators.values():
        assert 0 <= found.p50_s <= found.p95_s <= found.p99_s
        assert found.mean_s >= 0


def test_several_sources_mix_by_their_rates() -> None:
    t = Topology(
        "t",
        (Operator("fast", 100.0), Operator("slow", 10.0)),
        (Edge("source:x", "fast"), Edge("source:y", "slow")),
        {"source:y": 0.5},
    )
    sojourn = end_to_end(t, stations(t, 6.0), np.array([1, 1]))
    assert sojourn.mean_s == pytest.approx((2 / 94 + 1 / 7) / 3)
