"""The largest rate of late, with a margin."""

from __future__ import annotations

import pytest

from sluicegate.domain import Edge, Limits, Observation, Operator, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import RecentPeak

CHAIN = Topology("t", (Operator("a", 100.0), Operator("b", 30.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))


def _drive(policy: RecentPeak, ticks: list[tuple[float, float]], limits: Limits | None = None) -> list[dict[str, int]]:
    memory, sizes = policy.start(), []
    for now_s, rate in ticks:
        seen = Observation(now_s, rate, {"a": 1, "b": 1})
        memory, proposal = policy.propose(memory, Situation(now_s, CHAIN, seen, rate, {}, limits=limits or Limits()))
        sizes.append(dict(proposal.processors))
    return sizes


def test_every_operator_carries_more_than_the_peak_with_its_margin() -> None:
    assert _drive(RecentPeak(), [(0.0, 250.0)]) == [{"a": 4, "b": 6}]  # exactly 300, and 150: one more than needed


def test_a_peak_counts_for_five_minutes() -> None:
    ticks = [(0.0, 900.0), *((60.0 * i, 80.0) for i in range(1, 6))]
    assert [sizes["a"] for sizes in _drive(RecentPeak(), ticks)] == [11, 11, 11, 11, 11, 1]


def test_late_and_missing_ticks_do_not_stretch_the_window() -> None:
    assert [s["a"] for s in _drive(RecentPeak(), [(0.0, 900.0), (301.0, 80.0)])] == [11, 1]
    assert [s["a"] for s in _drive(RecentPeak(), [(0.0, 900.0), (1.0, 80.0), (2.0, 80.0), (299.0, 80.0)])][-1] == 11


def test_rounded_times_do_not_keep_a_peak_a_step_longer() -> None:
    ticks = [(0.1 * i, 900.0 if i == 0 else 80.0) for i in range(6)]
    assert [s["a"] for s in _drive(RecentPeak(step_s=0.1), ticks)] == [11, 11, 11, 11, 11, 1]


def test_no_load_keeps_one_processor_each() -> None:
    assert _drive(RecentPeak(), [(0.0, 0.0)]) == [{"a": 1, "b": 1}]


def test_the_reason_gives_the_peak_and_the_demand() -> None:
    seen = Observation(0.0, 250.0, {})
    _, proposal = RecentPeak().propose((), Situation(0.0, CHAIN, seen, 250.0, {}))
    assert proposal.reasons == ("the largest of 300 s is 250 rows/s, x 1.2 = 300 rows/s: 10 processors",)


def test_limits_are_kept() -> None:
    assert _drive(RecentPeak(), [(0.0, 900.0)], Limits(budget=6)) == [{"a": 2, "b": 4}]


def test_a_window_of_no_steps_is_refused() -> None:
    with pytest.raises(BadInput, match="window"):
        RecentPeak(window_steps=0)
