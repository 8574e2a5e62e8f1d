"""Es-Stream's placement: every instance is placed by the node rules (Eq 19 to 22, ``es_stream_nodes``).

Instances upstream first, each a bundle. Nodes are opened as the rules require: the used ones fill up until their mean
load reaches phi, then a new one is taken. If the rules require a new node and the fleet has none left, the least loaded
node with room is taken.

The paper runs at most 2 workers of 2 instances on a node: VMs of 4 slots with ``instances_per_slot`` 1 (ours: a slot
is an instance's), or VMs of 2 slots with 2. Shares of slots already exclude what a node needs for itself, so alpha is 1
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sluicegate.domain import Bundle, NodeObservation, Placement, Topology, Vm
from sluicegate.domain.topology import require
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.slot_ledger import SlotLedger
from sluicegate.place.sweep import by_task
from sluicegate.policy.papers.es_stream_nodes import NodeThresholds, Use, fits, node_for_instance


@dataclass(frozen=True, slots=True)
class EsStreamPlacer:
    instances_per_slot: int = 1
    thresholds: NodeThresholds = field(
        default_factory=lambda: NodeThresholds(alpha_cpu=1.0, alpha_memory=1.0, alpha_io=1.0)
    )

    def __post_init__(self) -> None:
        require(self.instances_per_slot >= 1, f"instances_per_slot is {self.instances_per_slot}: give at least 1")

    @property
    def name(self) -> str:
        return "es-stream"

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        """
        >>> from sluicegate.domain import Edge, Operator
        >>> one = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"),))
        >>> found = EsStreamPlacer().place(one, [Bundle("a", 1, 1.0, 0.0)] * 5, [Vm("n1", 4), Vm("n2", 4)])
        >>> found.threads("a")
        {'n1/1': 1, 'n1/2': 1, 'n1/3': 1, 'n2/1': 1, 'n2/2': 1}
        """
        ledger = SlotLedger(fleet, self.instances_per_slot)
        nodes = [NodeObservation(vm.name, 0.0) for vm in fleet]
        for queue in by_task(topology, bundles, topology.order).values():
            for bundle in queue:
                vm = self._vm_for(topology, bundle, ledger, nodes)
                slot = None if vm is None else ledger.slot_for(vm, bundle)
                if vm is None or slot is None:
                    return DoesNotFit(_why_not(bundle, fleet, self.instances_per_slot))
                ledger.put(slot, bundle)
                nodes[vm] = _after(nodes[vm], bundle, _use(topology, bundle, fleet[vm].slots))
        used = sum(1 for node in nodes if node.hosts)
        return ledger.placement(f"es-stream: {len(bundles)} instances on {used} of {len(fleet)} nodes")

    def fewest_slots(self, topology: Topology, bundles: Sequence[Bundle]) -> int | None:
        """A lower bound of the slots, however little the instances use: so many hold all of them."""
        return -(-len(bundles) // self.instances_per_slot)

    def _vm_for(
        self, topology: Topology, bundle: Bundle, ledger: SlotLedger, nodes: Sequence[NodeObservation]
    ) -> int | None:
        """The node that the rules choose for the instance. Eq 22 depends on each node's size, so it is checked here."""
        uses = (_use(topology, bundle, max(vm.slots, 1)) for vm in ledger.slots.fleet)
        fit = [fits(node, use, self.thresholds) for node, use in zip(nodes, uses, strict=True)]
        open_vms = {nodes[v].name: v for v in range(len(nodes)) if fit[v] and ledger.slot_for(v, bundle) is not None}
        if not open_vms:
            return None
        full = {node.name for node in nodes if node.name not in open_vms}
        asked = node_for_instance(nodes, Use(0.0), self.thresholds, full)
        if asked.node is None:
            return min(open_vms.values(), key=lambda v: nodes[v].load)
        return open_vms[asked.node]


def _use(topology: Topology, bundle: Bundle, slots: int) -> Use:
    known = bundle.operator in topology.index
    io = topology.operator(bundle.operator).io * bundle.threads if known else 0.0
    return Use(bundle.cpu / slots, bundle.memory / slots, io / slots)


def _after(node: NodeObservation, bundle: Bundle, use: Use) -> NodeObservation:
    hosts = {**node.hosts, bundle.operator: node.hosts.get(bundle.operator, 0) + 1}
    return replace(node, cpu=node.cpu + use.cpu, memory=node.memory + use.memory, io=node.io + use.io, hosts=hosts)


def _why_not(bundle: Bundle, fleet: Sequence[Vm], per_slot: int) -> str:
    slots = sum(vm.slots for vm in fleet)
    return (
        f"{bundle.operator}: an instance needs {bundle.cpu:.1%} CPU and {bundle.memory:.1%} memory of a slot; none of "
        f"{slots} slots on {len(fleet)} nodes, {per_slot} instances a slot at most, has that left"
    )
