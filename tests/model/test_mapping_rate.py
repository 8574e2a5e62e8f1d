from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Placement, ProfilePoint, TaskProfile, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.model.mapping_rate import Routing, TaskRate, mapping_rate, task_rate, vm_loads

AWARE, EVEN = Routing.SLOT_AWARE, Routing.EVEN
TABLE = TaskProfile(
    "table",
    (
        ProfilePoint(1, 3.0, 0.01, 0.01),
        ProfilePoint(2, 5.0, 0.02, 0.01),
        ProfilePoint(10, 10.0, 0.11, 0.03),
        ProfilePoint(40, 20.0, 0.27, 0.09),
        ProfilePoint(60, 40.0, 0.54, 0.16),
    ),
)
CHAIN = Topology(
    "chain",
    (Operator("table", 3.0, profile=TABLE), Operator("parse", 300.0, cpu=0.8, memory=0.4)),
    (Edge("source", "table"), Edge("table", "parse", 2.0), Edge("parse", "sink")),
)


def placed(**slots: tuple[tuple[str, int], ...]) -> Placement:
    """Slots ``a1``, ``a2``, ``b1``, ... of VM a with two slots and VM b with three."""
    return Placement((Vm("a", 2), Vm("b", 3)), {f"{name[0]}/{name[1]}": on for name, on in slots.items()})


def test_the_papers_table_threads_sum_to_a_hundred_but_carry_eighty_evenly() -> None:
    found = task_rate(TABLE, {"s1": 60, "s2": 60, "s3": 40})
    assert found.rate_per_s(AWARE) == 100.0
    assert found.rate_per_s(EVEN) == 80.0


def test_erratum_the_sum_overestimates_where_routing_is_even() -> None:
    found = task_rate(TABLE, {"s1": 2, "s2": 60})
    assert found.rate_per_s(EVEN) == pytest.approx(40 * 62 / 60)
    assert found.rate_per_s(AWARE) == 45.0


@given(st.dictionaries(st.integers(0, 9).map(str), st.integers(1, 80), min_size=1))
def test_even_routing_never_beats_slot_aware_routing(threads: dict[str, int]) -> None:
    found = task_rate(TABLE, threads)
    assert found.rate_per_s(EVEN) <= found.rate_per_s(AWARE) * (1 + 1e-12)


@given(st.dictionaries(st.integers(0, 9).map(str), st.integers(1, 80), min_size=1), st.sampled_from(Routing))
def test_the_shares_bring_no_slot_above_its_rate_at_the_predicted_rate(
    threads: dict[str, int], routing: Routing
) -> None:
    found = task_rate(TABLE, threads)
    shares = found.shares(routing)
    assert math.fsum(shares.values()) == pytest.approx(1.0)
    for slot, share in shares.items():
        assert found.rate_per_s(routing) * share <= found.slot_per_s[slot] * (1 + 1e-12)


def test_slots_alike_are_as_good_evenly_as_by_slot() -> None:
    found = task_rate(TABLE, {"s1": 10, "s2": 10})
    assert found.rate_per_s(EVEN) == found.rate_per_s(AWARE) == 20.0


def test_a_task_without_threads_carries_nothing() -> None:
    nothing = task_rate(TABLE, {"s1": 0})
    assert nothing == TaskRate({}, {})
    assert nothing.rate_per_s(EVEN) == nothing.rate_per_s(AWARE) == 0.0
    assert nothing.shares(EVEN) == {}


def test_the_pipeline_carries_what_its_weakest_task_carries_per_row() -> None:
    found = mapping_rate(CHAIN, placed(a1=(("table", 60),), a2=(("table", 60), ("parse", 1))))
    assert found.rate_per_s(AWARE) == 80.0
    crowded = mapping_rate(
        CHAIN, placed(**{f"{vm}{n}": (("table", 60),) for vm in "ab" for n in "12"}, b3=(("parse", 1),))
    )
    assert crowded.rate_per_s(AWARE) == 150.0


def test_a_task_that_is_not_placed_stops_the_pipeline() -> None:
    found = mapping_rate(CHAIN, placed(a1=(("table", 60),)))
    assert found.rate_per_s(EVEN) == 0.0


def test_a_pipeline_that_no_row_enters_has_no_limit() -> None:
    dry = Topology("dry", (Operator("a", 3.0),), (Edge("source", "a", 0.0),))
    found = mapping_rate(dry, placed())
    assert found.rate_per_s(EVEN) == math.inf


def test_threads_of_a_task_listed_twice_on_a_slot_count_together() -> None:
    found = mapping_rate(CHAIN, placed(a1=(("table", 1), ("table", 1)), a2=(("parse", 1),)))
    assert found.tasks["table"].threads == {"a/1": 2}


def test_a_vm_uses_what_its_slots_use_at_the_rate_they_get() -> None:
    where = placed(a1=(("source", 1), ("table", 60)), a2=(("table", 60),), b1=(("parse", 1), ("sink", 1)), b2=())
    loads = vm_loads(CHAIN, where, 40.0)
    assert (loads["a"].slots, loads["b"].slots) == (2, 3)
    assert (loads["a"].cpu, loads["a"].memory) == pytest.approx((0.64, 0.16))
    assert (loads["b"].cpu, loads["b"].memory) == pytest.approx((0.1 + 0.8 * 80 / 300, 0.4 * 80 / 300))


def test_routing_by_slot_moves_the_load_to_the_stronger_slot() -> None:
    where = placed(a1=(("table", 60),), b1=(("table", 40), ("parse", 1)))
    even, aware = (vm_loads(CHAIN, where, 30.0, routing) for routing in (EVEN, AWARE))
    assert aware["a"].cpu > even["a"].cpu
    assert aware["b"].cpu < even["b"].cpu


def test_a_slot_above_its_rate_uses_no_more_than_at_its_rate() -> None:
    where = placed(a1=(("table", 60),), b1=(("parse", 1),))
    assert vm_loads(CHAIN, where, 1e6)["a"].cpu == pytest.approx(0.54)


@pytest.mark.parametrize("rate", [-1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(BadInput, match="pipeline rate"):
        vm_loads(CHAIN, placed(), rate)
