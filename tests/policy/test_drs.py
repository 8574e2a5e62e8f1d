from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sluicegate.domain import BatchCosts, Edge, Goal, Limits, Observation, Operator, Situation, Sojourn, Topology
from sluicegate.errors import Infeasible
from sluicegate.model.stations import Stations
from sluicegate.model.traffic import visits
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.papers.drs import Drs, assign_processors, min_processors, no_queue_bound_s
from sluicegate.policy.spread import sustained_per_s

# The paper prints no rates; these are ours, chosen to be plausible for its applications and stated here openly.
# Video logo detection, 13 frames/s: feature extraction 0.69 s a frame, matching 0.75 s, aggregation 10 ms.
VLD = Topology(
    "vld",
    (Operator("extract", 1.45), Operator("match", 1.33), Operator("aggregate", 100.0)),
    (Edge("source", "extract"), Edge("extract", "match"), Edge("match", "aggregate")),
)
# Frequent patterns, 320 tweets/s from each of two spouts; the detector feeds itself.
FPD = Topology(
    "fpd",
    (Operator("generate", 128.0), Operator("detect", 128.0), Operator("report", 320.0)),
    (
        Edge("source:plus", "generate"),
        Edge("source:minus", "generate"),
        Edge("generate", "detect", 1.6),
        Edge("detect", "detect", 0.3),
        Edge("detect", "report", 0.4),
    ),
)
# Fig 10: a matcher whose service varies a lot, an extractor that hardly does.
FIG10 = Topology(
    "fig10",
    (
        Operator("extract", 3.4, arrival_scv=0.2, service_scv=0.2),
        Operator("match", 2.7, arrival_scv=2.0, service_scv=3.0),
        Operator("aggregate", 100.0),
    ),
    (Edge("source", "extract"), Edge("extract", "match"), Edge("match", "aggregate")),
)


def plan(
    topology: Topology, rate: float, policy: Drs, goal: Goal | None = None, budget: int | None = None
) -> list[int]:
    _, proposal = policy.propose(None, situation_at(topology, rate, goal, Limits(budget=budget)))
    return [proposal.processors[name] for name in topology.names]


def test_video_logo_detection_gets_the_papers_split() -> None:
    assert plan(VLD, 13.0, Drs(), budget=22) == [10, 11, 1]


def test_frequent_pattern_detection_gets_the_papers_split() -> None:
    assert plan(FPD, 320.0, Drs(), budget=22) == [6, 13, 3]


def test_general_service_times_change_the_split_as_in_figure_10() -> None:
    for rate in (5.0, 6.0):
        assert plan(FIG10, rate, Drs(), budget=7) == [3, 3, 1]
        assert plan(FIG10, rate, Drs(general=True), budget=7) == [2, 4, 1]


def stations_at(topology: Topology, rate: float) -> Stations:
    return stations_of(situation_at(topology, rate))


def test_erratum_algorithm_1_stops_at_k_max() -> None:
    assert int(assign_processors(stations_at(VLD, 13.0), 22).sum()) == 22


def test_erratum_algorithm_2_counts_visits_in_its_lower_bound() -> None:
    # 1/mu summed is 0.2 s, but half of the rows skip b: 0.15 s can be had
    t = Topology("t", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
    stations = stations_at(t, 5.0)
    assert no_queue_bound_s(stations) == pytest.approx(0.15)
    assert stations.total_mean_s(min_processors(stations, 0.16)) <= 0.16


def test_erratum_algorithm_2_fails_at_the_bound_itself() -> None:
    t = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    with pytest.raises(Infeasible, match=r"service alone takes 0\.1 s"):
        min_processors(stations_at(t, 5.0), 0.1)


def test_erratum_algorithm_2_needs_one_pass_only() -> None:
    stations = stations_at(VLD, 13.0)
    k = min_processors(stations, 2.0)
    again = [assign_processors(stations, total) for total in range(int(k.sum()) - 1, int(k.sum()) + 1)]
    assert stations.total_mean_s(again[0]) > 2.0 >= stations.total_mean_s(again[1])
    assert again[1].tolist() == k.tolist()


def test_erratum_a_goal_beyond_the_budget_gives_the_best_reachable_time() -> None:
    with pytest.raises(Infeasible, match=r"21 processors give .* s and the budget ends there"):
        min_processors(stations_at(VLD, 13.0), 1.5, Limits(budget=21))


def test_erratum_figure_10_rates_come_from_rates_not_gaps() -> None:
    gaps = np.random.default_rng(0).uniform(1 / 8, 1 / 2, 100_000)
    rates = np.random.default_rng(0).uniform(2, 8, 100_000)
    assert 1 / gaps.mean() == pytest.approx(3.2, rel=0.01)
    assert rates.mean() == pytest.approx(5.0, rel=0.01)


def running(topology: Topology, rate: float, split: list[int], measured_s: float, goal: Goal) -> Situation:
    observation = Observation(0.0, rate, dict(zip(topology.names, split, strict=True)), sojourn=Sojourn(measured_s))
    return replace(situation_at(topology, rate, goal), observation=observation)


def total(situation: Situation) -> int:
    return Drs().propose(None, situation)[1].total


def test_a_broken_promise_adds_processors_even_if_the_model_sees_none_missing() -> None:
    goal = Goal(mean_s=2.5, relaxed_s=0.9)
    assert min_processors(stations_at(VLD, 13.0), 2.5).sum() <= 22
    assert total(running(VLD, 13.0, [10, 11, 1], 3.0, goal)) == 23


def test_between_the_bounds_processors_only_move() -> None:
    goal = Goal(mean_s=2.0, relaxed_s=0.9)
    _, proposal = Drs().propose(None, running(VLD, 13.0, [8, 12, 2], 1.7, goal))
    assert proposal.total == 22
    assert proposal.processors == {"extract": 10, "match": 11, "aggregate": 1}


def test_a_relaxed_pipeline_gives_processors_back() -> None:
    goal = Goal(mean_s=20.0, relaxed_s=9.0)
    assert total(running(VLD, 13.0, [15, 15, 5], 1.5, goal)) < 35


def test_erratum_removing_is_the_mirror_of_algorithm_2() -> None:
    """The paper says "a similar procedure": where the model is right, what stays is what algorithm 2 gives."""
    stations, have = stations_at(VLD, 13.0), [15, 15, 5]
    now_s = stations.total_mean_s(np.array(have))
    _, proposal = Drs().propose(None, running(VLD, 13.0, have, now_s, Goal(mean_s=2.5, relaxed_s=now_s * 1.1)))
    assert list(proposal.processors.values()) == min_processors(stations, 2.5).tolist()


def test_a_model_that_overestimates_does_not_add_where_the_measured_time_asks_for_fewer() -> None:
    """Service of 0.7 s a stage is above T_max by the model; 0.2 s are measured, below T_min."""
    goal = Goal(mean_s=1.0, relaxed_s=0.45)
    for rate in (13.0, 1e-6):
        assert total(running(VLD, rate, [15, 15, 5], 0.2, goal)) < 35


def test_removing_never_goes_below_what_keeps_up() -> None:
    goal = Goal(mean_s=1e6, relaxed_s=9e5)
    _, proposal = Drs().propose(None, running(VLD, 13.0, [10, 11, 1], 1.5, goal))
    assert all(k * VLD.operator(n).service_per_s > 13.0 for n, k in proposal.processors.items())


def test_without_goal_or_budget_queues_add_at_most_half_to_service() -> None:
    stations = stations_at(VLD, 13.0)
    k = np.array(plan(VLD, 13.0, Drs()))
    assert stations.total_mean_s(k) <= 1.5 * no_queue_bound_s(stations)


def test_too_small_a_budget_is_said_and_still_answered() -> None:
    _, proposal = Drs().propose(None, situation_at(VLD, 13.0, limits=Limits(budget=9)))
    assert not proposal.feasible
    assert "20 processors are needed to keep up, 9 are allowed" in proposal.reasons[0]
    assert proposal.total == 9


def test_an_operator_that_cannot_keep_up_within_its_limit_leaves_the_others_what_they_need() -> None:
    limits = Limits(budget=40, most_of={"aggregate": 1})
    slow_end = VLD.with_operators((*VLD.operators[:2], Operator("aggregate", 5.0)))
    _, proposal = Drs().propose(None, situation_at(slow_end, 13.0, limits=limits))
    assert not proposal.feasible
    assert proposal.processors["aggregate"] == 1
    assert all(proposal.processors[name] * VLD.operator(name).service_per_s > 13.0 for name in ("extract", "match"))


@pytest.mark.parametrize("budget", range(3, 20))
def test_too_small_a_budget_carries_as_much_as_it_can(budget: int) -> None:
    """Against every way to share the budget out."""
    _, proposal = Drs().propose(None, situation_at(VLD, 13.0, limits=Limits(budget=budget)))
    every = ((a, b, budget - a - b) for a in range(1, budget) for b in range(1, budget - a))
    assert sustained_per_s(VLD, dict(proposal.processors)) == pytest.approx(
        max(sustained_per_s(VLD, dict(zip(VLD.names, k, strict=True))) for k in every)
    )


def test_measured_visits_lead_not_the_topologys() -> None:
    base = situation_at(VLD, 13.0, limits=Limits(budget=40))
    more = replace(base, operator_arrivals_per_s={"extract": 13.0, "match": 26.0, "aggregate": 13.0})
    assert Drs().propose(None, more)[1].processors["match"] > Drs().propose(None, base)[1].processors["match"]
    assert visits(VLD).tolist() == [1, 1, 1]


def test_reasons_say_what_is_proposed_in_batch_mode() -> None:
    """Beyond the micro-batch law's optimum more processors only cost: 16 run, fewer are proposed, and it says so."""
    one = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    for measured_s in (0.9, 3.0):
        seen = Observation(0.0, 800.0, {"a": 16}, sojourn=Sojourn(measured_s))
        now = replace(situation_at(one, 800.0, Goal(mean_s=1.5)), observation=seen)
        _, proposal = Drs(general=True, batch=True).propose(None, now)
        assert proposal.total < 16
        assert f"16 -> {proposal.total} processors" in proposal.reasons[0]
        assert "keep" not in proposal.reasons[0]


def test_drs_itself_plans_by_queues_whatever_runs_in_batches() -> None:
    """The paper's M/M/k knows no batches; drs-batch is the one that does."""
    queue = Topology("t", (Operator("a", 500.0),), (Edge("source", "a"),))
    batch = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    totals = [Drs().propose(None, situation_at(t, 2800.0, Goal(mean_s=0.005)))[1].total for t in (queue, batch)]
    assert totals[0] == totals[1]
