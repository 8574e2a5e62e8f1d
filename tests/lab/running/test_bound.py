"""A run that missed its promise says what bound it, with the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.domain import Goal
from sluicegate.lab.running.bound import bound_by
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.graph import Node, RunningGraph

NODES = (
    Node("a", ("rows",), ("a",), False, 8, False, None),
    Node("b", ("a",), ("b",), True, 4, False, None),
    Node("c", ("b",), ("c",), False, 8, True, None),
)
GRAPH = RunningGraph("three", ("rows",), NODES, ("c",))
GOAL = Goal(mean_s=3.0)


def ticks(mean_s: float = 9.0, b: int = 1, **more: Any) -> list[dict[str, Any]]:
    one = {"running": {"a": 1, "b": b, "c": 1}, "sojourn": {"mean_s": mean_s}, "predicted_mean_s": 1.5, **more}
    return [{"at_s": 2.0 * at, **one} for at in range(10)]


COOL = [{"rule": "cool-down", "why": "moved 0.5 s ago, the cool-down is 1 s"}]


@pytest.mark.parametrize(
    ("looks", "control", "said"),
    [
        (ticks(), Control(budget=3), "3 slots for 3 operators: no processor was free to add; give more with --budget"),
        (ticks(b=4), Control(budget=16), "b held 4 processors, as many as it has key groups"),
        (
            ticks(refusals=COOL),
            Control(budget=16),
            "the rule 'cool-down' held changes back at 10 of 10 late observations",
        ),
        (
            ticks(),
            Control(budget=16),
            "with 3 processors the mean was 9 s in the 10 late observations (predicted 1.5 s)",
        ),
        (ticks(nodes=[{"cpu": 0.97}]), Control(budget=16), "the cores were 97% busy: more cores are needed"),
        (ticks(predicted_mean_s=None), Control(budget=16), "no prediction, as queues grew"),
        (ticks(), Control(budget=3, dry_run=True), "--dry-run only advises"),
    ],
)
def test_what_bound_a_late_run_is_named(looks: list[dict[str, Any]], control: Control, said: str) -> None:
    assert said in bound_by(0.06, GOAL, looks, GRAPH, control)


@pytest.mark.parametrize(("kept", "mean_s"), [(1.0, 9.0), (0.97, 9.0), (None, 9.0), (0.5, 1.0)])
def test_a_run_that_kept_its_promise_has_nothing_to_explain(kept: float | None, mean_s: float) -> None:
    assert bound_by(kept, GOAL, ticks(mean_s), GRAPH, Control(budget=3)) == ""
