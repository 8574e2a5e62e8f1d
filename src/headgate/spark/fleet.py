"""Executors and nodes that follow the plan: what the operators' processors need, and no more.

The plan says how many processors each operator has; a processor is a slot, so their sum says how many executors there
must be, and those how many nodes. More is asked for at once, nodes before executors. Less is done only when less has
been enough for a while, executors first: they are drained, and nodes that nobody needs are drained and stopped after.
Which executor runs which task is Spark's own choice.
"""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from headgate.errors import BadInput, HeadgateError
from headgate.spark.batch_log import append_line
from headgate.spark.executors import Executors
from headgate.spark.nodes import NodeProvider
from headgate.spark.plan_file import Plan, PlanFile

_EVERY_S = 1.0
_AGAIN_AFTER_S = 30.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How large an executor is, and how many there may be."""

    slots_per_executor: int = 1
    least: int = 1
    most: int = 4
    settle_s: float = 20.0

    def __post_init__(self) -> None:
        if self.slots_per_executor < 1 or not 1 <= self.least <= self.most:
            raise BadInput(
                f"{self.least} to {self.most} executors of {self.slots_per_executor} slots: 1 <= least <= most"
            )

    @property
    def slots(self) -> int:
        return self.most * self.slots_per_executor

    def executors_for(self, plan: Plan) -> int:
        """Enough for every processor of the plan to have a slot.

        >>> from headgate.spark.plan_file import OperatorPlan
        >>> Shape(2, 1, 8).executors_for(Plan(0, {"a": OperatorPlan(3), "b": OperatorPlan(2)}))
        3
        """
        processors = sum(operator.processors for operator in plan.operators.values())
        return min(max(math.ceil(processors / self.slots_per_executor), self.least), self.most)


@dataclass(slots=True)
class Patience:
    """When fewer executors have been enough for long enough."""

    settle_s: float
    below: list[tuple[float, int]] = field(default_factory=list)

    def settled(self, now_s: float, want: int, have: int) -> int:
        """The number to go to: ``want`` if it is more, else the most that was wanted lately.

        >>> patience = Patience(20.0)
        >>> [patience.settled(at, want, 4) for at, want in ((0.0, 4), (10.0, 2), (19.0, 1), (29.0, 1), (40.0, 1))]
        [4, 4, 4, 2, 1]
        """
        self.below = [(at, n) for at, n in self.below if now_s - at <= self.settle_s]
        self.below.append((now_s, want))
        return max(want, min(have, max(n for _, n in self.below)))


class Fleet:
    """Brings executors and nodes to what the plan needs, from a thread; leaving the ``with`` block ends that."""

    def __init__(
        self, executors: Executors, plan: PlanFile, shape: Shape, log: Path, nodes: NodeProvider | None = None
    ) -> None:
        self._executors, self._plan, self._shape, self._log, self._nodes = executors, plan, shape, log, nodes
        self._patience = Patience(shape.settle_s)
        self._not_before_s = 0.0
        self._ended = threading.Event()
        self.told: list[str] = []
        self._thread = threading.Thread(target=self._run, name="headgate-fleet", daemon=True)

    def __enter__(self) -> Fleet:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=60)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            if time.monotonic() < self._not_before_s:
                continue
            try:
                self.step(time.monotonic())
            except HeadgateError as problem:
                self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
                self._say(f"{problem}; tried again in {_AGAIN_AFTER_S:g} s")

    def step(self, now_s: float) -> None:
        """One look at the plan, and what follows from it."""
        have = self._executors.count()
        want = self._patience.settled(now_s, self._shape.executors_for(self._plan.read()), have)
        if want > have:
            self._more_nodes(want)
            self._resize(want, have)
        elif want < have:
            self._resize(want, have)
            self._executors.wait_for(want, timeout_s=60.0)
        if want <= have:
            self._fewer_nodes(want)

    def _resize(self, want: int, have: int) -> None:
        processors = sum(operator.processors for operator in self._plan.read().operators.values())
        why = f"{processors} processors need {want} executors of {self._shape.slots_per_executor} slots"
        done = self._executors.resize(want, why)
        if done.refusal is not None:
            self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
            self._say(f"executors stay at {have}: {done.refusal.why}")
        else:
            self._say(f"executors {have} -> {want}: {why}")

    def _more_nodes(self, want: int) -> None:
        if self._nodes is None:
            return
        running = self._nodes.running()
        missing = want * self._shape.slots_per_executor - sum(vm.slots for vm in running)
        if missing > 0:
            each = max((vm.slots for vm in running), default=self._shape.slots_per_executor)
            count = math.ceil(missing / each)
            names = self._nodes.start(count)
            self._say(f"nodes {len(running)} -> {len(running) + len(names)}: {missing} slots were missing")

    def _fewer_nodes(self, want: int) -> None:
        """Stop nodes that the executors left do not need; the last one stays."""
        if self._nodes is None:
            return
        running = list(self._nodes.running())
        spare = sum(vm.slots for vm in running) - want * self._shape.slots_per_executor
        leaving: list[str] = []
        for vm in reversed(running):
            if vm.slots <= spare and len(leaving) + 1 < len(running):
                leaving.append(vm.name)
                spare -= vm.slots
        if leaving:
            self._nodes.stop(leaving)
            self._say(f"nodes {len(running)} -> {len(running) - len(leaving)}: {want} executors do not need them")

    def _say(self, text: str) -> None:
        self.told.append(text)
        append_line(self._log, json.dumps({"at_s": round(time.time(), 3), "what": text}))
