from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Bundle, Edge, Operator, Placement, Topology, Vm
from sluicegate.place.mc_stream import McStreamPlacer, upstream_of
from sluicegate.place.placer import DoesNotFit, Placer

PLACER: Placer = McStreamPlacer()
TOPOLOGY = Topology(
    "top_n",
    tuple(Operator(name, 9.0) for name in ("reader", "count", "rank")),
    (Edge("source", "reader"), Edge("reader", "count"), Edge("count", "rank")),
)
NAMES = TOPOLOGY.names


def fleet(*slots: int) -> list[Vm]:
    return [Vm(f"n{i}", size) for i, size in enumerate(slots)]


def hosts(placement: Placement) -> dict[str, Counter[str]]:
    found = {vm.name: Counter[str]() for vm in placement.vms}
    for slot, groups in placement.slots.items():
        found[slot.split("/")[0]].update(dict(groups))
    return found


def placed(bundles: list[Bundle], vms: list[Vm]) -> Placement:
    found = PLACER.place(TOPOLOGY, bundles, vms)
    assert isinstance(found, Placement)
    return found


def ones(*names: str) -> list[Bundle]:
    return [Bundle(name, 1, 1.0, 0.0) for name in names]


fleets = st.lists(st.integers(1, 4), min_size=1, max_size=6)
wishes = st.lists(st.sampled_from(NAMES), max_size=16)


@settings(max_examples=80)
@given(fleets, wishes)
def test_every_instance_is_placed_once_or_the_reason_is_given(sizes: list[int], names: list[str]) -> None:
    found = PLACER.place(TOPOLOGY, ones(*names), fleet(*sizes))
    if len(names) > sum(sizes):
        assert isinstance(found, DoesNotFit)
        assert "has that left" in found.why
    else:
        assert isinstance(found, Placement)
        assert sum(hosts(found).values(), Counter()) == Counter(names)
        assert all(sum(threads for _, threads in groups) <= 1 for groups in found.slots.values())


@settings(max_examples=80)
@given(fleets, wishes)
def test_siblings_share_a_node_only_where_no_free_node_is_left(sizes: list[int], names: list[str]) -> None:
    found = PLACER.place(TOPOLOGY, ones(*names), fleet(*sizes))
    if isinstance(found, DoesNotFit):
        return
    by_vm, size = hosts(found), {vm.name: vm.slots for vm in found.vms}
    for name in NAMES:
        if any(on[name] > 1 for on in by_vm.values()):
            free = [vm for vm, on in by_vm.items() if on.total() < size[vm]]
            assert all(by_vm[vm][name] for vm in free)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0.05, 1), st.floats(0, 1)), max_size=12), fleets)
def test_no_slot_holds_more_than_it_has(some: list[tuple[str, float, float]], sizes: list[int]) -> None:
    # Powers of two as thread counts: what a slot holds tells which bundles it holds.
    bundles = [Bundle(name, 2**i, cpu, memory) for i, (name, cpu, memory) in enumerate(some)]
    found = PLACER.place(TOPOLOGY, bundles, fleet(*sizes))
    if isinstance(found, DoesNotFit):
        return
    on_slot = [sum(threads for _, threads in groups) for groups in found.slots.values()]
    assert sum(on_slot) == sum(bundle.threads for bundle in bundles)
    for held in on_slot:
        here = [bundle for bundle in bundles if held & bundle.threads]
        assert sum(bundle.cpu for bundle in here) <= 1 + 1e-6
        assert sum(bundle.memory for bundle in here) <= 1 + 1e-6


def test_an_instance_goes_beside_its_upstream() -> None:
    found = placed(ones("reader", "count", "rank"), fleet(3, 3))
    assert hosts(found)["n0"].total() == 3
    assert found.reasons[0] == (
        "mc-stream: of 3 instances 2 beside its upstream, 0 away from its siblings, 1 where most room is"
    )


def test_siblings_go_to_different_nodes() -> None:
    found = hosts(placed(ones("reader", "reader", "reader"), fleet(3, 1, 1)))
    assert [found[name]["reader"] for name in ("n0", "n1", "n2")] == [1, 1, 1]


def test_the_roomiest_node_comes_first() -> None:
    assert hosts(placed(ones("reader"), fleet(1, 4, 2)))["n1"]["reader"] == 1


def test_without_another_node_siblings_share_the_one_there_is() -> None:
    assert hosts(placed(ones("reader", "reader"), fleet(2)))["n0"]["reader"] == 2


def test_instances_are_placed_upstream_first_whatever_their_order() -> None:
    assert placed(ones("rank", "count", "reader"), fleet(3, 3)).slots == (
        placed(ones("reader", "count", "rank"), fleet(3, 3)).slots
    )


def test_a_source_counts_as_an_upstream() -> None:
    found = hosts(placed([Bundle("source", 1, 0.1, 0.0), *ones("reader")], fleet(2, 2)))
    assert found["n0"] == Counter(source=1, reader=1)
    assert upstream_of(TOPOLOGY)["reader"] == {"source"}


def test_a_vertex_that_feeds_itself_is_not_its_own_upstream() -> None:
    edges = (Edge("source", "a"), Edge("a", "a", 0.5))
    assert upstream_of(Topology("loop", (Operator("a", 9.0),), edges))["a"] == {"source"}


def test_it_goes_by_the_name_of_its_paper() -> None:
    assert PLACER.name == "mc-stream"


def test_nothing_to_place_and_no_fleet_are_fine_on_their_own() -> None:
    assert placed([], []).slots == {}
    assert isinstance(PLACER.place(TOPOLOGY, ones("reader"), []), DoesNotFit)
