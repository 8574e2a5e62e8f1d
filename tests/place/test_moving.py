"""Placers that go on from what runs: Es-Stream's node rules and Mc-Stream's algorithm 4 on measured loads."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, NodeObservation, Operator, Topology
from sluicegate.place.es_stream_live import EsNodesMemory, EsStreamMoving, move_by_nodes
from sluicegate.place.mc_stream_live import McMovesMemory, McStreamMoving
from sluicegate.place.moving import Moved, MovingPlacer, WhatRuns
from sluicegate.policy.papers.es_stream_nodes import NodeThresholds

TWO = Topology(
    "t",
    (Operator("a", 9.0), Operator("b", 9.0, stateful=True)),
    (Edge("source", "a"), Edge("a", "b"), Edge("b", "sink")),
)
THREE = {"h1": 2, "h2": 2, "h3": 2}


def ground(slots: dict[str, int], a: tuple[str, ...], b: tuple[str, ...], **loads: float) -> WhatRuns:
    nodes = tuple(NodeObservation(host, loads.get(host, 0.0)) for host in slots)
    return WhatRuns(100.0, slots, {"a": a, "b": b}, nodes, arrivals_per_s=100.0)


def es(memory: EsNodesMemory | None, k: dict[str, int], seen: WhatRuns) -> tuple[EsNodesMemory, Moved]:
    return EsStreamMoving().move(memory, TWO, k, seen)


def test_both_know_how_to_go_on_from_what_runs() -> None:
    assert isinstance(EsStreamMoving(), MovingPlacer)
    assert isinstance(McStreamMoving(), MovingPlacer)


def test_busy_and_even_nodes_send_a_new_instance_to_a_node_that_is_not_in_use() -> None:
    memory, moved = es(None, {"a": 1, "b": 2}, ground(THREE, ("h1",), ("h2",), h1=0.72, h2=0.71))
    assert moved.places == {"a": ("h1",), "b": ("h2", "h3")}
    assert memory.taken == ("h3",)
    assert "bottleneck near" in moved.reasons[0]


def test_busy_nodes_without_a_spare_one_ask_for_one_more() -> None:
    two = {"h1": 2, "h2": 2}
    _, moved = es(None, {"a": 1, "b": 2}, ground(two, ("h1",), ("h2",), h1=0.72, h2=0.71))
    assert moved.more_nodes == 1
    assert len(moved.places["b"]) == 2, "until it comes the instance runs where a slot is free"


def test_several_instances_without_a_node_share_those_that_are_added() -> None:
    two = {"h1": 2, "h2": 2}
    _, moved = es(None, {"a": 1, "b": 6}, ground(two, ("h1",), ("h2",), h1=0.72, h2=0.71))
    assert moved.more_nodes == 3, "five of them on nodes of two slots"


def test_with_room_a_new_instance_goes_to_the_least_loaded_node_in_use() -> None:
    _, moved = es(None, {"a": 1, "b": 2}, ground(THREE, ("h1",), ("h2",), h1=0.4, h2=0.2))
    assert moved.places["b"] == ("h2", "h2")
    assert "room" in moved.reasons[0]


def test_without_a_slot_left_a_node_is_asked_for_whatever_the_load() -> None:
    _, moved = es(None, {"a": 1, "b": 2}, ground({"h1": 1, "h2": 1}, ("h1",), ("h2",)))
    assert moved.more_nodes == 1


def test_nodes_are_left_when_the_rate_falls_those_taken_by_scaling_out_first() -> None:
    seen = ground(THREE, ("h1",), ("h2", "h3"), h1=0.1, h2=0.1, h3=0.1)
    before = EsNodesMemory(taken=("h2",), rate_per_s=300.0)
    memory, moved = es(before, {"a": 1, "b": 2}, seen)
    assert moved.leaving[0] == "h2"
    assert not {host for hosts in moved.places.values() for host in hosts} & set(moved.leaving)
    assert sum(THREE[host] for host in THREE if host not in moved.leaving) >= 3, "every instance keeps a slot"
    assert memory.leaving == moved.leaving
    again, later = es(memory, {"a": 1, "b": 2}, replace(seen, places=moved.places))
    assert "the rate falls" in later.reasons[0], "until they are gone"
    assert (later.places, later.leaving, again.leaving) == (moved.places, moved.leaving, moved.leaving)


def test_a_steady_rate_gives_no_node_back() -> None:
    seen = ground(THREE, ("h1",), ("h2", "h3"), h1=0.1, h2=0.1, h3=0.1)
    assert es(EsNodesMemory(rate_per_s=110.0), {"a": 1, "b": 2}, seen)[1].leaving == ()


def test_thresholds_are_the_users() -> None:
    seen = ground(THREE, ("h1",), ("h2",), h1=0.4, h2=0.4)
    placer = EsStreamMoving(nodes=NodeThresholds(phi=0.35, zeta=0.1))
    assert placer.move(None, TWO, {"a": 1, "b": 2}, seen)[1].places["b"] == ("h2", "h3")


def mc(seen: WhatRuns, memory: McMovesMemory | None = None, **k: int) -> tuple[McMovesMemory, Moved]:
    return McStreamMoving().move(memory or McMovesMemory(0.0), TWO, k, seen)


def test_a_new_instance_goes_beside_its_upstream() -> None:
    _, moved = mc(ground(THREE, ("h1", "h2"), ("h1",)), a=2, b=2)
    assert moved.places["b"] == ("h1", "h2")


def test_while_late_the_ends_of_the_busiest_edge_come_together() -> None:
    seen = replace(
        ground(THREE, ("h1",), ("h2",)), late=True, loads={"a": (0.5,), "b": (0.2,)}, edges_per_s={("a", "b"): 900.0}
    )
    memory, moved = mc(seen, a=1, b=1)
    assert moved.places == {"a": ("h1",), "b": ("h1",)}
    assert any("hot edge: 900 rows/s from a stay on one node" in text for text in moved.reasons)
    assert any("in 7 steps: start a replica on the target, ..., remove the old" in text for text in moved.reasons)
    assert moved.leaving == (), "no node is given back while the promise is broken"
    assert mc(replace(seen, now_s=105.0), memory, a=1, b=1)[1].reasons == (), "what a move gained is measured first"


def test_the_next_move_waits_for_a_batch_at_the_new_places_however_long_batches_take() -> None:
    seen = replace(
        ground(THREE, ("h1",), ("h2",)), late=True, loads={"a": (0.5,), "b": (0.2,)}, edges_per_s={("a", "b"): 900.0}
    )
    memory, moved = mc(replace(seen, ended={"a": 1, "b": 1}), a=1, b=1)
    crowded = replace(seen, places=moved.places, loads={"a": (0.95,), "b": (0.9,)}, ended={"a": 3, "b": 0})
    found = []
    for look, ended in enumerate((0, 1, 0, 1)):
        memory, moved = mc(replace(crowded, now_s=200.0 + 30 * look, ended={"a": 3, "b": ended}), memory, a=1, b=1)
        found.append(bool(moved.reasons))
    assert found == [False, False, False, True], "the batch under way then, and one more"


def test_while_on_time_and_idle_cold_instances_are_packed_and_nodes_released() -> None:
    roomy = {"h1": 4, "h2": 2, "h3": 2}
    seen = replace(ground(roomy, ("h1", "h2"), ("h1", "h3")), loads={"a": (0.1, 0.02), "b": (0.1, 0.02)})
    _, moved = mc(seen, a=2, b=2)
    used = {host for hosts in moved.places.values() for host in hosts}
    assert len(used) < 3
    assert set(moved.leaving) == set(THREE) - used
    assert [len(moved.places[name]) for name in "ab"] == [2, 2]


def test_without_its_levels_instances_are_dealt_in_turn_and_none_is_moved() -> None:
    late = replace(
        ground(THREE, ("h1",), ("h2",)), late=True, loads={"a": (0.9,), "b": (0.2,)}, edges_per_s={("a", "b"): 900.0}
    )
    alone = McStreamMoving(scheduling=False, online=False)
    _, stays = alone.move(McMovesMemory(0.0), TWO, {"a": 1, "b": 1}, late)
    assert (stays.places, stays.reasons) == ({"a": ("h1",), "b": ("h2",)}, ())
    _, grown = alone.move(McMovesMemory(0.0), TWO, {"a": 2, "b": 2}, late)
    assert grown.places == {"a": ("h1", "h3"), "b": ("h1", "h2")}


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_no_slot_is_given_twice_and_no_instance_sits_on_a_node_that_is_left(
    sizes: list[int], a: int, b: int, loads: list[float], late: bool, falls: bool
) -> None:
    slots = {f"h{i}": size for i, size in enumerate(sizes)}
    seen = ground(slots, ("h0",), ("h0",), **dict(zip(slots, loads, strict=False)))
    seen = replace(seen, late=late, loads={"a": (loads[0],), "b": (loads[1],)}, edges_per_s={("a", "b"): 10.0})
    es_memory = EsNodesMemory(rate_per_s=1e4 if falls else 0.0)
    for _, moved in (es(es_memory, {"a": a, "b": b}, seen), mc(seen, a=a, b=b)):
        used = [host for hosts in moved.places.values() for host in hosts]
        assert all(used.count(host) <= size for host, size in slots.items())
        assert not set(used) & set(moved.leaving)
        if a + b <= sum(slots.values()):
            assert len(used) == a + b


def test_es_stream_moves_an_instance_to_the_node_that_was_requested_for_it() -> None:
    one = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"),))
    first = WhatRuns(0.0, {"h1": 4}, {"a": ("h1",)}, (NodeObservation("h1", 0.75),), 100.0)
    memory, moved = move_by_nodes(None, one, {"a": 2}, first, NodeThresholds(), 0.2)
    again = WhatRuns(2.0, {"h1": 4}, moved.places, (NodeObservation("h1", 0.9),), 100.0)
    memory, moved = move_by_nodes(memory, one, {"a": 2}, again, NodeThresholds(), 0.2)
    assert moved.more_nodes == 1
    loads = (NodeObservation("h1", 0.9), NodeObservation("h2", 0.0))
    up = WhatRuns(30.0, {"h1": 4, "h2": 4}, moved.places, loads, 100.0)
    _, there = move_by_nodes(memory, one, {"a": 2}, up, NodeThresholds(), 0.2)
    assert there.places == {"a": ("h1", "h2")}
    falling = WhatRuns(30.0, {"h1": 4}, moved.places, loads[:1], 50.0)
    assert move_by_nodes(memory, one, {"a": 2}, falling, NodeThresholds(), 0.2)[1].more_nodes == 0


def test_mc_stream_leaves_a_slot_to_every_task_however_little_cpu_it_uses() -> None:
    light = Topology("t", (Operator("a", 9.0, cpu=0.4),), (Edge("source", "a"),))
    ground = WhatRuns(100.0, {"n1": 1, "n2": 1}, {"a": ("n1", "n2")}, (), 1.0, False, {"a": (0.1, 0.2)})
    _, moved = McStreamMoving().move(McMovesMemory(0.0), light, {"a": 2}, ground)
    assert moved.places == {"a": ("n1", "n2")}
    assert not moved.leaving
