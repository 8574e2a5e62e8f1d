"""The control loop of an attached application: reads its folder, ticks every query, writes the plan and the reasons.

It runs in its own process (``python -m sluicegate.spark.attach.controller FOLDER``), which the driver's plugin starts.
If it is killed, the last plan stays in force; after a restart it learns from the logged batches.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from sluicegate.control.governor import govern, held
from sluicegate.control.rehearsal import rehearse
from sluicegate.control.rules import Ledger, Request
from sluicegate.domain import Change, Decision, Limits
from sluicegate.domain.births import quantile_s
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.policy.sharing import shared
from sluicegate.runlog.batch_log import DAMAGE, Tail, append_line
from sluicegate.runlog.files import owner_only_file, read_if_there, write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan
from sluicegate.runlog.runs import registered
from sluicegate.spark.attach.application import Application, ApplicationGround, Query, queries_in
from sluicegate.spark.attach.lane import Lane
from sluicegate.spark.attach.latency import ASSUMED
from sluicegate.spark.attach.observing import Planned
from sluicegate.spark.attach.options import NO_PROMISE
from sluicegate.spark.compiling import CompiledMeanwhile
from sluicegate.spark.controller import Control, control_document
from sluicegate.spark.documents import MOST_LOG_BYTES, decision_document, tick_document
from sluicegate.spark.looks import tick_until
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.what_if import WhatIf

_SETTLE_S = 20.0
_YIELDS = 10
"""Niceness of the process that compiles: the queries go first, and the controller decides meanwhile."""


class AttachController:
    """Calls ``loop.tick`` for every query of an application and shares the executors among the queries."""

    def __init__(self, layout: Layout, application: Application) -> None:
        self._layout, self._application, self._options = layout, application, application.options
        self.lanes: dict[str, Lane] = {}
        self._ledger, self._shares = Ledger(), Ledger()
        self._what_if = WhatIf(layout.what_if)
        self._moves = sum(1 for _ in Tail(layout.decisions).lines())
        self._version, self._planned = _plan_in_force(layout)
        self._executors: int | None = None
        self._needed = 0
        self._left_s = -math.inf
        self._written: dict[str, dict[str, object]] = {}
        self._text: str | None = None
        self._told: tuple[int | None, int] | None = None
        self._sojourn: dict[str, float | None] | None = None
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
        self._meet(now_s, active, budget)
        for name, query in active.items():
            self.lanes[name].tick(now_s, ground, query, budget)
        self._share(now_s, budget)
        had, wanted = self._executors or ground.executors, self._executors_wanted(now_s, ground)
        moved = None if wanted is None or not had or wanted == had else self._executors_change(had, wanted, ground)
        if self.acts:
            self._enact(now_s, wanted, awaited=(wanted or 0) > (ground.executors or 0))
        self._log(now_s, ground, wanted, moved)

    def _control(self) -> dict[str, object]:
        options = self._options
        graph = RunningGraph(self._application.name, (), (), ())
        control = Control(options.policy, options.slo, None, options.interval_s, dry_run=not self.acts)
        return {
            **control_document(graph, control),
            "query_slo": {name: ",".join(texts) or NO_PROMISE for name, texts in options.own_slo.items()},
            "executors": options.executors,
            "no_executors": self._application.no_executors,
            "unknown_settings": self._application.unknown,
            "latency_assumes": ASSUMED,
        }

    @property
    def _moves_executors(self) -> bool:
        return self._application.moves_executors

    def _budget(self, ground: ApplicationGround) -> int:
        """The most processors available: those of the most executors allowed if executors are moved, else the slots."""
        if self._options.executors is not None and self._moves_executors:
            return self._options.executors[1] * ground.executor_cores
        return ground.slots

    def _meet(self, now_s: float, active: Mapping[str, Query], budget: int) -> None:
        for name in [name for name in self.lanes if name not in active]:
            self._left_s = now_s  # its processors were not held by the governor's window: it may come back at once
            del self.lanes[name]
        for name, query in active.items():
            if name not in self.lanes:
                lane = Lane.of(self._layout, self._application, query, budget, self._moves_executors)
                lane.planned = self._planned.get(name)
                self.lanes[name] = lane

    def _share(self, now_s: float, budget: int) -> None:
        """Divide the budget greedily if the queries want more; the governor damps the result like any other move."""
        movable = {name: lane for name, lane in self.lanes.items() if lane.movable and lane.wants > 0}
        total = sum(lane.wants for lane in movable.values())
        if len(movable) < 2 or total <= budget:
            return
        given = shared({name: lane.claim() for name, lane in movable.items()}, budget)
        load = sum(lane.state.situation.arrivals_per_s for lane in movable.values() if lane.state.situation)
        request = Request(now_s, now_s, load, False, {name: lane.asked for name, lane in movable.items()}, given, {})
        rules = next(iter(movable.values())).state.settings.rules
        limits = Limits(budget=max(budget, len(movable)))
        self._shares, verdict = govern(self._shares, request, rules, limits)
        for name, lane in movable.items():
            k = verdict.running[name]
            why = f"{name} gets {k} of {lane.wants}: the queries want {total} processors, there are {budget}"
            lane.settle(k, why, verdict.refusals)

    def _executors_wanted(self, now_s: float, ground: ApplicationGround) -> int | None:
        """The executors that all tasks need; ``None`` if executors are not moved.

        Scale-out takes effect at once, scale-in only after the settle window.
        """
        if self._options.executors is None or not self._moves_executors or ground.executors is None:
            return None
        least, most = self._options.executors
        known = [lane.needs for lane in self.lanes.values() if lane.observer.learned]
        if not known:
            return self._executors
        self._needed = needed = min(max(math.ceil(sum(known) / ground.executor_cores), least), most)
        waited_s = min(lane.state.settings.rules.settle_down_s for lane in self.lanes.values())
        waited_s = waited_s if now_s - self._left_s > _SETTLE_S else 0.0
        have = self._executors or ground.executors
        self._ledger, want = held(self._ledger, now_s, needed, have, _SETTLE_S, waited_s)
        return want

    def _executors_change(self, have: int, want: int, ground: ApplicationGround) -> Change:
        wants = {name: lane.needs for name, lane in self.lanes.items() if lane.observer.learned}
        told = ", ".join(f"{name} {k}" for name, k in wants.items())
        needed = f"{sum(wants.values())} processors need {self._needed} executors of {ground.executor_cores} slots"
        kept = f"; {want} stay for now, as they were needed a moment ago" if want > self._needed else ""
        return Change("executors", str(have), str(want), f"{needed} ({told}){kept}")

    def _enact(self, now_s: float, executors: int | None, awaited: bool) -> None:
        wants = {name: lane.wants for name, lane in self.lanes.items() if lane.movable and lane.wants > 0}
        for name, lane in self.lanes.items():
            lane.plan(wants.get(name), now_s)
        # ended queries keep their plan, as they may come back, until the driver has forgotten them
        kept = {name: planned for name, planned in self._planned.items() if name not in self.lanes}
        if kept and (known := queries_in(self._layout)):
            kept = {name: planned for name, planned in kept.items() if name in known}
        planned = {name: lane.planned for name, lane in self.lanes.items() if lane.planned is not None}
        self._planned = {**kept, **planned}
        operators = {name: asdict(OperatorPlan(one.processors)) for name, one in kept.items()}
        operators |= {name: self.lanes[name].document(one.processors, awaited) for name, one in planned.items()}
        if operators == self._written and executors == self._executors and not self._overwritten():
            return
        self._version, self._executors, self._written = self._version + 1, executors, operators
        document = {"version": self._version, "operators": operators, "executors": executors or 0}
        self._text = json.dumps(document)
        write_whole(self._layout.plan, self._text)

    def _overwritten(self) -> bool:
        """Whether the plan file has other text; if it was removed, Spark runs as usual until the next change."""
        found = read_if_there(self._layout.plan, errors="replace")
        return self._text is not None and found is not None and found != self._text

    def _log(self, now_s: float, ground: ApplicationGround, wanted: int | None, moved: Change | None) -> None:
        told = [lane for lane in self.lanes.values() if lane.decision is not None]
        moving = [lane for lane in told if lane.decision is not None and (lane.decision.moves or lane.decision.changes)]
        if moving or (moved is not None and self.acts and told):
            self._moves += 1
            document = _merged_decision([_decision(lane, self._moves) for lane in told], moving)
            if moved is not None:
                document["changes"] = [*_list(document["changes"]), asdict(moved)]
                document["reasons"] = [*_list(document["reasons"]), moved.reason]
            document["executors"] = wanted
            append_line(self._layout.decisions, json.dumps(document), MOST_LOG_BYTES)
        if ground.executors is not None and (wanted, ground.executors) != self._told:
            said = f"{ground.executors} executors" + (f", {wanted} wanted" if wanted is not None else "")
            line = {"at_s": round(now_s, 3), "what": said, "executors": ground.executors, "wanted": wanted}
            append_line(self._layout.fleet, json.dumps(line), MOST_LOG_BYTES)
            self._told = (wanted, ground.executors)
        tick = {**self._tick(now_s, ground, told), **self._own_promises(told)}
        tick |= {**self._topics(now_s), **self._advice(ground)}
        append_line(self._layout.ticks, json.dumps(tick), MOST_LOG_BYTES)
        if len(told) == 1:
            self._what_if.renew(told[0].state, told[0].state.situation, now_s)

    def _own_promises(self, lanes: list[Lane]) -> dict[str, object]:
        """For queries with a promise of their own: every bound, and the latency against it."""
        own = [lane for lane in lanes if lane.query.promised_as in self._options.own_slo and lane.promised]
        told = {
            lane.name: {
                what: {"bound_s": bound_s, "took_s": lane.took_s(what)}
                for what, bound_s in lane.state.settings.goal.latency_bounds.items()
            }
            for lane in own
        }
        return {"own_promises": told} if told else {}

    def _topics(self, now_s: float) -> dict[str, object]:
        """For queries that read Kafka: the lag by partition, and which partitions are idle or stuck."""
        known = {name: lane.observer for name, lane in self.lanes.items() if lane.observer.topics.known}
        told = {name: seen.topics.document(now_s, seen.batch_s) for name, seen in known.items()}
        return {"topics": told} if told else {}

    def _advice(self, ground: ApplicationGround) -> dict[str, object]:
        """Advice on what only the user can change: fewer state partitions, if the present number is wasteful."""
        most = self._budget(ground)
        told = {
            name: lane.observer.stores_advice(min(most, lane.query.partitions), lane.query.checkpoint)
            for name, lane in self.lanes.items()
        }
        lines = [f"{name}: {line}" for name, line in told.items() if line]
        return {"advice": lines} if lines else {}

    def _tick(self, now_s: float, ground: ApplicationGround, lanes: list[Lane]) -> dict[str, object]:
        """The log line of one tick: every query as an operator, all of them together as the pipeline."""
        parts = [
            tick_document(lane.state, lane.seen, lane.decision, ground.executors)
            for lane in lanes
            if lane.seen is not None and lane.decision is not None
        ]
        if len(parts) == 1:
            return parts[0]
        # the latency against the common promise is that of the queries which have it; without one, that of all
        own = self._options.own_slo if self._options.slo else {}
        promised = [lane.observer for lane in lanes if lane.query.promised_as not in own]
        ages = [age for observer in promised for age in observer.ages]
        rows = sum(weight for _, weight in ages)
        if not any(observer.sojourn for observer in promised):
            self._sojourn = None
        elif rows:  # else the last one stays, as for a single query: batches may take longer than a look
            mean_s = sum(age * weight for age, weight in ages) / rows
            self._sojourn = {"mean_s": mean_s, **{f"p{q}_s": quantile_s(ages, q / 100) for q in (50, 95, 99)}}
        return {
            "at_s": round(now_s, 3),
            **{what: _sum(parts, what) for what in ("arrivals_per_s", "throughput_per_s", "backlog_rows")},
            "sojourn": self._sojourn,
            "predicted_mean_s": None,
            "forecast": None,
            **{what: _union(parts, what) for what in ("running", "pace_s", "operators")},
            "refusals": [refusal for part in parts for refusal in _list(part["refusals"])],
            "executors": ground.executors,
            "nodes": [asdict(node) for node in ground.nodes],
        }


def _plan_in_force(layout: Layout) -> tuple[int, dict[str, Planned]]:
    """The version and the processors of the plan that a previous controller left."""
    try:
        text = read_if_there(layout.plan)
        told = json.loads(text) if text else {}
        since_s = layout.plan.stat().st_mtime if text else 0.0
        planned = {n: Planned(int(p["processors"]), since_s) for n, p in told.get("operators", {}).items()}
        return int(told.get("version", 0)), planned
    except (*DAMAGE, OSError):
        return 0, {}


def _decision(lane: Lane, number: int) -> dict[str, object]:
    assert lane.decision is not None
    return decision_document(lane.decision, number, lane.state.situation)


def _merged_decision(parts: list[dict[str, object]], moving: list[Lane]) -> dict[str, object]:
    """Merge the decisions of one tick into one, with the reasons of the queries that moved."""
    reasons = [reason for lane in moving for reason in _told_reasons(lane.decision, lane.name, len(parts) > 1)]
    return {
        **parts[0],
        "running": _union(parts, "running"),
        "rescales": [rescale for part in parts for rescale in _list(part["rescales"])],
        "changes": [change for part in parts for change in _list(part["changes"])],
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
    """Hold the lock of the folder, so that only one controller decides for an application."""
    with owner_only_file(layout.folder / "controller.lock").open("a+", encoding="utf-8") as lock:
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
    """Tick until the application's driver has ended."""
    application = Application.read(layout)
    temporary, every_s = application.options.folder is None, application.options.interval_s
    compiling = [sys.executable, "-m", "sluicegate.spark.attach.controller", str(layout.folder), "--compile"]
    with (
        alone(layout),
        registered(layout.folder, application.name, temporary=temporary),
        CompiledMeanwhile(lambda: rehearse_for(layout, application), compiling) as models,
    ):
        tick_until(
            lambda: parent is not None and os.getppid() != parent,
            every_s,
            lambda: AttachController(layout, application),
            models.renew,
        )


def rehearse_for(layout: Layout, application: Application) -> None:
    """Run the models once on a typical query of the application; nothing is written."""
    options = application.options
    slots = options.executors[1] if options.executors else 2
    usual = Query("rehearsal", True, True, slots, (), ())
    lane = Lane.of(layout, application, usual, slots, application.moves_executors)
    rehearse(lane.state.settings, options.interval_s)


def main() -> None:
    """Entry point of the controller's process."""
    parser = argparse.ArgumentParser(prog="sluicegate.spark.attach.controller")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parent", type=int, help="ends when that process, which started it, is gone")
    parser.add_argument("--compile", action="store_true", help="only compile the models into the cache")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    layout = Layout(given.folder)
    try:
        if given.compile:
            os.nice(_YIELDS)
            rehearse_for(layout, Application.read(layout))
        else:
            run(layout, given.parent)
    except SluicegateError as problem:
        sys.stderr.write(f"sluicegate: {problem}\n")
        sys.exit(problem.exit_code)


if __name__ == "__main__":
    main()
