"""Where the planned processors go: how many executors they need, and on which host each should run.

The placer decides both, as it does in the lab: a processor is one slot, an executor a machine of so many slots. First
the processors are placed on executors that are still to come, which says how many there must be; then on the hosts of
those that are there, which says where the tasks of each operator should run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sluicegate.domain import Bundle, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.mc_stream import McStreamPlacer
from sluicegate.place.placer import DoesNotFit, Placer
from sluicegate.runlog.plan_file import Plan
from sluicegate.spark.act.scheduler import Executor

Hosts = Mapping[str, tuple[str, ...]]
"""By operator, the host of each of its processors."""


@dataclass(frozen=True, slots=True)
class Seating:
    """Mc-Stream's placer unless told otherwise: processors next to their upstream's, those of one operator apart."""

    topology: Topology
    placer: Placer = field(default_factory=McStreamPlacer)

    def executors_for(self, plan: Plan, slots_per_executor: int) -> int:
        """How many executors of that size the placer needs for the plan.

        >>> from sluicegate.domain import Edge, Operator
        >>> from sluicegate.runlog.plan_file import OperatorPlan
        >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
        >>> Seating(two).executors_for(Plan(0, {"a": OperatorPlan(3), "b": OperatorPlan(2)}), 2)
        3
        """
        needed = self._bundles(plan)
        try:
            found = place_with_extra_slots(self.placer, self.topology, needed, len(needed), (slots_per_executor,))
        except Infeasible:
            return -(-len(needed) // slots_per_executor)
        return len(found.vms)

    def hosts(self, plan: Plan, executors: Sequence[Executor]) -> Hosts | DoesNotFit:
        """A host for every processor, on the executors there are; or why they have no room for all."""
        slots = Counter[str]()
        for executor in executors:
            slots[executor.host] += executor.cores
        fleet = [Vm(host, count) for host, count in sorted(slots.items())]
        found = self.placer.place(self.topology, self._bundles(plan), fleet)
        if isinstance(found, DoesNotFit):
            return found
        return {name: _hosts(found.threads(name)) for name in self.topology.names}

    def _bundles(self, plan: Plan) -> list[Bundle]:
        """A task of Spark's takes a whole slot, however little of it the operator's code uses."""
        return [Bundle(n, 1, cpu=1.0, memory=0.0) for n in self.topology.names for _ in range(plan.of(n).processors)]


def _hosts(threads: Mapping[str, int]) -> tuple[str, ...]:
    """
    >>> _hosts({"127.0.0.2/1": 1, "127.0.0.2/2": 1, "127.0.0.3/1": 1})
    ('127.0.0.2', '127.0.0.2', '127.0.0.3')
    """
    return tuple(slot.rpartition("/")[0] for slot, count in threads.items() for _ in range(count))
