from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.control.group_count import GroupsAsked, planned_groups, with_group_counts
from sluicegate.domain import Edge, Goal, Limits, Observation, Operator, Situation, Topology

ONE = Topology("t", (Operator("count", 10.0, stateful=True),), (Edge("source", "count"),))


def situation(now_s: float, groups: int) -> Situation:
    seen = Observation(now_s, 10.0, {"count": 1}, groups={"count": (0,) * groups})
    return Situation(now_s, ONE, seen, 10.0, {"count": 10.0}, Goal(mean_s=2.0), Limits(most_of={"count": 64}))


@given(st.integers(1, 200), st.floats(1e-4, 10), st.floats(0, 10), st.integers(1, 300))
def test_every_task_gets_a_group_and_no_more_are_planned_than_allowed(
    tasks: int, group_s: float, spare_s: float, most: int
) -> None:
    found = planned_groups(tasks, group_s, spare_s, most)
    assert min(tasks, most) <= found <= min(most, max(2 * tasks, 1))


@given(st.integers(1, 100), st.floats(1e-3, 1), st.floats(0.01, 1))
def test_dearer_groups_are_never_more(tasks: int, group_s: float, spare_s: float) -> None:
    assert planned_groups(tasks, 2 * group_s, spare_s, 500) <= planned_groups(tasks, group_s, spare_s, 500)


def test_more_groups_are_asked_for_once_more_tasks_were_wanted_for_a_while() -> None:
    asked, kept, changes, notes = with_group_counts({}, situation(0.0, 4), {"count": 6})
    assert (kept, changes) == ({"count": 4}, ())
    assert notes[0].why == "count: 6 tasks wanted for 0 s, it has 4 key groups: 4 for now"
    asked, _, changes, _ = with_group_counts(asked, situation(3.0, 4), {"count": 6})
    assert changes == ()
    asked, kept, changes, notes = with_group_counts(asked, situation(7.0, 4), {"count": 6})
    assert (asked["count"].count, kept["count"], changes[0].want) == (12, 4, "12")
    assert notes[0].why == "count: 6 tasks wanted, 4 until its state is in 12 groups (requested 0 s ago)"
    asked, _, changes, _ = with_group_counts(asked, situation(20.0, 4), {"count": 6})
    assert changes == (), "it is asked once"
    asked, kept, changes, notes = with_group_counts(asked, situation(30.0, 12), {"count": 6})
    assert (kept["count"], changes, notes) == (6, (), ())


def test_a_burst_changes_no_state() -> None:
    asked, _, _, _ = with_group_counts({}, situation(0.0, 4), {"count": 6})
    asked, _, _, _ = with_group_counts(asked, situation(5.0, 4), {"count": 4})
    _, _, changes, _ = with_group_counts(asked, situation(8.0, 4), {"count": 6})
    assert changes == ()


def test_what_did_not_come_is_not_asked_for_again_but_another_number_is() -> None:
    failed = {"count": GroupsAsked(12, 0.0, 0.0)}
    assert with_group_counts(failed, situation(100.0, 4), {"count": 6})[2] == ()
    asked, _, changes, _ = with_group_counts(failed, situation(100.0, 4), {"count": 8})
    assert changes[0].want == "16"
    assert asked["count"] == replace(failed["count"], count=16, at_s=100.0)
