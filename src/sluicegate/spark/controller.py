"""The control loop of a running pipeline: reads its folder, ticks, writes the plan and logs the reasons.

It runs in its own process (``python -m sluicegate.spark.controller FOLDER``) and shares only files with the pipeline.
If it is killed, the last plan stays in force; after a restart it continues from that plan and learns from the logged
batches.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sluicegate.config.profile_file import read_profiles, with_profiles
from sluicegate.config.typed import goal_from, policy_options
from sluicegate.control import loop
from sluicegate.control.loop import Settings
from sluicegate.control.read_limit import most_rows
from sluicegate.control.settings import Known, Timing, retimed, settings_for
from sluicegate.control.slots import SlotMapping
from sluicegate.domain import Decision, FleetSeen, Limits, Observation
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.model.mapping_rate import Routing
from sluicegate.place.catalogue import placer
from sluicegate.policy.catalogue import live_policy_entry
from sluicegate.runlog.batch_log import Tail, append_line
from sluicegate.runlog.failures import read_failures
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import USUAL_MOST_ROWS, OperatorPlan, PlanFile
from sluicegate.spark.control_options import Control as Control
from sluicegate.spark.control_options import given_to
from sluicegate.spark.documents import MOST_LOG_BYTES, decision_document, tick_document
from sluicegate.spark.looks import tick_until
from sluicegate.spark.pipeline.graph import REAL_TIME, RunningGraph, read_graph
from sluicegate.spark.pipeline.observing import Observer
from sluicegate.spark.realtime.observing import RealTimeObserver
from sluicegate.spark.what_if import WhatIf

MOST_KEY_GROUPS = 64
"""The most key groups an operator may grow to while it runs; each adds a state store to every batch."""
RESTART_S = 3.0
"""Assumed pause of a rescale in real-time mode until one was measured. At half, the first move is made for half the
gain; at double, it has to gain twice as much."""
PAYS_WITHIN_S = 600.0
"""A restart must gain more than its pause costs within this time. At double, restarts for half the gain are made."""


class Controller:
    """Calls ``loop.tick`` with the observations of a pipeline and enacts its decisions."""

    def __init__(self, layout: Layout, control: Control) -> None:
        graph = read_graph(layout)
        if graph is None:
            raise BadInput(f"no pipeline in {layout.folder}: start it first")
        self.graph = graph
        self._layout, self._control = layout, control
        self._plan = PlanFile(layout.plan)
        real_time = self.graph.mode == REAL_TIME
        self._observer = RealTimeObserver.of(layout, graph) if real_time else Observer.of(layout, graph)
        self._what_if = WhatIf(layout.what_if)
        self._moves = sum(1 for _ in Tail(layout.decisions).lines())
        self._timing, self._timed = control.timing, "assumed"
        self.state = loop.start(settings_of(self.graph, control), control.history_per_s())
        write_whole(layout.control, json.dumps(control_document(self.graph, control)))

    def step(self, now_s: float) -> tuple[Observation, Decision]:
        """Observe, decide, write the plan if it changed, and log both."""
        seen = self._observer.observe(now_s)
        self._bound_by_topics()
        self._count_restarts()
        self._retime(seen.fleet)
        self.state, decision = loop.tick(self.state, seen, now_s)
        decision = self._with_timing(at_the_bound(decision, self._observer.most_tasks))
        self._log(seen, decision)
        if not self._control.dry_run:
            self._enact(decision)
        self._what_if.renew(self.state, self.state.situation, now_s)
        return seen, decision

    def _bound_by_topics(self) -> None:
        """Limit operators that read Kafka to as many tasks as have rows to read; partitions may be added later."""
        settings, most = self.state.settings, self._observer.most_tasks
        limits = replace(settings.limits, most_of={**settings.limits.most_of, **most})
        if limits != settings.limits:
            self.state = replace(self.state, settings=replace(settings, limits=limits))

    def _count_restarts(self) -> None:
        """Use the measured restart pause in the rule that a move must gain more than it costs."""
        pause_s = self._observer.pause_s if isinstance(self._observer, RealTimeObserver) else None
        settings = self.state.settings
        if pause_s is not None and pause_s != settings.rules.pause_s:
            self.state = replace(self.state, settings=replace(settings, rules=replace(settings.rules, pause_s=pause_s)))

    def _retime(self, fleet: FleetSeen | None) -> None:
        """Use the measured start-up time, for policies that decide that long before a cycle starts."""
        if not self._in_cycles or fleet is None or fleet.startup_s is None:
            return
        self._timed = f"measured, median of {fleet.startups}"
        timing = replace(self._control.timing, startup_s=max(fleet.startup_s, self._control.interval_s))
        if abs(timing.startup_s - self._timing.startup_s) > self._control.interval_s:
            self._timing = timing
            fresh = settings_of(self.graph, self._control, timing)
            self.state = replace(self.state, settings=retimed(self.state.settings, fresh))

    def _with_timing(self, decision: Decision) -> Decision:
        """Add the cycle and start-up time that a decision was based on to its reasons."""
        held = not decision.reasons or decision.reasons[0].startswith("held")
        if not self._in_cycles or decision.proposal is None or held:
            return decision
        told = f"cycle S {self._timing.cycle_s:g} s, start-up U {self._timing.startup_s:.1f} s ({self._timed})"
        order = getattr(self.state.forecast_memory, "order", None)
        told += f", forecast by ARMA{order}, chosen by AIC" if order is not None else ""
        return replace(decision, reasons=(*decision.reasons, told))

    @property
    def _in_cycles(self) -> bool:
        return live_policy_entry(self._control.policy).moves == "cycles"

    def _enact(self, decision: Decision) -> None:
        """Write the plan of the decision, if it differs from the one in force.

        While executors are not known, as none of them were reported for some time, their number stays as it is.
        """
        plan = self._plan.read()
        told = decision.proposal is not None
        fresh = {node.name: self._planned(plan.of(node.name), node.name, decision) for node in self.graph.nodes}
        wanted = replace(
            plan,
            operators={**plan.operators, **fresh},
            executors=plan.executors if decision.executors is None else decision.executors,
            nodes=plan.nodes if decision.nodes is None else decision.nodes,
            leaving=decision.leaving if told else plan.leaving,
        )
        if wanted != plan:
            self._plan.write(replace(wanted, version=plan.version + 1, decision=self._moves or None))

    def _planned(self, now: OperatorPlan, name: str, decision: Decision) -> OperatorPlan:
        if decision.proposal is None:
            return now
        processors, pace_s = decision.running.get(name, now.processors), decision.pace_s.get(name, 0.0)
        return replace(
            now,
            processors=processors,
            shares=tuple(decision.shares.get(name, ())),
            pace_s=round(pace_s, 3),
            most_rows=most_rows(self.state.situation, name, processors, pace_s, USUAL_MOST_ROWS),
            groups=tuple(decision.groups.get(name, ())),
            hosts=tuple(decision.places.get(name, ())),
            key_groups=decision.key_groups.get(name, now.key_groups),
        )

    def _log(self, seen: Observation, decision: Decision) -> None:
        failing = read_failures(self._layout.failures)
        if decision.rescales or decision.changes:
            self._moves += 1
            told = decision_document(decision, self._moves, self.state.situation, failing)
            append_line(self._layout.decisions, json.dumps(told), MOST_LOG_BYTES)
        tick = tick_document(self.state, seen, decision, self._observer.executors, failing)
        append_line(self._layout.ticks, json.dumps(tick), MOST_LOG_BYTES)


def at_the_bound(decision: Decision, most: Mapping[str, int]) -> Decision:
    """Add a reason where the partitions of a topic limit k."""
    why = tuple(
        f"{name}: {k} tasks, one for each of the {k} partitions it reads; more would have no rows (add partitions, or "
        "set the source's minPartitions)"
        for name, k in most.items()
        if decision.proposal is not None and decision.proposal.processors.get(name, 0) >= k
    )
    return replace(decision, reasons=(*decision.reasons, *why)) if why else decision


def control_document(graph: RunningGraph, control: Control) -> dict[str, object]:
    """The content of the control file: the policy, its SLO, budget and timing, and this process."""
    return {
        "app": graph.name,
        "policy": control.policy,
        "slo": list(control.slo),
        "bounds": goal_from(list(control.slo)).latency_bounds,
        "budget": control.budget,
        "interval_s": control.look_s,
        "cycle_s": control.cycle_s,
        "options": list(control.options),
        "dry_run": control.dry_run,
        "started_s": round(time.time(), 3),
        "pid": os.getpid(),
    }


def settings_of(
    graph: RunningGraph, control: Control, timing: Timing | None = None, known: Known | None = None
) -> Settings:
    """The loop's settings for a live pipeline."""
    live_policy_entry(control.policy)
    most = {node.name: max(node.key_groups, MOST_KEY_GROUPS) for node in graph.nodes if node.stateful}
    fixed = {node.name: node.key_groups for node in graph.nodes if node.source} if graph.mode == REAL_TIME else {}
    limits = Limits(budget=control.budget, most_of={**most, **fixed}, least_of=fixed)
    goal = goal_from(list(control.slo))
    topology = graph.topology()
    if control.profiles is not None:
        topology = with_profiles(topology, read_profiles(Path(control.profiles), needed=False))
    slots = SlotMapping(placer(control.mapper), Routing(control.routing)) if control.mapper is not None else None
    timing, known = timing or control.timing, known or control.known()
    options = policy_options(control.options)
    made = settings_for(control.policy, topology, goal, limits, timing, known, options, slots)
    if graph.mode != REAL_TIME:
        return made
    return replace(made, rules=replace(made.rules, pause_s=RESTART_S, horizon_s=PAYS_WITHIN_S))


def run(layout: Layout, control: Control, parent: int | None = None) -> None:
    """Tick until the pipeline's process has ended."""
    tick_until(
        lambda: parent is not None and os.getppid() != parent, control.look_s, lambda: Controller(layout, control)
    )


def main() -> None:
    """Entry point of the controller's process."""
    folder, control, parent = given_to(sys.argv[1:])
    try:
        run(Layout(folder), control, parent)
    except SluicegateError as problem:  # the supervisor reports the last line of this log
        sys.stderr.write(f"{type(problem).__name__}: {problem}\n")
        sys.exit(problem.exit_code)


if __name__ == "__main__":
    main()
