"""R-Storm mapping (model-driven scheduling, Section 7.3 and Algorithm 5).

Sweeps over the tasks in breadth-first order, one thread of each in turn, to the nearest VM that has room:

    d^2 = w_m (M_avail - m)^2 + w_c (C_avail - c)^2 + w_n nwdist
    nwdist = 0 on the VM mapped last, 1/2 in its rack, 1 elsewhere

C_avail and M_avail are sums over the VM's slots. CPU is pooled per VM; memory is bound per slot, and the thread goes to
the VM's first slot with enough. It fails if no VM has room. Our reading: one thread's c and m are its task's total
divided by the task's threads (the single-thread profile would put only four blob threads on a slot).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sluicegate.domain import Bundle, Placement, Topology, Vm, is_sink, is_source
from sluicegate.domain.topology import require_number
from sluicegate.place.best_fit import SLACK
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.sweep import Slots, by_task, sweeps

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_ROUNDINGS = range(1, 33)


@dataclass(frozen=True, slots=True)
class Rsm:
    """Weights of the distance's terms; availabilities count in slots."""

    memory_weight: float = 1.0
    cpu_weight: float = 1.0
    network_weight: float = 1.0

    def __post_init__(self) -> None:
        for what in ("memory_weight", "cpu_weight", "network_weight"):
            require_number(getattr(self, what), f"rsm {what}")

    @property
    def name(self) -> str:
        return "rsm"

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        """
        >>> from sluicegate.domain import Edge, Operator
        >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
        >>> found = Rsm().place(two, [Bundle("a", 2, 0.6, 1.2), Bundle("b", 1, 0.2, 0.3)], [Vm("vm-1", 2)])
        >>> found.slots
        {'vm-1/1': (('a', 1), ('b', 1)), 'vm-1/2': (('a', 1),)}
        """
        slots = Slots.of(fleet)
        threads = list(sweeps(_threads(topology, bundles).values()))
        where, cpu, memory = self._map(threads, slots.fleet)
        if len(where) < len(threads):
            return DoesNotFit(_why_not(threads[len(where)], cpu, memory, f"{len(where)} of {len(threads)} threads"))
        placed = ((int(slot), thread.operator, 1) for slot, thread in zip(where, threads, strict=True))
        return slots.placement(placed, f"rsm: {len(threads)} threads to the nearest VM with room of {len(fleet)}")

    def fewest_slots(self, topology: Topology, bundles: Sequence[Bundle]) -> int | None:
        """A lower bound on the slots needed; ``None`` if a thread needs more than a slot's memory.

        Total CPU and memory must fit. Besides, a need above 1/(k+1) of a slot may count as the k-ths it blocks (a dual
        feasible function): five threads of 24% memory never share a slot, so each counts as 1/4.
        """
        need = [(len(queue), queue[0]) for queue in _threads(topology, bundles).values()]
        if any(one.memory > 1 + SLACK for _, one in need):
            return None
        memory = [(count, one.memory * (1 - 2 * SLACK)) for count, one in need]
        blocked = (sum(count * max(math.ceil((k + 1) * m) - 1, 0) for count, m in memory) / k for k in _ROUNDINGS)
        sums = (math.fsum(count * one.cpu for count, one in need), math.fsum(count * m for count, m in memory))
        return max(math.ceil(bound * (1 - 2 * SLACK)) for bound in (*sums, *blocked))

    def _map(self, threads: Sequence[Bundle], fleet: Sequence[Vm]) -> tuple[Counts, Floats, Floats]:
        need = np.array([(thread.cpu, thread.memory) for thread in threads], dtype=np.float64).reshape(-1, 2)
        sizes = np.array([vm.slots for vm in fleet], dtype=np.int64)
        codes = {rack: code for code, rack in enumerate(dict.fromkeys(vm.rack for vm in fleet))}
        racks = np.array([codes[vm.rack] for vm in fleet], dtype=np.int64)
        return _nearest_with_room(need, sizes, racks, (self.memory_weight, self.cpu_weight, self.network_weight))


@njit(cache=True)
def _nearest_with_room(
    need: Floats, sizes: Counts, racks: Counts, weights: tuple[float, float, float]
) -> tuple[Counts, Floats, Floats]:
    """The slot of each thread, up to the first without room; CPU left per VM and memory left per slot."""
    first = np.cumsum(sizes) - sizes
    cpu, pooled, memory = sizes.astype(np.float64), sizes.astype(np.float64), np.ones(sizes.sum())
    roomiest = np.where(sizes > 0, 1.0, -1.0)
    where = np.empty(len(need), dtype=np.int64)
    last = 0
    for thread in range(len(need)):
        c, m = need[thread]
        vm, nearest = -1, np.inf
        for v in range(len(sizes)):
            if cpu[v] >= c - SLACK and roomiest[v] >= m - SLACK:
                network = 0.0 if v == last else (0.5 if racks[v] == racks[last] else 1.0)
                distance = weights[0] * (pooled[v] - m) ** 2 + weights[1] * (cpu[v] - c) ** 2 + weights[2] * network
                if distance < nearest:
                    vm, nearest = v, distance
        if vm < 0:
            return where[:thread], cpu, memory
        slot = first[vm]
        while memory[slot] < m - SLACK:
            slot += 1
        cpu[vm] -= c
        pooled[vm] -= m
        memory[slot] -= m
        roomiest[vm] = memory[first[vm] : first[vm] + sizes[vm]].max()
        where[thread], last = slot, vm
    return where, cpu, memory


def _threads(topology: Topology, bundles: Sequence[Bundle]) -> dict[str, list[Bundle]]:
    """The threads of each task in breadth-first order, each with an equal share of the task's need."""
    tasks = by_task(topology, bundles, list(breadth_first(topology)))
    return {task: [_one_thread(task, queue)] * sum(b.threads for b in queue) for task, queue in tasks.items()}


def _one_thread(task: str, queue: Sequence[Bundle]) -> Bundle:
    threads = max(sum(bundle.threads for bundle in queue), 1)
    cpu, memory = math.fsum(b.cpu for b in queue), math.fsum(b.memory for b in queue)
    return Bundle(task, 1, cpu / threads, memory / threads)


def _why_not(thread: Bundle, cpu: Floats, memory: Floats, placed: str) -> str:
    return (
        f"{thread.operator}: a thread needs {thread.cpu:.1%} CPU of a VM and {thread.memory:.1%} memory of a slot; "
        f"most left is {cpu.max(initial=0.0):.1%} CPU in a VM, {memory.max(initial=0.0):.1%} memory in a slot, and no "
        f"VM has both ({placed} placed)"
    )


def breadth_first(topology: Topology) -> Iterator[str]:
    """Operators by their distance from the sources."""
    follow: dict[str, list[str]] = {}
    for edge in topology.edges:
        if not is_sink(edge.target):
            follow.setdefault("" if is_source(edge.origin) else edge.origin, []).append(edge.target)
    seen: set[str] = set()
    line = deque([""])
    while line:
        for name in follow.get(line.popleft(), ()):
            if name not in seen:
                seen.add(name)
                line.append(name)
                yield name
