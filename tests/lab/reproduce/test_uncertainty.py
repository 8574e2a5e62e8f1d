"""Workloads are scaled alike, given traces count, and the policies' order comes out on a day."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import BadInput
from sluicegate.lab.reproduce import uncertainty
from sluicegate.lab.reproduce.eight_workloads import TRACES, UNITS, WORKLOADS, WeekTrial, curve_top, fare, week_loads

VHT = next(workload for workload in WORKLOADS if not workload.scales)
FLIGHTS = WORKLOADS[-1]


def test_every_load_peaks_at_the_same_number_and_is_never_negative() -> None:
    loads, _ = week_loads((), steps=1500)
    assert set(loads) == set(TRACES)
    for load in loads.values():
        assert load.max() == pytest.approx(UNITS)
        assert load.min() > 0


def test_the_machines_of_a_workload_carry_its_peak() -> None:
    for workload in WORKLOADS:
        rates = {m: rate for m, rate, _ in workload.points()}
        assert rates[workload.machines] >= UNITS * (1 - 1e-9)
        assert all(rates[m] <= rates[m + 1] * (1 + 1e-9) for m in range(1, 128))


def test_a_trace_that_is_given_takes_the_generators_place(tmp_path: Path) -> None:
    path = tmp_path / "cup.csv"
    path.write_text("minute,rate\n" + "".join(f"{t},{100 + t % 7}\n" for t in range(200)))
    loads, origins = week_loads([path], steps=150)
    assert len(loads["World Cup 98"]) == 150
    assert origins["World Cup 98"].startswith("cup.csv")
    assert origins["tweets"].startswith("generated")


def test_a_trace_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="no such file"):
        week_loads([Path("nowhere.csv")])


def test_one_machine_is_enough_for_what_does_not_scale() -> None:
    loads, _ = week_loads((), steps=600)
    assert fare([WeekTrial(VHT, 0)], loads, workers=1)[0].qos == 1.0


def test_all_techniques_together_are_on_time_more_often_than_none() -> None:
    loads, _ = week_loads((), steps=1440)
    none, every = fare([WeekTrial(FLIGHTS, 0), WeekTrial(FLIGHTS, 7)], loads, workers=1)
    assert none.qos < every.qos
    assert none.cost < every.cost


def test_the_top_of_a_learned_curve_is_a_size_of_the_table() -> None:
    loads, _ = week_loads((), steps=600)
    assert all(1 <= curve_top(WeekTrial(workload, 5), loads) <= 256 for workload in WORKLOADS)


@pytest.mark.slow
def test_the_whole_reproduction_compares_every_figure() -> None:
    told: list[str] = []
    found = list(uncertainty.rows(told.append, steps=1440, workers=1))
    assert told
    assert len({row.what for row in found}) == len(found)
    assert all(row.note for row in found)
    # no trace was given, so its order cannot be compared
    assert [row.holds for row in found[:3]] == [None, None, None]
    assert sum(row.holds is True for row in found) > len(found) // 2
