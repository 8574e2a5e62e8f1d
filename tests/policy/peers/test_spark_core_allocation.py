"""Spark core's allocation by tasks."""

from __future__ import annotations

from sluicegate.domain import Edge, Limits, Observation, Operator, OperatorObservation, Proposal, Situation, Topology
from sluicegate.policy.peers import SparkCoreAllocation
from sluicegate.policy.peers.spark_core_allocation import CoreMemory

ONE = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))


def _at(now_s: float, tasks: int, running: int, slots: int = 1, budget: int | None = None) -> Situation:
    seen = Observation(now_s, 10.0, {"a": running}, pending_tasks=tasks - tasks // 2, running_tasks=tasks // 2)
    return Situation(now_s, ONE, seen, 10.0, {}, limits=Limits(budget=budget, slots_per_executor=slots))


def _drive(situations: list[Situation], memory: CoreMemory | None = None) -> list[Proposal]:
    policy, proposals = SparkCoreAllocation(), []
    for situation in situations:
        memory, proposal = policy.propose(memory, situation)
        proposals.append(proposal)
    return proposals


def _totals(proposals: list[Proposal]) -> list[int]:
    return [proposal.total for proposal in proposals]


def test_what_is_asked_for_doubles_and_ends_at_what_is_needed() -> None:
    assert _totals(_drive([_at(float(i), 20, 1) for i in range(6)])) == [2, 4, 8, 16, 20, 20]


def test_doubling_starts_anew_once_enough_was_asked_for() -> None:
    tasks = (4, 4, 4, 20, 20)
    assert _totals(_drive([_at(float(i), n, 1) for i, n in enumerate(tasks)])) == [2, 4, 4, 5, 7]


def test_tasks_share_the_slots_of_an_executor() -> None:
    proposal = _drive([_at(0.0, 9, 4, slots=4)])[0]
    assert proposal.total == 8  # 9 tasks on 4 slots need 3 executors; one more may be asked for at first
    assert proposal.reasons == ("9 tasks on 4 slots each need 3 executors: 2 asked for",)


def test_an_idle_executor_goes_after_a_minute() -> None:
    situations = [_at(0.0, 10, 10), *(_at(t, 3, 10) for t in (1.0, 30.0, 59.0, 60.0, 61.0))]
    assert _totals(_drive(situations)) == [10, 10, 10, 10, 3, 3]


def test_a_busy_moment_keeps_executors_for_another_minute() -> None:
    situations = [_at(0.0, 10, 10), _at(30.0, 6, 10), _at(60.0, 3, 10), _at(89.0, 3, 6), _at(90.0, 3, 6)]
    assert _totals(_drive(situations)) == [10, 10, 6, 6, 3]


def test_one_executor_stays_when_there_is_nothing_to_do() -> None:
    assert _totals(_drive([_at(0.0, 0, 5), _at(60.0, 0, 5)])) == [5, 1]


def test_tasks_that_spark_does_not_report_come_from_utilisation_and_queue() -> None:
    busy = OperatorObservation(utilisation=0.9, queue_rows=35.0)  # 4.5 -> 5 at work, 3.5 -> 3 waiting seconds
    situation = Situation(0.0, ONE, Observation(0.0, 10.0, {"a": 5}, {"a": busy}), 10.0, {})
    _, proposal = SparkCoreAllocation().propose(None, situation)
    assert proposal.reasons == ("8 tasks on 1 slots each need 8 executors: 6 asked for",)


def test_a_huge_backlog_asks_for_no_more_than_the_limits_allow() -> None:
    proposals = _drive([_at(float(i), 10**8, 1, budget=50) for i in range(40)])
    assert _totals(proposals)[-1] == 50
    assert not proposals[-1].feasible
