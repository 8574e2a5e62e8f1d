"""Executors for processors: more at once, fewer after a wait that is counted once."""

from __future__ import annotations

import pytest

from sluicegate.control.capacity import capacity_for
from sluicegate.control.rules import Ledger
from sluicegate.domain import Edge, ExecutorSeen, FleetSeen, Operator, Shape, Topology
from sluicegate.place.mc_stream import McStreamPlacer

ONE = Topology("one", (Operator("a", 100.0),), (Edge("source", "a"),))


def gone_after_s(waited_s: float) -> int:
    """Seconds until fewer executors are asked for, from the moment the governor has taken processors away."""
    fleet = FleetSeen(Shape(1, 1, 4, settle_s=20.0), tuple(ExecutorSeen(f"h{i}", 1) for i in range(3)), None)
    ledger = Ledger()
    for at in range(60):
        k = 3 if at == 0 else 1
        ledger, found = capacity_for(ledger, at, ONE, McStreamPlacer(), {"a": k}, fleet, {}, waited_s=waited_s)
        if found.executors == 1:
            return at
    raise AssertionError("never")


@pytest.mark.parametrize("waited_s", [0.0, 15.0, 300.0])
def test_what_the_processors_waited_in_the_governors_window_counts(waited_s: float) -> None:
    assert gone_after_s(waited_s) == max(20 - waited_s, 0) + 1
