"""Executors and nodes that follow the plan: what the operators' processors need, and no more.

The plan says how many processors each operator has; the placer says how many executors that takes, those how many
nodes. More is asked for at once, nodes before executors. Less is done only when less has been enough for a while,
executors first: they are drained, and nodes that nobody needs are drained and stopped after. Once every processor has
a slot, the placer also says on which host it should run.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from sluicegate.domain import Vm
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.place.placer import DoesNotFit
from sluicegate.runlog.batch_log import append_line
from sluicegate.runlog.plan_file import Plan, PlanFile
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.act.nodes import NodeProvider
from sluicegate.spark.act.scheduler import Executor
from sluicegate.spark.act.seating import Hosts, Seating

_EVERY_S = 1.0
_AGAIN_AFTER_S = 30.0
_DISTURBED_S = 5.0
"""Batches that begin so long after an executor came or was made warm are still slower than they will be."""


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

    def within(self, executors: int) -> int:
        """So many, or the limit that is nearest.

        >>> [Shape(2, 1, 8).within(n) for n in (0, 3, 20)]
        [1, 3, 8]
        """
        return min(max(executors, self.least), self.most)

    def on(self, nodes: Iterable[Vm]) -> int:
        """How many executors fit on nodes: one does not stretch over two.

        >>> Shape(2).on([Vm("n1", 4), Vm("n2", 3)])
        3
        """
        return sum(vm.slots // self.slots_per_executor for vm in nodes)


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


@dataclass(frozen=True, slots=True)
class Ends:
    """What a fleet reads and what it moves: the plan, executors, nodes where there are any, and places for tasks.

    ``warm`` picks the executors that are, and sees to the others; ``disturbed`` is told until when batches are slow for
    no reason of their own.
    """

    plan: PlanFile
    seating: Seating
    executors: Executors
    place: Callable[[Hosts], None]
    warm: Callable[[Sequence[Executor]], list[Executor]]
    disturbed: Callable[[float], None]
    nodes: NodeProvider | None = None


class Fleet:
    """Brings executors and nodes to what the plan needs, from a thread; leaving the ``with`` block ends that."""

    def __init__(self, ends: Ends, shape: Shape, log: Path) -> None:
        self._ends, self._shape, self._log = ends, shape, log
        self._patience = Patience(shape.settle_s)
        self._asked: int | None = None
        self._again_s = self._nodes_again_s = self._not_before_s = 0.0
        self._seats: Hosts | None = None
        self._ended, self._complete = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="sluicegate-fleet", daemon=True)

    def __enter__(self) -> Fleet:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=60)

    def wait_until_complete(self, timeout_s: float) -> bool:
        """Until there are as many executors as the plan needs, at the next look at it; whether that came in time."""
        self._complete.clear()
        return self._complete.wait(timeout_s)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            if time.monotonic() < self._not_before_s:
                continue
            try:
                self.step(time.monotonic())
            except SluicegateError as problem:
                self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
                self._say(f"{problem}; tried again in {_AGAIN_AFTER_S:g} s")

    def step(self, now_s: float) -> None:
        """One look at the plan, and what follows from it."""
        ends, plan = self._ends, self._ends.plan.read()
        have = ends.executors.count()
        needed = self._shape.within(ends.seating.executors_for(plan, self._shape.slots_per_executor))
        want = self._patience.settled(now_s, needed, have)
        if want > have and (want != self._asked or now_s >= self._again_s):
            self._more_nodes(want)
            self._resize(plan, want, have, now_s)
        elif want < have or self._asked is None:
            self._resize(plan, want, have, now_s)
            ends.executors.wait_for(want, timeout_s=60.0)
            self._nodes_again_s = now_s
        if want <= have and now_s >= self._nodes_again_s:
            # asking for the nodes may be a call to a cloud: at once after a change, else now and then
            self._nodes_again_s = now_s + _AGAIN_AFTER_S
            self._fewer_nodes(want)
        here = [executor for executor in ends.executors.all() if not executor.draining]
        warm = ends.warm(here)
        self._seat(plan, warm, len(here) - len(warm))
        if want > have or len(warm) < len(here):
            ends.disturbed(time.time() + _DISTURBED_S)
        elif len(warm) >= needed:
            self._complete.set()

    def _resize(self, plan: Plan, want: int, have: int, now_s: float) -> None:
        self._asked, self._again_s = want, now_s + _AGAIN_AFTER_S
        processors = sum(operator.processors for operator in plan.operators.values())
        why = f"{processors} processors need {want} executors of {self._shape.slots_per_executor} slots"
        done = self._ends.executors.resize(want, why)
        if done.refusal is not None:
            self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
            self._say(f"executors stay at {have}: {done.refusal.why}")
        elif want != have:
            self._say(f"executors {have} -> {want}: {why}", executors=want)

    def _more_nodes(self, want: int) -> None:
        nodes = self._ends.nodes
        if nodes is None:
            return
        running = nodes.running()
        missing = want - self._shape.on(running)
        if missing > 0:
            each = max(self._shape.on([max(running, key=lambda vm: vm.slots)]) if running else 1, 1)
            names = nodes.start(math.ceil(missing / each))
            count = len(running) + len(names)
            self._say(f"nodes {len(running)} -> {count}: no room for {missing} executors", nodes=count)

    def _fewer_nodes(self, want: int) -> None:
        """Stop nodes that the executors left do not need, the emptiest first; one that has them all stays."""
        nodes = self._ends.nodes
        if nodes is None:
            return
        running, used = nodes.running(), Counter(executor.host for executor in self._ends.executors.all())
        spare, left = self._shape.on(running) - want, used.total()
        leaving: list[str] = []
        for here, vm in sorted(((used[nodes.host(vm.name) or ""], vm) for vm in reversed(running)), key=lambda n: n[0]):
            if self._shape.on([vm]) <= spare and len(leaving) + 1 < len(running) and left > here:
                leaving.append(vm.name)
                spare, left = spare - self._shape.on([vm]), left - here
        if leaving:
            nodes.stop(leaving)
            count = len(running) - len(leaving)
            self._say(f"nodes {len(running)} -> {count}: {want} executors do not need them", nodes=count)

    def _seat(self, plan: Plan, warm: Sequence[Executor], cold: int) -> None:
        """Say where tasks should run, when that changed.

        While not all have a slot of their own, Spark chooses; but rather among warm executors than a cold one.
        """
        found = self._ends.seating.hosts(plan, warm)
        seats = found if not isinstance(found, DoesNotFit) else _anywhere(plan, warm) if cold else {}
        if seats == self._seats:
            return
        self._seats = seats
        self._ends.place(seats)
        if isinstance(found, DoesNotFit):
            waits = f", {cold} executors are being made warm" if cold else ""
            self._say(f"places are Spark's choice: {found.why}{waits}")
        else:
            told = (f"{name} on {', '.join(map(_times, Counter(hosts).items()))}" for name, hosts in seats.items())
            self._say(f"places by {self._ends.seating.placer.name}: {'; '.join(told)}")

    def _say(self, text: str, **counts: int) -> None:
        append_line(self._log, json.dumps({"at_s": round(time.time(), 3), "what": text, **counts}))


def _anywhere(plan: Plan, executors: Sequence[Executor]) -> Hosts:
    """All hosts for every operator."""
    return dict.fromkeys(plan.operators, tuple(sorted({executor.host for executor in executors})))


def _times(seat: tuple[str, int]) -> str:
    host, count = seat
    return host if count == 1 else f"{count} x {host}"
