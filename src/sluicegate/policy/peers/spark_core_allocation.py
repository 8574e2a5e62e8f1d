"""Spark core's dynamic allocation: enough executors for all tasks, requested in doubling steps.

    needed = ceil((pending tasks + running tasks) / slots per executor)
    fewer than needed: request 1, 2, 4, ... more at each step, never more than needed; else: back to 1
    an executor that was idle for 60 s is removed: what was not needed at any time of the last 60 s is released

A step is one call: Spark's rounds have its scheduler's period (a second), ours the loop's. If Spark does not report
tasks they are derived: running tasks are the busy processors, k x utilisation; a pending task is the work that one
processor does in ``task_s``, so a queue of q rows is floor(q/(mu task_s)) of them. The executors' slots are spread over
the operators so that the pipeline carries the highest rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.topology import require_number
from sluicegate.policy.peers.readings import MOST, busy_processors, running_of, waiting_work_s, whole
from sluicegate.policy.within_limits import proposal_within, spread_within


@dataclass(frozen=True, slots=True)
class CoreMemory:
    """Executors requested, how many more the next step may request, and recent needs as (time, executors)."""

    asked: int
    step: int
    needed: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class SparkCoreAllocation:
    """The policy. ``idle_s``: how long an executor may idle; longer keeps more. ``task_s``: length of a derived task.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> seen = Observation(0.0, 450.0, {"a": 1}, pending_tasks=9, running_tasks=1)
    >>> policy = SparkCoreAllocation()
    >>> memory, totals = policy.start(), []
    >>> for now_s in range(4):
    ...     memory, proposal = policy.propose(memory, Situation(float(now_s), one, seen, 450.0, {"a": 450.0}))
    ...     totals.append(proposal.total)
    >>> totals
    [2, 4, 8, 10]
    """

    idle_s: float = 60.0
    task_s: float = 1.0

    def __post_init__(self) -> None:
        require_number(self.idle_s, "spark-core idle_s")
        require_number(self.task_s, "spark-core task_s", above=True)

    @property
    def name(self) -> str:
        return "spark-core"

    def start(self) -> CoreMemory | None:
        return None

    def propose(self, memory: CoreMemory | None, situation: Situation) -> tuple[CoreMemory, Proposal]:
        slots = situation.limits.slots_per_executor
        running = running_of(situation)
        have = math.ceil(sum(running.values()) / slots)
        memory = memory or CoreMemory(have, 1, ((situation.now_s, have),))
        tasks = self._tasks(situation)
        needed = max(1, math.ceil(tasks / slots))
        recent = tuple(old for old in memory.needed if old[0] > situation.now_s - self.idle_s)
        memory = _asked(CoreMemory(memory.asked, memory.step, (*recent, (situation.now_s, needed))), needed)
        reason = f"{tasks} tasks on {slots} slots each need {needed} executors: {memory.asked} asked for"
        if memory.asked == have:
            return memory, proposal_within(running, (reason,), situation)
        return memory, spread_within(memory.asked * slots, (reason,), situation)

    def _tasks(self, situation: Situation) -> int:
        seen = situation.observation
        running = seen.running_tasks if seen.running_tasks is not None else whole(busy_processors(situation))
        if seen.pending_tasks is not None:
            return max(0, running) + max(0, seen.pending_tasks)
        return max(0, running) + math.floor(min(MOST, waiting_work_s(situation) / self.task_s))


def _asked(memory: CoreMemory, needed: int) -> CoreMemory:
    """Increase in doubling steps; decrease to the largest need within the idle time."""
    if needed > memory.asked:
        return CoreMemory(min(needed, memory.asked + memory.step), memory.step * 2, memory.needed)
    largest = max(count for _, count in memory.needed)
    return CoreMemory(min(memory.asked, largest), 1, memory.needed)
