from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.key_groups import ranges, repartition
from sluicegate.policy.papers.backup import BackupRule, backup_interval, rollback_for_failure, rollback_for_rescale

COUNT = Topology(
    "count",
    (Operator("clicks", 9.0), Operator("buys", 9.0), Operator("count", 9.0, stateful=True), Operator("report", 9.0)),
    (
        Edge("source:clicks", "clicks"),
        Edge("source:buys", "buys"),
        Edge("clicks", "count"),
        Edge("buys", "count"),
        Edge("count", "report"),
    ),
)


def test_a_node_below_alpha_backs_up_at_the_interval() -> None:
    assert backup_interval(0.79, 100.0).interval_s == 2.0


def test_a_loaded_node_backs_nothing_up_while_little_is_kept() -> None:
    assert backup_interval(0.8, 0.0).interval_s == float("inf")


def test_erratum_the_kept_output_of_a_loaded_node_is_bounded() -> None:
    found = backup_interval(0.95, 1000.0, BackupRule(most_kept_rows=5000))
    assert (found.interval_s, found.forced) == (5.0, True)
    assert "5,000 rows are kept upstream: a backup is forced" in found.reason


@given(st.floats(0, 1), st.floats(0.1, 1e6), st.integers(1, 10**6))
def test_no_more_rows_are_kept_than_allowed(load: float, rate: float, most: int) -> None:
    found = backup_interval(load, rate, BackupRule(most_kept_rows=most))
    assert found.interval_s * rate <= most * (1 + 1e-9)


@given(st.integers(1, 12), st.integers(1, 12))
def test_a_rescale_rolls_back_only_the_groups_that_move(before: int, after: int) -> None:
    plan = repartition(ranges(12, before), after)
    rollback = rollback_for_rescale(COUNT, "count", plan)
    moved = tuple(move.group for move in plan.moves)
    assert tuple(send.group for send in rollback.sends) == rollback.muted == moved
    assert {again.origin for again in rollback.re_emits} == ({"clicks", "buys"} if moved else set())
    assert all(again.groups == moved for again in rollback.re_emits)
    assert rollback.holder == ("clicks" if moved else None)


def test_only_the_affected_operator_is_rolled_back() -> None:
    rollback = rollback_for_rescale(COUNT, "count", repartition(ranges(8, 2), 4))
    assert rollback.operator == "count"
    assert "report" not in {again.origin for again in rollback.re_emits}
    assert rollback.reason == "4 of 8 key groups of count change their owner; only they roll back"


def test_a_failed_instance_gets_its_own_groups_back() -> None:
    rollback = rollback_for_failure(COUNT, "count", ranges(8, 4), failed={1})
    assert [(send.group, send.origin, send.target) for send in rollback.sends] == [(2, 1, 1), (3, 1, 1)]
    assert rollback.re_emits[0].groups == (2, 3)


def test_an_operator_without_state_needs_no_backup() -> None:
    rescaled = rollback_for_rescale(COUNT, "report", repartition(ranges(4, 1), 2))
    assert (rescaled.holder, rescaled.sends, rescaled.re_emits) == (None, (), ())
    failed = rollback_for_failure(COUNT, "report", ranges(4, 2), failed={0})
    assert (failed.holder, failed.sends) == (None, ())
    assert failed.re_emits[0].origin == "count"


def test_the_source_replays_for_the_first_operator() -> None:
    rollback = rollback_for_failure(COUNT, "clicks", ranges(2, 2), failed={0})
    assert rollback.re_emits[0].origin == "source:clicks"


def test_nothing_failed_means_nothing_to_do() -> None:
    rollback = rollback_for_failure(COUNT, "count", ranges(4, 2), failed=())
    assert (rollback.holder, rollback.sends, rollback.re_emits) == (None, (), ())


def test_bad_rules_are_refused() -> None:
    with pytest.raises(BadInput, match="interval_s"):
        BackupRule(interval_s=0.0)
    with pytest.raises(BadInput, match="alpha"):
        BackupRule(alpha=0.0)
    with pytest.raises(BadInput, match="most_kept_rows"):
        BackupRule(most_kept_rows=0)
