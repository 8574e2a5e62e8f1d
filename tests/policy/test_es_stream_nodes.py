from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import NodeObservation
from sluicegate.errors import BadInput
from sluicegate.policy.papers.es_stream_nodes import (
    Hold,
    NodeThresholds,
    Reuse,
    ScaleOut,
    Shrink,
    Use,
    fits,
    node_for_instance,
    nodes_to_release,
    use_of_a_new_instance,
)

RULES = NodeThresholds()


def used(*loads: float) -> list[NodeObservation]:
    return [NodeObservation(f"n{i}", load, hosts={"a": 1}) for i, load in enumerate(loads)]


def spare(*names: str) -> list[NodeObservation]:
    return [NodeObservation(name, 0.0) for name in names]


def test_evenly_loaded_busy_nodes_call_for_a_new_one() -> None:
    found = node_for_instance([*used(0.75, 0.74, 0.76), *spare("new")], Use(0.1))
    assert isinstance(found, ScaleOut)
    assert found.node == "new"
    assert found.reason.startswith("bottleneck near: mean load 75% >= 70%")


def test_without_a_free_node_one_must_be_added() -> None:
    found = node_for_instance(used(0.75, 0.74, 0.76), Use(0.1))
    assert found == ScaleOut(None, found.reason)
    assert "add one" in found.reason


def test_room_is_used_on_the_least_loaded_node_before_a_new_one_is_taken() -> None:
    found = node_for_instance([*used(0.5, 0.2, 0.4), *spare("new")], Use(0.1))
    assert isinstance(found, Reuse)
    assert found.node == "n1"


def test_a_skewed_load_has_room_even_when_its_mean_is_high() -> None:
    nodes = [*used(0.65, 0.65, 0.65, 0.65, 1.0), *spare("new")]
    found = node_for_instance(nodes, Use(0.1), NodeThresholds(phi=0.7))
    assert isinstance(found, Reuse)


def test_erratum_eq_22_looks_at_the_least_loaded_node_and_then_at_the_whole_cluster() -> None:
    # n1 carries least but is full in memory; of all others the idle node carries least.
    nodes = [
        NodeObservation("n0", 0.6, hosts={"a": 1}),
        NodeObservation("n1", 0.1, memory=0.55, hosts={"a": 1}),
        NodeObservation("idle", 0.0),
    ]
    assert node_for_instance(nodes, Use(0.1, memory=0.1)).node == "n1"
    found = node_for_instance(nodes, Use(0.1, memory=0.3))
    assert isinstance(found, ScaleOut)
    assert found.node == "idle"
    without_idle = node_for_instance(nodes[:2], Use(0.1, memory=0.3))
    assert isinstance(without_idle, Reuse)
    assert without_idle.node == "n0"


def test_erratum_where_bottleneck_and_room_both_hold_the_bottleneck_wins() -> None:
    # Two nodes: skewness undefined, taken as 0 = eta; mean load exactly phi.
    rules = NodeThresholds(eta=0.0, phi=0.5)
    found = node_for_instance([*used(0.5, 0.5), *spare("new")], Use(0.1), rules)
    assert isinstance(found, ScaleOut)


def test_erratum_an_undefined_skewness_is_said_in_the_reason() -> None:
    assert "taken as 0" in node_for_instance(used(0.2, 0.3), Use(0.1)).reason


def test_the_skewness_counts_nodes_in_use_only() -> None:
    # With the idle nodes the mean would be 15%: room. Without them it is 75%: a bottleneck.
    found = node_for_instance([*used(0.75), *spare("i1", "i2", "i3", "i4")], Use(0.1))
    assert isinstance(found, ScaleOut)


def test_nodes_without_a_place_left_are_passed_over() -> None:
    assert node_for_instance(used(0.1, 0.2), Use(0.1), full={"n0"}).node == "n1"
    assert node_for_instance(used(0.1, 0.2), Use(0.1), full={"n0", "n1"}).node is None


def test_the_first_instance_takes_a_free_node_if_there_is_one() -> None:
    assert node_for_instance(spare("n0"), Use(0.1)).node == "n0"
    assert node_for_instance([], Use(0.1)).node is None


def test_erratum_eq_21_divides_by_the_present_number_of_instances() -> None:
    present = [Use(0.2, 0.1, 0.0), Use(0.4, 0.3, 0.2)]
    found = use_of_a_new_instance(present)
    assert (found.cpu, found.memory, found.io) == pytest.approx((0.3, 0.2, 0.1))
    with pytest.raises(BadInput, match="declared use"):
        use_of_a_new_instance([])


def test_a_falling_rate_on_idle_nodes_releases_the_newest_taken_first() -> None:
    found = nodes_to_release(used(0.2, 0.2, 0.2, 0.2), rate_falls=True, taken=["n1", "n3"])
    assert isinstance(found, Shrink)
    assert found.nodes == ("n3", "n1")


@pytest.mark.parametrize(
    ("loads", "falls", "word"),
    [
        ((0.1, 0.1, 0.1), False, "does not fall"),
        ((0.5, 0.5, 0.5), True, "no shrink"),
        ((0.3, 0.3, 0.01), True, "no shrink"),
        ((0.1,), True, "no node can go"),
        ((), True, "no node can go"),
    ],
)
def test_otherwise_the_nodes_are_held(loads: tuple[float, ...], falls: bool, word: str) -> None:
    found = nodes_to_release(used(*loads), rate_falls=falls)
    assert isinstance(found, Hold)
    assert word in found.reason


shares = st.floats(0.0, 1.0)


@given(st.lists(shares, max_size=12), st.lists(st.integers(0, 11), unique=True, max_size=4))
def test_a_shrink_never_leaves_a_bottleneck_behind(loads: list[float], taken: list[int]) -> None:
    nodes = used(*loads)
    found = nodes_to_release(nodes, rate_falls=True, taken=[f"n{i}" for i in taken])
    if isinstance(found, Shrink):
        left = len(nodes) - len(found.nodes)
        assert left >= 1
        assert len(set(found.nodes)) == len(found.nodes)
        assert sum(loads) / left < RULES.phi


@given(st.lists(st.tuples(shares, shares, shares, st.booleans()), max_size=10), shares, shares)
def test_an_instance_only_goes_where_eq_22_holds(
    cluster: list[tuple[float, float, float, bool]], cpu: float, memory: float
) -> None:
    nodes = [
        NodeObservation(f"n{i}", c, m, io, hosts={"a": 1} if runs else {}) for i, (c, m, io, runs) in enumerate(cluster)
    ]
    use = Use(cpu, memory)
    found = node_for_instance(nodes, use)
    target = next((node for node in nodes if node.name == found.node), None)
    if target is not None:
        assert fits(target, use, RULES)
        assert bool(target.hosts) is isinstance(found, Reuse)


def test_thresholds_out_of_range_are_refused() -> None:
    with pytest.raises(BadInput, match="nodes come and go"):
        NodeThresholds(zeta=0.8)
    with pytest.raises(BadInput, match="alpha_io"):
        NodeThresholds(alpha_io=1.2)
    with pytest.raises(BadInput, match="finite skewness"):
        NodeThresholds(eta=float("inf"))
