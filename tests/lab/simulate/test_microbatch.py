from __future__ import annotations

import numpy as np
import pytest

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.lab.simulate import Behaviour, advance, begin, simulate
from sluicegate.lab.simulate.arrivals import deterministic
from sluicegate.lab.simulate.distributions import gamma
from sluicegate.model.batch_fit import BatchFits
from sluicegate.model.microbatch import mean_sojourn_s, settled_batch_s
from sluicegate.model.sojourn import predict
from sluicegate.model.stations import Stations

COSTS = BatchCosts(overhead_s=0.137, per_task_s=0.029, commit_s=0.04)


def one(service_per_s: float = 500.0, costs: BatchCosts | None = COSTS) -> Topology:
    return Topology("one", (Operator("a", service_per_s, batch=costs),), (Edge("source", "a"),))


@pytest.mark.parametrize(("k", "load"), [(1, 0.2), (1, 0.8), (2, 0.5), (4, 0.4), (4, 0.8), (8, 0.6)])
def test_batches_back_to_back_take_one_and_a_half_settled_batches_less_the_commit(k: int, load: float) -> None:
    rate = load * k * 500.0
    result = simulate(one(), rate, {"a": k}, 2_000, seed=k, mode="micro-batch")
    assert result.mean_s is not None
    assert result.ci95_s is not None
    assert abs(result.mean_s - mean_sojourn_s(rate, 500.0, k, COSTS)) <= result.ci95_s
    station = result.operators["a"]
    assert station.batch_s == pytest.approx(settled_batch_s(rate, 500.0, k, 0.137, 0.029), rel=0.02)
    assert station.utilisation == pytest.approx(load, rel=0.02)


@pytest.mark.parametrize("pace", [1.0, 2.5])
def test_batches_on_a_pace_wait_half_of_it_and_then_take_their_time(pace: float) -> None:
    rate, k = 400.0, 2
    behaviour = Behaviour(pace_s={"a": pace})
    result = simulate(one(), rate, {"a": k}, 5_000, seed=1, mode="micro-batch", behaviour=behaviour)
    law = mean_sojourn_s(rate, 500.0, k, COSTS, every_s=pace)
    assert result.mean_s is not None
    assert result.ci95_s is not None
    assert abs(result.mean_s - law) <= result.ci95_s


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("rate", [0.3, 3.0, 30.0])
def test_few_rows_a_second_wait_as_long_as_the_law_tells(rate: float, busy: float) -> None:
    """The mean, the 95% quantile, and the mean of batches on a pace."""
    service = rate / (busy * 2)
    slow, seconds = one(service), 200_000 / rate
    simulated = simulate(slow, rate, {"a": 2}, seconds, seed=2, mode="micro-batch")
    told = predict(slow, Stations.of(slow, np.array([rate]), rate), {"a": 2}, rate).sojourn
    assert simulated.mean_s == pytest.approx(told.mean_s, rel=0.02)
    assert simulated.p95_s == pytest.approx(told.p95_s, rel=0.06)
    pace = 4 * told.mean_s
    behaviour = Behaviour(pace_s={"a": pace})
    paced = simulate(slow, rate, {"a": 2}, seconds, seed=2, mode="micro-batch", behaviour=behaviour)
    assert paced.mean_s == pytest.approx(mean_sojourn_s(rate, service, 2, COSTS, every_s=pace), rel=0.05)


def test_an_observer_is_told_what_the_tasks_of_a_batch_took() -> None:
    """As on Spark: so that the noise of planning and commits is not learned as a cost of rows."""
    uneven = Behaviour(batch_noise={"a": gamma(1.0)}, steady_work=True)
    world = begin(one(), 300.0, {"a": 2}, 1, mode="declared", behaviour=uneven)
    batches = advance(world, 300.0).of("a").batches
    assert all(batch.work_s == pytest.approx(batch.rows / 500.0) for batch in batches)
    guessed = (Operator("a", 200.0, batch=BatchCosts(0.3, 0.1)),)
    assert BatchFits.start(guessed).learn({"a": batches}).law("a").service_per_s == pytest.approx(500.0, rel=0.01)


def test_a_batch_longer_than_its_pace_is_followed_at_once() -> None:
    paced = simulate(one(), 700.0, {"a": 2}, 2_000, 1, mode="micro-batch", behaviour=Behaviour(pace_s={"a": 0.01}))
    free = simulate(one(), 700.0, {"a": 2}, 2_000, 1, mode="micro-batch")
    assert paced.mean_s == pytest.approx(free.mean_s, rel=0.02)


@pytest.mark.parametrize("pace", [0.1, 0.3, 0.7, 1.0])
def test_no_beat_of_a_pace_is_left_out_or_doubled(pace: float) -> None:
    quick = one(1e6, BatchCosts(0.01, 0.0))
    world = begin(quick, 1_000.0, {"a": 1}, 1, mode="declared", behaviour=Behaviour(pace_s={"a": pace}))
    seen = advance(world, 999.5 * pace)
    assert len(seen.of("a").batches) == 999


def test_operators_on_one_pace_fall_into_step_again_after_slow_batches() -> None:
    """The second starts when the first has published: its rows wait for nothing, but where batches vary."""
    costs = BatchCosts(overhead_s=0.2, per_task_s=0.0)
    chain = Topology(
        "chain",
        (Operator("a", 1e4, batch=costs), Operator("b", 1e4, batch=costs)),
        (Edge("source", "a"), Edge("a", "b")),
    )
    behaviour = Behaviour(pace_s={"a": 1.0, "b": 1.0}, batch_noise={"a": gamma(0.2), "b": gamma(0.2)})
    result = simulate(chain, 100.0, {"a": 1, "b": 1}, 2_000, seed=1, mode="declared", behaviour=behaviour)
    assert result.operators["b"].mean_s == pytest.approx(0.21, abs=0.02)


def test_more_tasks_than_the_best_number_make_every_row_slower() -> None:
    means = [simulate(one(), 800.0, {"a": k}, 1_000, 1, mode="micro-batch").mean_s for k in (2, 5, 16)]
    assert None not in means
    assert means[1] == min(mean for mean in means if mean is not None)


def test_rows_published_together_go_into_one_batch_downstream() -> None:
    chain = Topology(
        "chain",
        (Operator("a", 500.0, batch=COSTS), Operator("b", 500.0, batch=COSTS)),
        (Edge("source", "a"), Edge("a", "b")),
    )
    result = simulate(chain, 300.0, {"a": 1, "b": 1}, 2_000, seed=1, mode="micro-batch")
    first, second = result.operators["a"], result.operators["b"]
    assert first.batch_s is not None
    assert second.batch_s is not None
    assert second.batch_s == pytest.approx(first.batch_s, rel=0.02)
    # b meets whole batches: the next one comes when the last is nearly done, so its rows wait less than half a batch
    assert second.mean_s is not None
    assert first.mean_s is not None
    assert second.batch_s - COSTS.commit_s - 1e-6 <= second.mean_s <= first.mean_s


def test_noise_on_batches_makes_rows_wait_longer() -> None:
    uneven = Behaviour(batch_noise={"a": gamma(0.2)})
    steady = simulate(one(), 300.0, {"a": 1}, 5_000, 1, mode="micro-batch")
    noisy = simulate(one(), 300.0, {"a": 1}, 5_000, 1, mode="micro-batch", behaviour=uneven)
    assert steady.mean_s is not None
    assert noisy.mean_s is not None
    assert noisy.mean_s > 1.03 * steady.mean_s


def test_an_operator_without_costs_runs_at_those_measured_on_spark() -> None:
    plain = simulate(one(costs=None), 300.0, {"a": 1}, 1_000, 1, mode="micro-batch")
    assert plain == simulate(one(), 300.0, {"a": 1}, 1_000, 1, mode="micro-batch")


def test_a_loop_of_batches_settles() -> None:
    loop = Topology("loop", (Operator("a", 500.0, batch=COSTS),), (Edge("source", "a"), Edge("a", "a", 0.5)))
    result = simulate(loop, 150.0, {"a": 1}, 2_000, seed=1, mode="micro-batch")
    assert result.stable
    assert result.operators["a"].arrivals_per_s == pytest.approx(300.0, rel=0.02)


def test_copies_beyond_the_first_pool_are_published_all_the_same() -> None:
    fan = Topology(
        "fan",
        (Operator("a", 900.0, batch=COSTS), Operator("b", 40_000.0, batch=COSTS)),
        (Edge("source", "a"), Edge("a", "b", 30.0)),
    )
    result = simulate(fan, 400.0, {"a": 1, "b": 1}, 200, seed=1, mode="micro-batch")
    assert result.operators["b"].arrivals_per_s == pytest.approx(12_000.0, rel=0.05)


def test_a_commit_longer_than_the_batch_publishes_at_its_start() -> None:
    costs = BatchCosts(overhead_s=0.01, per_task_s=0.0, commit_s=10.0)
    result = simulate(one(1000.0, costs), 100.0, {"a": 1}, 500, 1, mode="micro-batch")
    assert result.mean_s is not None
    assert 0 <= result.mean_s < 0.02


def test_rows_that_several_operators_publish_at_the_same_moment_are_in_one_batch() -> None:
    costs = BatchCosts(overhead_s=0.5, per_task_s=0.0)
    operators = tuple(Operator(name, 1000.0, batch=costs) for name in "abcd")
    pairs = [("source", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    diamond = Topology("t", operators, tuple(Edge(*pair) for pair in pairs))
    world = begin(diamond, deterministic(0.1), dict.fromkeys("abcd", 1), seed=1, mode="declared")
    seen = advance(world, 100.0).operators["d"]
    assert {batch.rows for batch in seen.batches} == {2.0}
    assert seen.sojourn_s == pytest.approx(0.502, abs=1e-6)
