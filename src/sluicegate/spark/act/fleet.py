"""Applies the plan to executors and nodes: requests what it asks for, and reports what is there.

Nothing is decided here. The plan (``control.capacity``) says how many executors and nodes there should be, which nodes
to stop and where tasks should run. Nodes are started before more executors are requested; executors are drained before
their nodes are stopped. What was requested and what is there go into one small file that the controller reads; every
change is logged with the number of its decision.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JError

from sluicegate.domain import ExecutorSeen, FleetSeen, NodeSeen, Shape
from sluicegate.errors import SluicegateError
from sluicegate.runlog.batch_log import DAMAGE, append_line
from sluicegate.runlog.files import read_if_there, write_whole
from sluicegate.runlog.plan_file import PlanFile, PlanInForce
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.act.nodes import NodeProvider
from sluicegate.spark.act.scheduler import Executor

_EVERY_S = 1.0
_AGAIN_AFTER_S = 30.0
_NODES_EVERY_S = 10.0
"""Listing the nodes may be a call to a cloud API, so it is done rarely."""
_DISTURBED_S = 5.0
"""Batches that begin within this time after an executor started or warmed up are still slower than usual."""
_STALE_S = 30.0
_TELLS_EVERY_S = 10.0
"""How often a fleet reports while one step takes long, as the start of a node may; less than ``_STALE_S``."""
_STARTUPS = 5
"""The start-up time is the median of this many: with one, a single slow start would decide the next move."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What a fleet reads and acts on: the plan, executors, and nodes if there are any.

    ``warm`` returns the warm executors and starts warming the others; ``disturbed`` is called with the time until which
    batches are slow for external reasons.
    """

    plan: PlanFile
    executors: Executors
    warm: Callable[[Sequence[Executor]], list[Executor]]
    disturbed: Callable[[float], None]
    nodes: NodeProvider | None = None


class Fleet:
    """Applies the plan to executors and nodes from a thread, until the ``with`` block ends."""

    def __init__(self, ends: Ends, shape: Shape, log: Path, seen: Path) -> None:
        self._ends, self._shape, self._log, self._seen = ends, shape, log, seen
        self._requested: int | None = None
        self._last: tuple[Sequence[Executor], Sequence[Executor]] = ((), ())
        self._requested_s: float | None = None
        self._problem = ""
        self._counted: tuple[int, int] | None = None
        self._asked_s: float | None = None
        self._startups: list[float] = []
        self._again_s = self._nodes_again_s = self._not_before_s = 0.0
        self._nodes: tuple[NodeSeen, ...] | None = None
        self._ended, self._complete = threading.Event(), threading.Event()
        self._reported_s, self._reporting = -math.inf, threading.Lock()
        self._threads = tuple(
            threading.Thread(target=does, name="sluicegate-fleet", daemon=True)
            for does in (self._run, self._keep_telling)
        )

    def __enter__(self) -> Fleet:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def wait_until_complete(self, timeout_s: float) -> bool:
        """Wait until a later step finds as many warm executors as requested; returns whether that was in time."""
        self._complete.clear()
        return self._complete.wait(timeout_s)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            if time.monotonic() < self._not_before_s:
                continue
            try:
                self.step(time.monotonic())
            except (SluicegateError, OSError, Py4JError) as problem:
                self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
                self._problem = (str(problem) or type(problem).__name__).splitlines()[0][:300]
                with contextlib.suppress(OSError):  # a full disk may be the problem
                    self._report(*self._last)  # so that the controller sees the reason
                    self._say(None, f"{self._problem}; tried again in {_AGAIN_AFTER_S:g} s")

    def _keep_telling(self) -> None:
        """Report the executors while a step takes long: without a report none would be known to the controller."""
        while not self._ended.wait(_EVERY_S) and self._threads[0].is_alive():
            if self._counted is not None and time.monotonic() - self._reported_s >= _TELLS_EVERY_S:
                with contextlib.suppress(SluicegateError, OSError, Py4JError):  # a step says what is wrong
                    here = [executor for executor in self._ends.executors.all() if not executor.draining]
                    warm = {executor.id for executor in self._last[1]}
                    self._report(here, [executor for executor in here if executor.id in warm])

    def step(self, now_s: float) -> None:
        """Read the plan once, request what is missing, and report."""
        ends, plan = self._ends, self._ends.plan.read()
        have = ends.executors.count()
        want = self._wanted(plan)
        self._look_at_nodes(now_s)
        if want > have and (want != self._requested or now_s >= self._again_s):
            if self._requested is not None and want != self._requested:
                self._asked_s = now_s  # start-up time includes the node's; the initial executors have nodes already
            self._more_nodes(plan, now_s)
            self._resize(plan, want, have, now_s)
        elif want < have or want != self._requested:  # also if as many as there are: what is still to come is withdrawn
            self._asked_s = None
            self._resize(plan, want, have, now_s)
            ends.executors.wait_for(want, timeout_s=60.0)
            self._nodes_again_s = now_s
        if want <= have:
            self._fewer_nodes(plan, now_s)
        here = [executor for executor in ends.executors.all() if not executor.draining]
        warm = ends.warm(here)
        self._last = (here, warm)
        if self._asked_s is not None and len(warm) == len(here) >= want:
            self._started(plan, time.monotonic() - self._asked_s)
        self._report(here, warm)
        if (len(here), len(warm)) != self._counted:
            self._counted = (len(here), len(warm))
            self._say(plan, f"{len(here)} executors are there, {len(warm)} of them warm")
        if want > len(here) or len(warm) < len(here):
            ends.disturbed(time.time() + _DISTURBED_S)
        else:
            self._problem = ""
            self._complete.set()

    def _wanted(self, plan: PlanInForce) -> int:
        """The executors of the plan or, if it names none, those requested last: first what the session started with."""
        if plan.executors is not None:
            return self._shape.within(plan.executors)
        return self._shape.least if self._requested is None else self._requested

    def _started(self, plan: PlanInForce, took_s: float) -> None:
        """Record the start-up time of a request whose executors are all warm."""
        self._asked_s = None
        self._startups = [*self._startups, took_s][-_STARTUPS:]
        self._say(plan, f"warm {took_s:.1f} s after they were asked for", startup_s=round(took_s, 2))

    def _resize(self, plan: PlanInForce, want: int, have: int, now_s: float) -> None:
        if want != self._requested:
            self._requested_s = time.time()
        self._requested, self._again_s = want, now_s + _AGAIN_AFTER_S
        why = "the number a run begins with" if plan.decision is None else f"decision {plan.decision}"
        leaving = {node.host for node in self._nodes or () if node.name in plan.leaving}
        done = self._ends.executors.resize(want, why, leaving)
        if done.refusal is not None:
            self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
            self._problem = done.refusal.why
            self._say(plan, f"executors stay at {have}: {done.refusal.why}")
        elif want != have:
            self._problem = "" if want < have else self._ends.executors.why_fewer(want)
            self._say(plan, f"executors {have} -> {want}", executors=want)

    def _look_at_nodes(self, now_s: float) -> None:
        nodes = self._ends.nodes
        if nodes is not None and (self._nodes is None or now_s >= self._nodes_again_s):
            self._nodes_again_s = now_s + _NODES_EVERY_S
            self._nodes = tuple(NodeSeen(vm.name, vm.slots, nodes.host(vm.name) or "") for vm in nodes.running())

    def _more_nodes(self, plan: PlanInForce, now_s: float) -> None:
        nodes, here = self._ends.nodes, len(self._nodes or ())
        if nodes is None or plan.nodes is None or plan.nodes <= here:
            return
        names = nodes.start(plan.nodes - here)
        self._nodes_again_s = now_s
        self._say(plan, f"nodes {here} -> {here + len(names)}: {', '.join(names)} started", nodes=here + len(names))

    def _fewer_nodes(self, plan: PlanInForce, now_s: float) -> None:
        """Drain and stop the nodes that the plan releases; start those it wants beyond what its executors need."""
        nodes, here = self._ends.nodes, self._nodes or ()
        used = {executor.host for executor in self._ends.executors.all()}
        # an executor may have started there since the decision: the node then stays, and the next decision sees that
        leaving = [node.name for node in here if node.name in plan.leaving and node.host not in used]
        if nodes is not None and leaving and len(leaving) < len(here):
            nodes.stop(leaving)
            self._nodes_again_s = now_s
            count = len(here) - len(leaving)
            self._say(plan, f"nodes {len(here)} -> {count}: {', '.join(leaving)} stopped", nodes=count)
        elif now_s >= self._again_s:
            self._again_s = now_s + _AGAIN_AFTER_S
            self._more_nodes(plan, now_s)

    def _report(self, here: Sequence[Executor], warm: Sequence[Executor]) -> None:
        ids = {executor.id for executor in warm}
        executors = tuple(
            ExecutorSeen(executor.host, executor.cores, executor.id in ids, executor.id) for executor in here
        )
        startup_s = round(median(self._startups), 2) if self._startups else None
        seen = FleetSeen(
            self._shape,
            executors,
            self._nodes,
            self._requested,
            self._requested_s,
            self._problem,
            startup_s,
            len(self._startups),
        )
        with self._reporting:
            write_whole(self._seen, json.dumps({"at_s": round(time.time(), 3), **asdict(seen)}))
            self._reported_s = time.monotonic()

    def _say(self, plan: PlanInForce | None, text: str, **counts: float) -> None:
        line = {"at_s": round(time.time(), 3), "what": text, "decision": plan.decision if plan else None, **counts}
        append_line(self._log, json.dumps(line))


def read_fleet(path: Path, now_s: float) -> FleetSeen | None:
    """Read the last report, unless it is stale."""
    try:
        told = json.loads(read_if_there(path) or "null")
        return None if told is None or now_s - float(told["at_s"]) > _STALE_S else _reported(told)
    except DAMAGE:  # the fleet will rewrite it
        return None


def _reported(told: Mapping[str, Any]) -> FleetSeen:
    nodes = told["nodes"]
    return FleetSeen(
        Shape(**told["shape"]),
        tuple(ExecutorSeen(**one) for one in told["executors"]),
        None if nodes is None else tuple(NodeSeen(**one) for one in nodes),
        told["requested"],
        told["requested_at_s"],
        str(told["problem"]),
        told.get("startup_s"),
        int(told.get("startups", 0)),
    )
