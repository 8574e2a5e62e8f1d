"""The order in which thread mappers place bundles, task by task in sweeps, and the slots of a fleet as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sluicegate.domain import Bundle, Placement, Topology, Vm, is_sink, is_source
from sluicegate.errors import BadInput


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots of a fleet, numbered from 0 in fleet order: their names and the number of their VM."""

    fleet: tuple[Vm, ...]
    names: tuple[str, ...]
    vm: tuple[int, ...]

    @classmethod
    def of(cls, fleet: Sequence[Vm]) -> Slots:
        if len({vm.name for vm in fleet}) < len(fleet):
            raise BadInput("two VMs of the fleet have one name: slots are named after them, rename one")
        pairs = [(f"{vm.name}/{number}", v) for v, vm in enumerate(fleet) for number in range(1, vm.slots + 1)]
        return cls(tuple(fleet), tuple(name for name, _ in pairs), tuple(v for _, v in pairs))

    def placement(self, threads: Iterable[tuple[int, str, int]], reason: str) -> Placement:
        """A placement from (slot, operator, threads); threads of one operator on a slot add up, idle slots are kept."""
        held: list[dict[str, int]] = [{} for _ in self.names]
        for slot, operator, count in threads:
            held[slot][operator] = held[slot].get(operator, 0) + count
        groups = {name: tuple(on.items()) for name, on in zip(self.names, held, strict=True)}
        return Placement(self.fleet, groups, reasons=(reason,))


def by_task(topology: Topology, bundles: Sequence[Bundle], order: Sequence[str]) -> dict[str, list[Bundle]]:
    """The bundles of each task: sources first, operators in ``order``, sinks last.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"),))
    >>> list(by_task(one, [Bundle("sink", 1, 0.1, 0), Bundle("a", 2, 0.1, 0), Bundle("source", 1, 0.1, 0)], one.order))
    ['source', 'a', 'sink']
    """
    found: dict[str, list[Bundle]] = {}
    for bundle in bundles:
        found.setdefault(bundle.operator, []).append(bundle)
    unknown = [name for name in found if name not in topology.index and not is_source(name) and not is_sink(name)]
    if unknown:
        raise BadInput(f"bundles of {unknown[0]!r}, which is no operator of {topology.name!r}: plan and place the same")
    names = (*filter(is_source, found), *(name for name in order if name in found), *filter(is_sink, found))
    return {name: found[name] for name in names}


def sweeps(tasks: Iterable[Sequence[Bundle]]) -> Iterator[Bundle]:
    """One bundle of each task in turn, sweep after sweep, until none is left."""
    pending = [iter(queue) for queue in tasks]
    while pending:
        still = []
        for queue in pending:
            bundle = next(queue, None)
            if bundle is not None:
                yield bundle
                still.append(queue)
        pending = still
