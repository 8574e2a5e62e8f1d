"""Slots of the micro dataflows come out as printed, and what runs stably is found by simulation."""

from __future__ import annotations

import pytest

from sluicegate.lab.reproduce import model_driven
from sluicegate.lab.reproduce.dataflows import applications, micro
from sluicegate.lab.reproduce.model_driven import slot_rows
from sluicegate.lab.reproduce.model_driven_cluster import FLEET, r_squared
from sluicegate.lab.reproduce.slot_plans import LSA_RSM, MBA_DSM, MBA_SAM, most_on, plan_for
from sluicegate.lab.reproduce.stable_rate import highest_stable, stable_per_s, watch, without_endpoints
from sluicegate.model.mapping_rate import Routing, mapping_rate
from sluicegate.model.traffic import visits


def test_the_rows_of_slots_say_what_holds_and_what_does_not() -> None:
    found = {row.what: row for row in slot_rows(micro())}
    assert found["linear: slots by MBA at 50/100/200 rows/s"].ours == "4/7/15"
    at_200 = found["linear: slots by LSA at 200 rows/s"]
    assert at_200.holds is False
    assert at_200.note
    missed = {row.what for row in found.values() if not row.holds}
    twice = {f"{name}: slots by LSA and MBA at 50/100/200 rows/s" for name in ("diamond", "star")}
    assert missed == {at_200.what} | twice
    assert all(row.note for row in found.values() if row.what in missed)


def test_applications_multiply_rates_as_drawn() -> None:
    reached = {name: dict(zip(t.names, visits(t).tolist(), strict=True)) for name, t in applications().items()}
    assert reached["traffic"]["t12-parse"] == 3.0
    assert [reached["grid"][name] for name in ("t14-table", "t15-blob", "t16-batch")] == [3.0, 3.0, 3.0]
    assert reached["finance"]["index"] == 2.0


def test_every_application_needs_fewer_slots_by_mba() -> None:
    for topology in applications().values():
        assert plan_for(MBA_SAM, topology, 50.0).total < plan_for(LSA_RSM, topology, 50.0).total


def test_the_simulated_rate_is_near_the_model_for_even_routing() -> None:
    topology = micro()["linear"]
    placement = plan_for(MBA_SAM, topology, 50.0).placement
    predicted = mapping_rate(topology, placement).rate_per_s(Routing.EVEN)
    assert 0.85 * predicted < stable_per_s(topology, placement, 5.0, 50.0) <= predicted


def test_a_rate_beyond_the_model_is_not_stable() -> None:
    topology = micro()["linear"]
    placement = plan_for(MBA_SAM, topology, 50.0).placement
    assert watch(topology, placement, 20.0).stable
    assert not watch(topology, placement, 80.0).stable


def test_use_of_a_vm_stays_a_share_and_grows_with_the_rate() -> None:
    topology = micro()["star"]
    plan = most_on(MBA_DSM, topology, FLEET)
    low, high = (watch(topology, plan.placement, rate).cpu for rate in (20.0, 150.0))
    assert all(0 <= low[name] < high[name] <= 1 for name in low)


def test_a_bare_placement_has_no_source_and_no_sink() -> None:
    topology = micro()["linear"]
    bare = without_endpoints(topology, plan_for(MBA_SAM, topology, 50.0).placement)
    assert {name for held in bare.slots.values() for name, _ in held} == set(topology.names)


def test_the_search_finds_nothing_where_nothing_is_stable() -> None:
    assert highest_stable(lambda rate: False, 5.0, 50.0) == 0.0
    assert highest_stable(lambda rate: True, 5.0, 50.0) == 50.0


def test_what_does_not_vary_correlates_with_nothing() -> None:
    assert r_squared([1.0, 1.0], [1.0, 2.0]) == 0.0


@pytest.mark.slow
def test_the_whole_reproduction_compares_every_figure() -> None:
    told: list[str] = []
    found = list(model_driven.rows(told.append))
    assert told
    assert len({row.what for row in found}) == len(found)
    assert all(row.note for row in found if row.holds is False)
    by = {row.what: row for row in found}
    assert by["MBA reaches more than LSA under any mapping"].holds
    assert by["cases of 9 with extra slots: LSA+RSM and MBA+SAM"].holds
