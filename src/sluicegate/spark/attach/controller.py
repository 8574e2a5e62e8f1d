"""The control loop beside an attached application: reads its folder, ticks every query, writes the plan and says why.

A process of its own (``python -m sluicegate.spark.attach.controller FOLDER``) that the driver's plugin starts. Killed
at any moment, it leaves the last plan in force; started again, it learns from the batches that are logged.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from sluicegate.control.governor import held
from sluicegate.control.rules import Ledger
from sluicegate.domain import Decision
from sluicegate.domain.births import quantile_s
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.policy.sharing import shared
from sluicegate.runlog.batch_log import Tail, append_line
from sluicegate.runlog.files import read_if_there, write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan
from sluicegate.runlog.runs import registered
from sluicegate.spark.attach.application import Application, ApplicationGround, Query, queries_in
from sluicegate.spark.attach.lane import Lane
from sluicegate.spark.attach.latency import ASSUMED
from sluicegate.spark.attach.observing import Planned
from sluicegate.spark.controller import Control, control_document
from sluicegate.spark.documents import decision_document, tick_document
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.what_if import WhatIf

_MOST_LOG_BYTES = 8_000_000
_SETTLE_S = 20.0


class AttachController:
    """Drives ``loop.tick`` of every query of an application, and shares its executors among them."""

    def __init__(self, layout: Layout, application: Application) -> None:
        self._layout, self._application, self._options = layout, application, application.options
        self.lanes: dict[str, Lane] = {}
        self._ledger = Ledger()
        self._what_if = WhatIf(layout.what_if)
        self._moves = sum(1 for _ in Tail(layout.decisions).lines())
        self._version, self._planned = _plan_in_force(layout)
        self._executors: int | None = None
        self._told: tuple[int | None, int] | None = None
        self.acts = application.touches and not self._options.observes_only
        if not self.acts:
            layout.plan.unlink(missing_ok=True)
        write_whole(layout.control, json.dumps(self._control()))

    def step(self, now_s: float) -> None:
        """Observe, decide, write the plan if it changed, and log both."""
        ground = ApplicationGround.read(self._layout, now_s)
        if ground is None:
            return
        active = {name: query for name, query in queries_in(self._layout).items() if query.active}
        budget = self._budget(ground)
        self._meet(active, budget)
        for name, query in active.items():
            self.lanes[name].tick(now_s, ground, query, budget)
        self._share(budget)
        wanted = self._executors_wanted(now_s, ground)
        if self.acts:
            self._enact(now_s, wanted)
        self._log(now_s, ground, wanted)

    def _control(self) -> dict[str, object]:
        options = self._options
        graph = RunningGraph(self._application.name, (), (), ())
        control = Control(options.policy, options.slo, None, options.interval_s, dry_run=not self.acts)
        return {
            **control_document(graph, control),
            "query_slo": {name: ",".join(texts) for name, texts in options.query_slo.items()},
            "executors": options.executors,
            "no_executors": self._application.no_executors,
            "latency_assumes": ASSUMED,
        }

    @property
    def _moves_executors(self) -> bool:
        return self._options.executors is not None and self._application.no_executors is None

    def _budget(self, ground: ApplicationGround) -> int:
        """The processors there can be: with executors that come and go, of all that may come."""
        if self._options.executors is not None and self._moves_executors:
            return self._options.executors[1] * ground.executor_cores
        return ground.slots

    def _meet(self, active: Mapping[str, Query], budget: int) -> None:
        for name in [name for name in self.lanes if name not in active]:
            del self.lanes[name]
        for name, query in active.items():
            if name not in self.lanes:
                lane = Lane.of(self._layout, self._application, query, budget, self._moves_executors)
                lane.planned = self._planned.get(name)
                self.lanes[name] = lane

    def _share(self, budget: int) -> None:
        movable = {name: lane for name, lane in self.lanes.items() if lane.movable}
        if len(movable) < 2:
            return
        given = shared({name: lane.claim() for name, lane in movable.items()}, budget)
        total = sum(lane.wants for lane in movable.values())
        for name, lane in movable.items():
            why = f"{name} gets {given[name]} of {lane.wants}: the queries want {total} processors, there are {budget}"
            lane.settle(given[name], why)

    def _executors_wanted(self, now_s: float, ground: ApplicationGround) -> int | None:
        """As many as all tasks need, at once if more, after a while if fewer; ``None`` where they are not moved."""
        if self._options.executors is None or not self._moves_executors or ground.executors is None:
            return None
        least, most = self._options.executors
        known = [lane.wants for lane in self.lanes.values() if lane.observer.learned]
        if not known:
            return self._executors
        needed = min(max(math.ceil(sum(known) / ground.executor_cores), least), most)
        self._ledger, want = held(self._ledger, now_s, needed, self._executors or ground.executors, _SETTLE_S)
        return want

    def _enact(self, now_s: float, executors: int | None) -> None:
        wants = {name: lane.wants for name, lane in self.lanes.items() if lane.movable and lane.wants > 0}
        for name, lane in self.lanes.items():
            lane.plan(wants.get(name), now_s)
        kept = {name: planned for name, planned in self._planned.items() if name not in self.lanes}
        planned = {name: lane.planned for name, lane in self.lanes.items() if lane.planned is not None}
        before = {name: one.processors for name, one in self._planned.items()}
        self._planned = {**kept, **planned}
        after = {name: one.processors for name, one in self._planned.items()}
        if after == before and executors == self._executors:
            return
        self._version, self._executors = self._version + 1, executors
        operators = {name: asdict(OperatorPlan(processors)) for name, processors in after.items()}
        document = {"version": self._version, "operators": operators, "executors": executors or 0}
        write_whole(self._layout.plan, json.dumps(document))

    def _log(self, now_s: float, ground: ApplicationGround, wanted: int | None) -> None:
        told = [lane for lane in self.lanes.values() if lane.decision is not None]
        moving = [lane for lane in told if lane.decision is not None and lane.decision.moves]
        if moving:
            self._moves += 1
            document = _merged_decision([_decision(lane, self._moves) for lane in told], moving)
            append_line(self._layout.decisions, json.dumps(document), _MOST_LOG_BYTES)
        if ground.executors is not None and (wanted, ground.executors) != self._told:
            said = f"{ground.executors} executors" + (f", {wanted} wanted" if wanted is not None else "")
            line = {"at_s": round(now_s, 3), "what": said, "executors": ground.executors}
            append_line(self._layout.fleet, json.dumps(line), _MOST_LOG_BYTES)
            self._told = (wanted, ground.executors)
        append_line(self._layout.ticks, json.dumps(self._tick(now_s, ground, told)), _MOST_LOG_BYTES)
        if len(told) == 1:
            self._what_if.renew(told[0].state, told[0].state.situation, now_s)

    def _tick(self, now_s: float, ground: ApplicationGround, lanes: list[Lane]) -> dict[str, object]:
        """One line a look: every query as an operator, all of them together as the pipeline."""
        parts = [
            tick_document(lane.state, lane.seen, lane.decision, ground.executors)
            for lane in lanes
            if lane.seen is not None and lane.decision is not None
        ]
        if len(parts) == 1:
            return parts[0]
        ages = [age for lane in lanes if lane.name not in self._options.query_slo for age in lane.observer.ages]
        rows = sum(weight for _, weight in ages)
        mean_s = sum(age * weight for age, weight in ages) / rows if rows else None
        sojourn = {"mean_s": mean_s, **{f"p{q}_s": quantile_s(ages, q / 100) for q in (50, 95, 99)}} if rows else None
        return {
            "at_s": round(now_s, 3),
            **{what: _sum(parts, what) for what in ("arrivals_per_s", "throughput_per_s", "backlog_rows")},
            "sojourn": sojourn,
            "predicted_mean_s": None,
            "forecast": None,
            **{what: _union(parts, what) for what in ("running", "pace_s", "operators")},
            "refusals": [refusal for part in parts for refusal in _list(part["refusals"])],
            "executors": ground.executors,
            "nodes": [asdict(node) for node in ground.nodes],
        }


def _plan_in_force(layout: Layout) -> tuple[int, dict[str, Planned]]:
    """What a controller before this one left."""
    text = read_if_there(layout.plan)
    try:
        told = json.loads(text) if text else {}
        since_s = layout.plan.stat().st_mtime if text else 0.0
        planned = {n: Planned(int(p["processors"]), since_s) for n, p in told.get("operators", {}).items()}
        return int(told.get("version", 0)), planned
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return 0, {}


def _decision(lane: Lane, number: int) -> dict[str, object]:
    assert lane.decision is not None
    return decision_document(lane.decision, number, lane.state.situation)


def _merged_decision(parts: list[dict[str, object]], moving: list[Lane]) -> dict[str, object]:
    """All that moved at one look, with the reasons of those that moved."""
    reasons = [reason for lane in moving for reason in _told_reasons(lane.decision, lane.name, len(parts) > 1)]
    return {
        **parts[0],
        "running": _union(parts, "running"),
        "rescales": [rescale for part in parts for rescale in _list(part["rescales"])],
        "reasons": reasons,
        "refusals": [refusal for part in parts for refusal in _list(part["refusals"])],
        "arrivals_per_s": _sum(parts, "arrivals_per_s"),
        "predicted_mean_s": parts[0]["predicted_mean_s"] if len(parts) == 1 else None,
    }


def _told_reasons(decision: Decision | None, name: str, several: bool) -> Iterator[str]:
    for reason in decision.reasons if decision else ():
        yield f"{name}: {reason}" if several and name not in reason else reason


def _sum(parts: list[dict[str, object]], what: str) -> float | None:
    known = [value for part in parts if isinstance(value := part[what], int | float)]
    return sum(known) if known else None


def _union(parts: list[dict[str, object]], what: str) -> dict[str, object]:
    return {name: value for part in parts if isinstance(found := part[what], dict) for name, value in found.items()}


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


@contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Only one controller decides for an application."""
    with (layout.folder / "controller.lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            raise BadInput(f"another controller (process {lock.read().strip()}) decides for {layout.folder}") from None
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def run(layout: Layout, parent: int | None) -> None:
    """Tick until the application's driver is gone."""
    application = Application.read(layout)
    made = application.options.folder is None
    with alone(layout), registered(layout.folder, application.name, temporary=made):
        controller = AttachController(layout, application)
        due_s = time.time()
        while parent is None or os.getppid() == parent:
            controller.step(time.time())
            due_s = max(due_s + application.options.interval_s, time.time())
            time.sleep(max(due_s - time.time(), 0.05))


def main() -> None:
    """Entry point of the controller's process."""
    parser = argparse.ArgumentParser(prog="sluicegate.spark.attach.controller")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parent", type=int, help="ends when that process, which started it, is gone")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        run(Layout(given.folder), given.parent)
    except SluicegateError as problem:
        sys.stderr.write(f"sluicegate: {problem}\n")
        sys.exit(problem.exit_code)


if __name__ == "__main__":
    main()
