"""The control loop beside a running pipeline: reads its folder, ticks, writes the plan and says why.

A process of its own (``python -m sluicegate.spark.controller FOLDER``). It shares only files with the pipeline: killed
at any moment, it leaves the last plan in force; started again, it takes the plan from there and learns from the batches
that are logged.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sluicegate.config.goal_text import goal_from
from sluicegate.control import loop
from sluicegate.control.loop import Settings
from sluicegate.control.settings import Known, Timing, settings_for
from sluicegate.domain import Decision, Limits, Observation
from sluicegate.errors import BadInput
from sluicegate.policy.catalogue import live_policy_entry
from sluicegate.runlog.batch_log import Tail, append_line
from sluicegate.runlog.failures import read_failures
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile
from sluicegate.spark.documents import decision_document, tick_document
from sluicegate.spark.pipeline.graph import RunningGraph, read_graph
from sluicegate.spark.pipeline.observing import Observer
from sluicegate.spark.what_if import WhatIf

_MOST_LOG_BYTES = 8_000_000
_TIMES = ("interval_s", "cooldown_s", "settle_down_s", "startup_s", "cycle_s")


@dataclass(frozen=True, slots=True)
class Control:
    """What a user chooses of the loop. ``budget`` is the slots there are; ``dry_run`` only advises.

    ``startup_s`` is what an executor takes to come where more processors need more of them. Without, a change of k
    is in force at the next batch, which is by the next look. ``cycle_s`` is the cycle of policies that decide in
    cycles, and DRS's T_ra unless ``cooldown_s`` says otherwise.
    """

    policy: str = "sluicegate"
    slo: tuple[str, ...] = ()
    budget: int | None = None
    interval_s: float = 2.0
    cooldown_s: float | None = None
    settle_down_s: float | None = None
    dry_run: bool = False
    startup_s: float = 0.0
    cycle_s: float = 60.0

    def __post_init__(self) -> None:
        _check_control(self)

    @property
    def timing(self) -> Timing:
        """As the loop is told."""
        startup_s = max(self.startup_s, self.interval_s)
        return Timing(
            self.interval_s, startup_s, self.cycle_s, cooldown_s=self.cooldown_s, settle_down_s=self.settle_down_s
        )

    def arguments(self) -> list[str]:
        """As command-line arguments of the controller's process."""
        budget = [] if self.budget is None else [f"--budget={self.budget}"]
        slo = [f"--slo={text}" for text in self.slo]
        dry = ["--dry-run"] if self.dry_run else []
        chosen = {what: getattr(self, what) for what in _TIMES}
        times = [f"--{what.replace('_', '-')}={value}" for what, value in chosen.items() if value is not None]
        return [f"--policy={self.policy}", *slo, *budget, *times, *dry]


def _check_control(given: Control) -> None:
    """Refuse, before a process is started with it, what the controller could not use."""
    if not isinstance(given.policy, str):
        raise BadInput(f"policy is {given.policy!r}: give its name, see `sluicegate policies`")
    live_policy_entry(given.policy)
    promise: object = given.slo
    if not isinstance(promise, tuple | list) or not all(isinstance(text, str) for text in promise):
        raise BadInput(f"slo is {given.slo!r}: give texts such as ('mean=3s', 'p95=8s')")
    goal_from(list(given.slo))
    if given.budget is not None and (not isinstance(given.budget, int) or given.budget < 1):
        raise BadInput(f"budget is {given.budget}: give at least 1 processor")
    for what in _TIMES:
        value = getattr(given, what)
        if value is None and what in ("cooldown_s", "settle_down_s"):
            continue
        if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise BadInput(f"{what} is {value}: give seconds, 0 or more")
    if not given.interval_s > 0:
        raise BadInput("interval_s is 0: give the seconds between two looks, above 0")


class Controller:
    """Drives ``loop.tick`` on what an observer sees."""

    def __init__(self, layout: Layout, control: Control) -> None:
        graph = read_graph(layout)
        if graph is None:
            raise BadInput(f"no pipeline in {layout.folder}: start it first")
        self.graph = graph
        self._layout, self._control = layout, control
        self._plan = PlanFile(layout.plan)
        self._observer = Observer.of(layout, self.graph)
        self._what_if = WhatIf(layout.what_if)
        self._moves = sum(1 for _ in Tail(layout.decisions).lines())
        self.state = loop.start(settings_of(self.graph, control))
        write_whole(layout.control, json.dumps(control_document(self.graph, control)))

    def step(self, now_s: float) -> tuple[Observation, Decision]:
        """Observe, decide, write the plan if it changed, and log both."""
        seen = self._observer.observe(now_s)
        self._bound_by_topics()
        self.state, decision = loop.tick(self.state, seen, now_s)
        decision = at_the_bound(decision, self._observer.most_tasks)
        self._log(seen, decision)
        if not self._control.dry_run:
            self._enact(decision)
        self._what_if.renew(self.state, self.state.situation, now_s)
        return seen, decision

    def _bound_by_topics(self) -> None:
        """No more tasks for an operator that reads Kafka than have rows to read; partitions may be added meanwhile."""
        settings, most = self.state.settings, self._observer.most_tasks
        limits = replace(settings.limits, most_of={**settings.limits.most_of, **most})
        if limits != settings.limits:
            self.state = replace(self.state, settings=replace(settings, limits=limits))

    def _enact(self, decision: Decision) -> None:
        """Write the plan, if it is another; all of it comes from the decision."""
        plan = self._plan.read()
        told = decision.proposal is not None
        fresh = {node.name: _planned(plan.of(node.name), node.name, decision) for node in self.graph.nodes}
        wanted = replace(
            plan,
            operators={**plan.operators, **fresh},
            executors=decision.executors if told else plan.executors,
            nodes=decision.nodes if told else plan.nodes,
            leaving=decision.leaving if told else plan.leaving,
        )
        if wanted != plan:
            self._plan.write(replace(wanted, version=plan.version + 1, decision=self._moves or None))

    def _log(self, seen: Observation, decision: Decision) -> None:
        failing = read_failures(self._layout.failures)
        # a pace follows the load at every look: it is in the log of looks, with its reason
        if decision.rescales or any(not change.what.startswith("pace of") for change in decision.changes):
            self._moves += 1
            told = decision_document(decision, self._moves, self.state.situation, failing)
            append_line(self._layout.decisions, json.dumps(told), _MOST_LOG_BYTES)
        tick = tick_document(self.state, seen, decision, self._observer.executors, failing)
        append_line(self._layout.ticks, json.dumps(tick), _MOST_LOG_BYTES)


def at_the_bound(decision: Decision, most: Mapping[str, int]) -> Decision:
    """Say where it is the partitions of a topic that k stops at."""
    why = tuple(
        f"{name}: {k} tasks, one for each of the {k} partitions it reads; more would have no rows (add partitions, or "
        "set the source's minPartitions)"
        for name, k in most.items()
        if decision.proposal is not None and decision.proposal.processors.get(name, 0) >= k
    )
    return replace(decision, reasons=(*decision.reasons, *why)) if why else decision


def control_document(graph: RunningGraph, control: Control) -> dict[str, object]:
    """Who decides, and what was promised."""
    return {
        "app": graph.name,
        "policy": control.policy,
        "slo": list(control.slo),
        "bounds": goal_from(list(control.slo)).latency_bounds,
        "budget": control.budget,
        "interval_s": control.interval_s,
        "dry_run": control.dry_run,
        "started_s": round(time.time(), 3),
        "pid": os.getpid(),
    }


def settings_of(
    graph: RunningGraph, control: Control, timing: Timing | None = None, known: Known | None = None
) -> Settings:
    """The loop's settings for a live pipeline."""
    live_policy_entry(control.policy)
    most = {node.name: node.key_groups for node in graph.nodes if node.stateful}
    limits = Limits(budget=control.budget, most_of=most)
    goal = goal_from(list(control.slo))
    return settings_for(control.policy, graph.topology(), goal, limits, timing or control.timing, known)


def _planned(now: OperatorPlan, name: str, decision: Decision) -> OperatorPlan:
    if decision.proposal is None:
        return now
    return replace(
        now,
        processors=decision.running.get(name, now.processors),
        shares=tuple(decision.shares.get(name, ())),
        pace_s=round(decision.pace_s.get(name, 0.0), 3),
        groups=tuple(decision.groups.get(name, ())),
        hosts=tuple(decision.places.get(name, ())),
    )


def run(layout: Layout, control: Control, parent: int | None = None) -> None:
    """Tick until the pipeline's process is gone."""
    controller = Controller(layout, control)
    due_s = time.time()
    while parent is None or os.getppid() == parent:
        controller.step(time.time())
        due_s = max(due_s + control.interval_s, time.time())
        time.sleep(max(due_s - time.time(), 0.05))


def main() -> None:
    """Entry point of the controller's process."""
    parser = argparse.ArgumentParser(prog="sluicegate.spark.controller")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--policy", default="sluicegate")
    parser.add_argument("--slo", action="append", default=[])
    parser.add_argument("--budget", type=int)
    parser.add_argument("--interval-s", type=float, default=2.0)
    parser.add_argument("--cooldown-s", type=float)
    parser.add_argument("--settle-down-s", type=float)
    parser.add_argument("--startup-s", type=float, default=0.0)
    parser.add_argument("--cycle-s", type=float, default=60.0)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="ends when that process is gone")
    given = parser.parse_args()
    control = Control(
        given.policy,
        tuple(given.slo),
        given.budget,
        given.interval_s,
        given.cooldown_s,
        given.settle_down_s,
        given.dry_run,
        given.startup_s,
        given.cycle_s,
    )
    run(Layout(given.folder), control, given.parent)


if __name__ == "__main__":
    main()
