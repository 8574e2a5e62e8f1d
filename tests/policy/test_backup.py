from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, NodeObservation, Observation, Operator, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.papers.backup import BackupRule, backup_interval, backup_paces


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


def test_bad_rules_are_refused() -> None:
    with pytest.raises(BadInput, match="interval_s"):
        BackupRule(interval_s=0.0)
    with pytest.raises(BadInput, match="alpha"):
        BackupRule(alpha=0.0)
    with pytest.raises(BadInput, match="most_kept_rows"):
        BackupRule(most_kept_rows=0)


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_state_is_committed_at_least_once_a_minute(rate: float) -> None:
    one = Topology("t", (Operator("c", 1000.0, stateful=True),), (Edge("source", "c"),))
    seen = Observation(0.0, rate, {"c": 1}, nodes=(NodeObservation("n", 0.9, hosts={"c": 1}),))
    now = Situation(0.0, one, seen, rate, {"c": rate})
    assert backup_paces(now, {"c": 1}, BackupRule(repair_s=2.0))["c"].interval_s == 60.0
