from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Bundle, Edge, Operator, Placement, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.rsm import Rsm, breadth_first

NAMES = ("a", "b", "c")
CHAIN = Topology(
    "chain", tuple(Operator(name, 1.0) for name in NAMES), (Edge("source", "a"), Edge("a", "b"), Edge("b", "c"))
)
share = st.integers(0, 20).map(lambda twentieths: twentieths / 20)
tasks = st.lists(st.tuples(st.integers(1, 8), share, share), min_size=3, max_size=3)
racks = st.sampled_from(["rack-1", "rack-2"])
fleets = st.lists(st.tuples(st.integers(1, 4), racks), min_size=1, max_size=5).map(
    lambda vms: [Vm(f"vm-{n}", size, rack) for n, (size, rack) in enumerate(vms)]
)


def bundled(needs: list[tuple[int, float, float]]) -> list[Bundle]:
    return [Bundle(name, n, c * n, m * n) for name, (n, c, m) in zip(NAMES, needs, strict=True)]


def placed(*needs: Bundle, fleet: list[Vm]) -> Placement:
    found = Rsm().place(CHAIN, needs, fleet)
    assert isinstance(found, Placement), found
    return found


def reference(needs: list[tuple[int, float, float]], fleet: list[Vm]) -> list[tuple[int, int, str]] | None:
    """The algorithm as it is told: VM, slot and task of each thread in turn; ``None`` where one has no room."""
    cpu = [float(vm.slots) for vm in fleet]
    memory = [[1.0] * vm.slots for vm in fleet]
    left, last, out = [n for n, _, _ in needs], 0, list[tuple[int, int, str]]()
    while any(left):
        for i, (_, c, m) in enumerate(needs):
            if not left[i]:
                continue

            def distance(v: int, c: float = c, m: float = m, last: int = last) -> float:
                near = 0.0 if v == last else 0.5 if fleet[v].rack == fleet[last].rack else 1.0
                return (sum(memory[v]) - m) ** 2 + (cpu[v] - c) ** 2 + near

            fits = [v for v in range(len(fleet)) if cpu[v] >= c - 1e-9 and max(memory[v]) >= m - 1e-9]
            if not fits:
                return None
            # distances that differ by rounding only are ties: the first VM of them
            nearest = min(map(distance, fits))
            last = next(v for v in fits if distance(v) <= nearest + 1e-9)
            slot = next(s for s, free in enumerate(memory[last]) if free >= m - 1e-9)
            cpu[last] -= c
            memory[last][slot] -= m
            left[i] -= 1
            out.append((last, slot, NAMES[i]))
    return out


@settings(max_examples=150)
@given(tasks, fleets)
def test_no_slot_is_over_its_memory_and_no_vm_over_its_cpu(
    needs: list[tuple[int, float, float]], fleet: list[Vm]
) -> None:
    found = Rsm().place(CHAIN, bundled(needs), fleet)
    if isinstance(found, DoesNotFit):
        return
    for name, (count, _, _) in zip(NAMES, needs, strict=True):
        assert sum(found.threads(name).values()) == count
    need = dict(zip(NAMES, needs, strict=True))
    for vm in fleet:
        on = [dict(groups) for slot, groups in found.slots.items() if slot.startswith(f"{vm.name}/")]
        assert sum(n * need[name][1] for groups in on for name, n in groups.items()) <= vm.slots + 1e-6
        assert all(sum(n * need[name][2] for name, n in groups.items()) <= 1 + 1e-6 for groups in on)


@settings(max_examples=150)
@given(tasks, fleets)
def test_it_places_as_the_algorithm_written_out_does(needs: list[tuple[int, float, float]], fleet: list[Vm]) -> None:
    # powers of two make sums exact, so that ties are ties on both sides
    exact = [(n, math.floor(c * 16) / 16, math.floor(m * 16) / 16) for n, c, m in needs]
    expected = reference(exact, fleet)
    found = Rsm().place(CHAIN, bundled(exact), fleet)
    if expected is None:
        assert isinstance(found, DoesNotFit)
        return
    assert isinstance(found, Placement)
    counts: dict[tuple[str, str], int] = {}
    for vm, slot, name in expected:
        key = (f"{fleet[vm].name}/{slot + 1}", name)
        counts[key] = counts.get(key, 0) + 1
    assert {(slot, name): n for slot, groups in found.slots.items() for name, n in groups} == counts


@settings(max_examples=150)
@given(tasks)
def test_below_the_fewest_slots_nothing_maps(needs: list[tuple[int, float, float]]) -> None:
    fewest = Rsm().fewest_slots(CHAIN, bundled(needs))
    assert fewest is not None
    for slots in range(1, fewest):
        assert isinstance(Rsm().place(CHAIN, bundled(needs), [Vm("vm", slots)]), DoesNotFit)


def test_five_threads_of_a_quarter_less_a_bit_need_two_slots() -> None:
    assert Rsm().fewest_slots(CHAIN, [Bundle("a", 8, 0.1, 8 * 0.24)]) == 2
    assert Rsm().fewest_slots(CHAIN, [Bundle("a", 9, 0.1, 9 * 0.24)]) == 3


def test_a_thread_larger_than_a_slots_memory_fits_nowhere() -> None:
    assert Rsm().fewest_slots(CHAIN, [Bundle("a", 1, 0.1, 1.2)]) is None


def test_erratum_a_threads_need_is_its_tasks_total_divided_by_its_threads() -> None:
    fifty = Bundle("a", 50, 0.77, 0.31)
    assert placed(fifty, fleet=[Vm("vm", 1)]).slots == {"vm/1": (("a", 50),)}


def test_cpu_is_pooled_over_the_vm_while_memory_is_bound_to_the_slot() -> None:
    hot = Bundle("a", 2, 1.8, 0.2)
    assert placed(hot, fleet=[Vm("vm", 2)]).slots == {"vm/1": (("a", 2),), "vm/2": ()}
    fat = Bundle("a", 2, 0.2, 1.8)
    assert placed(fat, fleet=[Vm("vm", 2)]).slots == {"vm/1": (("a", 1),), "vm/2": (("a", 1),)}


def test_a_vm_in_use_is_nearer_than_an_empty_one() -> None:
    found = placed(Bundle("a", 2, 0.4, 0.4), Bundle("b", 2, 0.4, 0.4), fleet=[Vm("x", 2), Vm("y", 2)])
    assert all(not groups for slot, groups in found.slots.items() if slot.startswith("y/"))


def test_the_same_rack_is_nearer_than_another() -> None:
    fleet = [Vm("x", 1, "rack-1"), Vm("y", 1, "rack-2"), Vm("z", 1, "rack-1")]
    found = placed(Bundle("a", 2, 1.8, 0.2), fleet=fleet)
    assert found.threads("a") == {"x/1": 1, "z/1": 1}


def test_a_refusal_names_the_task_and_what_is_left() -> None:
    found = Rsm().place(CHAIN, [Bundle("a", 3, 0.3, 1.8)], [Vm("vm", 2)])
    assert isinstance(found, DoesNotFit)
    assert found.why.startswith("a: a thread needs 10.0% CPU of a VM and 60.0% memory of a slot")
    assert "2 of 3 threads placed" in found.why


def test_no_slots_at_all_do_not_fit() -> None:
    assert isinstance(Rsm().place(CHAIN, [Bundle("a", 1, 0.1, 0.1)], []), DoesNotFit)
    assert isinstance(Rsm().place(CHAIN, [], []), Placement)


def test_tasks_come_breadth_first() -> None:
    edges = (Edge("source", "a"), Edge("a", "deep"), Edge("deep", "end"), Edge("source", "b"), Edge("b", "end"))
    wide = Topology("wide", tuple(Operator(name, 1.0) for name in ("end", "deep", "b", "a")), edges)
    assert list(breadth_first(wide)) == ["a", "b", "deep", "end"]


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(BadInput, match="network_weight"):
        Rsm(network_weight=-1.0)
