from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Bundle, Edge, Operator, Placement, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.place.es_stream import EsStreamPlacer
from sluicegate.place.placer import DoesNotFit, Placer
from sluicegate.policy.papers.es_stream_nodes import NodeThresholds

PLACER: Placer = EsStreamPlacer()
TOPOLOGY = Topology("t", (Operator("a", 9.0), Operator("b", 9.0, io=0.5)), (Edge("source", "a"), Edge("a", "b")))


def instances(a: int, b: int, cpu: float = 1.0) -> list[Bundle]:
    return [Bundle("a", 1, cpu, 0.1)] * a + [Bundle("b", 1, cpu, 0.1)] * b


def fleet(*slots: int) -> list[Vm]:
    return [Vm(f"n{i}", size) for i, size in enumerate(slots)]


def vms_used(placement: Placement) -> set[str]:
    return {slot.split("/")[0] for slot, groups in placement.slots.items() if groups}


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.05, 1.0)), max_size=20),
    st.integers(1, 3),
)
def test_every_instance_is_placed_once_and_no_slot_is_overfull(
    sizes: list[int], some: list[tuple[str, float]], per_slot: int
) -> None:
    bundles = [Bundle(name, 1, cpu, 0.0) for name, cpu in some]
    found = EsStreamPlacer(per_slot).place(TOPOLOGY, bundles, fleet(*sizes))
    if isinstance(found, DoesNotFit):
        assert "has that left" in found.why
        return
    placed = Counter[str]()
    for groups in found.slots.values():
        assert sum(threads for _, threads in groups) <= per_slot
        placed.update(dict(groups))
    assert placed == Counter(name for name, _ in some)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 24))
def test_as_many_instances_as_slots_always_fit(sizes: list[int], count: int) -> None:
    count = min(count, sum(sizes))
    assert isinstance(PLACER.place(TOPOLOGY, instances(count, 0), fleet(*sizes)), Placement)
    assert isinstance(PLACER.place(TOPOLOGY, instances(sum(sizes) + 1, 0), fleet(*sizes)), DoesNotFit)


def test_nodes_are_taken_as_the_load_asks_for_them() -> None:
    used = [len(vms_used(_placed(instances(n, 0), fleet(4, 4, 4)))) for n in (1, 3, 4, 12)]
    assert used == [1, 1, 2, 3]


def test_the_papers_nodes_hold_two_workers_of_two_instances() -> None:
    found = EsStreamPlacer(instances_per_slot=2).place(TOPOLOGY, instances(26, 26, cpu=0.5), fleet(*[2] * 13))
    assert isinstance(found, Placement)
    assert all(sum(threads for _, threads in groups) == 2 for groups in found.slots.values())


def test_alpha_keeps_a_part_of_every_node_free() -> None:
    careful = EsStreamPlacer(thresholds=NodeThresholds(alpha_cpu=0.5))
    found = careful.place(TOPOLOGY, instances(4, 0), fleet(4, 4))
    assert isinstance(found, Placement)
    assert vms_used(found) == {"n0", "n1"}
    assert isinstance(careful.place(TOPOLOGY, instances(5, 0), fleet(4, 4)), DoesNotFit)


def test_input_and_output_count_as_a_dimension() -> None:
    careful = EsStreamPlacer(thresholds=NodeThresholds(alpha_io=0.5))
    assert isinstance(careful.place(TOPOLOGY, instances(0, 2, cpu=0.1), fleet(2)), Placement)
    assert isinstance(careful.place(TOPOLOGY, instances(0, 3, cpu=0.1), fleet(2)), DoesNotFit)


def test_sources_and_sinks_are_placed_as_well() -> None:
    ends = [Bundle("source", 1, 0.1, 0.0), *instances(1, 1), Bundle("sink", 1, 0.1, 0.0)]
    assert _placed(ends, fleet(4)).threads("sink") == {"n0/4": 1}


def test_it_goes_by_the_name_of_its_paper() -> None:
    assert PLACER.name == "es-stream"


def test_no_fleet_says_why_not() -> None:
    found = PLACER.place(TOPOLOGY, instances(1, 0), [])
    assert isinstance(found, DoesNotFit)
    assert found.why.startswith("a: an instance needs 100.0% CPU")


def test_slots_for_no_instance_are_refused() -> None:
    with pytest.raises(BadInput, match="instances_per_slot"):
        EsStreamPlacer(instances_per_slot=0)


def _placed(bundles: list[Bundle], vms: list[Vm]) -> Placement:
    found = PLACER.place(TOPOLOGY, bundles, vms)
    assert isinstance(found, Placement)
    return found
