"""The Flink autoscaler: its formula, its band, and all its waiting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.control.settings import policy_for
from sluicegate.domain import Edge, Limits, Observation, Operator, OperatorObservation, Proposal, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import FlinkAutoscaler
from sluicegate.policy.peers.flink_autoscaler import FlinkMemory

ONE = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
CHAIN = Topology("t", (Operator("a", 100.0), Operator("b", 50.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))


def _at(
    now_s: float,
    rate: float,
    processors: int,
    queue_rows: float | None = None,
    rescaling: bool = False,
    limits: Limits | None = None,
) -> Situation:
    seen = Observation(
        now_s, rate, {"a": processors}, {"a": OperatorObservation(queue_rows=queue_rows)}, rescaling=rescaling
    )
    return Situation(now_s, ONE, seen, rate, {"a": rate}, limits=limits or Limits())


def _drive(
    situations: list[Situation], policy: FlinkAutoscaler | None = None, memory: FlinkMemory | None = None
) -> tuple[FlinkMemory, list[Proposal]]:
    policy = policy or FlinkAutoscaler()
    memory = memory or policy.start()
    proposals = []
    for situation in situations:
        memory, proposal = policy.propose(memory, situation)
        proposals.append(proposal)
    return memory, proposals


def _sizes(proposals: list[Proposal]) -> list[int]:
    return [proposal.total for proposal in proposals]


def _minutes(first: int, last: int, rate: float, processors: int, queue_rows: float | None = None) -> list[Situation]:
    return [_at(60.0 * minute, rate, processors, queue_rows) for minute in range(first, last + 1)]


def test_nothing_is_decided_before_stabilisation_and_window_are_over() -> None:
    _, proposals = _drive(_minutes(0, 20, 900.0, 4))
    assert _sizes(proposals) == [4] * 20 + [15]  # 900/6 + 900/0.7 = 1435.7
    assert proposals[3].reasons == ("measured for 180 s of the 1200 s needed since the last change: kept",)


def test_a_backlog_is_to_be_worked_off_within_the_catch_up_time() -> None:
    _, proposals = _drive(_minutes(0, 20, 900.0, 4, queue_rows=1_800_000.0))
    assert proposals[-1].total == 25  # 1000 + 150 + 1285.7


def test_a_backlog_alone_can_push_the_operator_out_of_its_band() -> None:
    _, proposals = _drive([_at(0.0, 400.0, 5, 0.0), _at(1200.0, 400.0, 5, 180_000.0)])
    assert proposals[-1].total == 5  # 100 + 400 = 500, exactly its capacity
    _, proposals = _drive([_at(0.0, 400.0, 5, 0.0), _at(1200.0, 400.0, 5, 198_000.0)])
    assert proposals[-1].total == 8  # 110 + 66.7 + 571.4


def test_exactly_fully_busy_is_still_within_the_band() -> None:
    assert _sizes(_drive([_at(0.0, 500.0, 5), _at(1200.0, 500.0, 5)])[1])[-1] == 5
    assert _sizes(_drive([_at(0.0, 500.1, 5), _at(1200.0, 500.1, 5)])[1])[-1] == 8


def test_exactly_forty_percent_busy_is_still_within_the_band() -> None:
    _, kept = _drive(_minutes(0, 120, 400.0, 10))
    assert set(_sizes(kept)) == {10}
    _, lowered = _drive(_minutes(0, 120, 399.0, 10))
    assert lowered[-1].total == 7  # 399 x (1/6 + 1/0.7) = 636.5


def test_fewer_are_given_only_after_an_hour_of_recommending_fewer() -> None:
    _, proposals = _drive(_minutes(0, 80, 300.0, 10))
    assert _sizes(proposals) == [10] * 80 + [5]  # first recommended at minute 20


def test_the_hours_largest_recommendation_is_what_is_given() -> None:
    busier = [*_minutes(0, 40, 300.0, 10), *_minutes(41, 55, 390.0, 10), *_minutes(56, 80, 300.0, 10)]
    _, proposals = _drive(busier)
    assert proposals[-1].total == 7  # the window's mean rose to 390: 622.1 rows/s
    assert "at most 7 in 3600 s" in proposals[-1].reasons[0]


def test_a_recommendation_older_than_an_hour_no_longer_counts() -> None:
    busier = [*_minutes(0, 40, 390.0, 10), *_minutes(41, 130, 300.0, 10)]
    assert _drive(busier)[1][-1].total == 5


def test_a_return_into_the_band_starts_the_hour_anew() -> None:
    policy = FlinkAutoscaler(window_s=0.0)
    back = [*_minutes(0, 30, 300.0, 10), *_minutes(31, 31, 500.0, 10), *_minutes(32, 91, 300.0, 10)]
    _, proposals = _drive(back, policy)
    assert set(_sizes(proposals)) == {10}
    assert _drive([*back, _at(92 * 60.0, 300.0, 10)], policy)[1][-1].total == 5


def test_the_hour_ends_also_where_ticks_are_irregular() -> None:
    ticks = [_at(now_s, 300.0, 10) for now_s in range(0, 4900, 37)]
    assert _drive(ticks)[1][-1].total == 5


def test_a_decrease_takes_at_most_sixty_percent_at_once() -> None:
    assert _drive(_minutes(0, 80, 10.0, 100))[1][-1].total == 40


def test_a_change_of_what_runs_starts_all_measuring_anew() -> None:
    memory, _ = _drive(_minutes(0, 19, 900.0, 4))
    _, proposals = _drive(_minutes(20, 40, 900.0, 5), memory=memory)
    assert _sizes(proposals) == [5] * 20 + [15]


def test_a_measurement_during_a_rescale_is_not_used() -> None:
    quiet = _minutes(0, 15, 450.0, 5)
    _, proposals = _drive([*quiet, _at(960.0, 90_000.0, 5, rescaling=True), _at(1200.0, 450.0, 5)])
    assert proposals[-1].total == 5


def test_the_rate_is_the_windows_mean() -> None:
    noisy = [_at(60.0 * i, 900.0 if i % 2 else 100.0, 5) for i in range(22)]
    assert _drive(noisy)[1][-1].total == 5  # the mean is 500


def test_parallelism_ends_at_two_hundred_and_that_is_not_feasible() -> None:
    proposal = _drive([_at(0.0, 90_000.0, 5), _at(1200.0, 90_000.0, 5)])[1][-1]
    assert proposal.total == 200
    assert not proposal.feasible
    assert "at most 200" in proposal.reasons[0]


def test_no_load_falls_to_one() -> None:
    assert _drive(_minutes(0, 80, 0.0, 2))[1][-1].total == 1


def test_downstream_is_sized_for_what_upstream_will_send() -> None:
    seen = Observation(0.0, 900.0, {"a": 4, "b": 4}, backlog_rows=1_800_000.0)
    policy = FlinkAutoscaler()
    memory, _ = policy.propose(policy.start(), Situation(0.0, CHAIN, seen, 900.0, {"a": 400.0, "b": 200.0}))
    _, proposal = policy.propose(memory, Situation(1200.0, CHAIN, seen, 900.0, {"a": 400.0, "b": 200.0}))
    assert proposal.processors == {"a": 25, "b": 25}  # 2435.7/100, and half of it at half the speed


def test_a_queue_upstream_has_to_be_caught_up_with_downstream_too() -> None:
    queues = {"a": OperatorObservation(queue_rows=1_800_000.0), "b": OperatorObservation(queue_rows=0.0)}
    seen = Observation(0.0, 900.0, {"a": 4, "b": 4}, queues)
    policy = FlinkAutoscaler()
    memory, _ = policy.propose(policy.start(), Situation(0.0, CHAIN, seen, 900.0, {}))
    assert policy.propose(memory, Situation(1200.0, CHAIN, seen, 900.0, {}))[1].processors == {"a": 25, "b": 25}


def test_limits_cut_what_the_autoscaler_wants() -> None:
    limits = Limits(budget=8)
    proposal = _drive([_at(0.0, 900.0, 4, limits=limits), _at(1200.0, 900.0, 4, limits=limits)])[1][-1]
    assert proposal.total == 8
    assert not proposal.feasible


def test_its_times_are_options_of_a_run() -> None:
    policy = policy_for("flink-autoscaler", options={"window_s": 9, "stabilisation_s": 3, "restart_s": 3})
    at = [replace(one, now_s=one.now_s / 100) for one in _minutes(0, 20, 900.0, 4)]
    memory = policy.start()
    for situation in at:
        memory, proposal = policy.propose(memory, situation)
    assert proposal.total == 13  # 900 x 3/1800 + 900/0.7 = 1287.2


def test_settings_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(BadInput, match="utilisation"):
        FlinkAutoscaler(utilisation_least=0.8)
    with pytest.raises(BadInput, match="catch_up_s"):
        FlinkAutoscaler(catch_up_s=0.0)
    with pytest.raises(BadInput, match="scale_down_factor"):
        FlinkAutoscaler(scale_down_factor=1.5)
