"""docs/benchmarks.md is made of recorded results, and ratios that matter keep their floors."""

from __future__ import annotations

import statistics
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

import bench
import drs_speed
import mst_curves
import page
import results
import scale
import simulator_speed
from sections import SECTIONS, Column, Section
from sluicegate.policy.papers.drs import assign_processors
from sluicegate.policy.sharing import shared

FLOORS = {
    ("edges", "ratio"): 0.9,
    ("checksums", "ratio"): 0.93,
    ("plain", "throughput_ratio"): 0.9,
    ("rescale", "within_ratio"): 2.0,
    ("rescale", "ratio"): 1.0,
    ("demo", "kept"): 0.95,
    ("recovery", "ratio"): 1.0,
    ("redeployment", "ratio"): 1.0,
    ("kafka_edges", "ratio"): 0.25,
    ("fidelity", "in_order"): 0.9,
    ("simulator", "over_ciw"): 50.0,
    ("simulator", "over_simpy"): 20.0,
}
"""Medians of what was recorded last; well below what was measured, since machines are noisy."""
CEILINGS = {("attach_at_rest", "batch_ratio"): 1.08, ("attach_controller", "memory_growth"): 1.2}
"""The same for what may not grow."""


def test_the_page_is_what_the_results_make_it() -> None:
    assert page.text() == page.PAGE.read_text(encoding="utf-8"), "run `python benchmarks/page.py`"


def test_a_cell_shows_the_median_and_the_spread() -> None:
    section = Section("x", "X", "Words.", "x.py", (Column("app", "app"),), (Column("kept", "kept", "{:.0%}".format),))
    told = {"date": "2026-01-01T00:00:00", "commit": "abc", "machine": {"cores": 2, "memory_gib": 24, "load_1min": 0.1}}
    lines = [{**told, "versions": {"pyspark": "4"}, "app": "a", "kept": kept} for kept in (0.5, 0.9, 0.7)]
    assert "| a | 70% (50% to 90%) |" in page.rendered(section, lines)
    assert "Not measured yet" in page.rendered(section, [])


def test_every_part_has_a_section_and_a_script() -> None:
    assert {part.name for part in bench.PARTS} == {section.part for section in SECTIONS}
    assert all((Path(bench.__file__).parent / part.words[0]).exists() for part in bench.PARTS)


def test_sections_are_found_in_the_module_of_their_group() -> None:
    group = {part.name: part.group for part in bench.PARTS}
    modules = {name: import_module(f"sections.{name}") for name in group.values()}
    assert all(section in modules[group[section.part]].SECTIONS for section in SECTIONS)


def test_all_that_runs_without_a_name_is_said_to_take_about_an_hour() -> None:
    assert 60 <= sum(part.minutes for part in bench.chosen(None)) <= 85
    assert bench.chosen("all") == list(bench.PARTS)


def test_a_part_that_fails_keeps_what_was_measured_before_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(bench, "HERE", tmp_path)
    (tmp_path / "fails.py").write_text("raise SystemExit(1)")
    (tmp_path / "works.py").write_text("")
    results.record("broken", figure=1)
    parts = [bench.Part("broken", "g", 1.0, ("fails.py",)), bench.Part("works", "g", 7.0, ("works.py", "--fast"))]
    assert bench.run(parts, keep=False, repeats=2) == ["broken"]
    assert [line["figure"] for line in results.read("broken")] == [1]
    assert [line["name"] for line in results.read("took")] == ["works", "works"]
    assert bench.minutes(parts[0]) == 1.0
    assert bench.minutes(parts[1]) < 7.0
    assert "| works | `works.py --fast` | 0.0 |" in page.took(results.read("took"))


def test_an_unknown_part_is_refused_with_those_there_are() -> None:
    with pytest.raises(SystemExit, match=r"no benchmark nothing: there are planning"):
        bench.chosen("nothing")


@pytest.mark.parametrize(("part", "key"), FLOORS)
def test_recorded_ratios_keep_their_floors(part: str, key: str) -> None:
    if lines := results.read(part):
        assert statistics.median(line[key] for line in lines) >= FLOORS[part, key]


@pytest.mark.parametrize(("part", "key"), CEILINGS)
def test_recorded_ratios_stay_below_their_ceilings(part: str, key: str) -> None:
    if lines := results.read(part):
        assert statistics.median(line[key] for line in lines) <= CEILINGS[part, key]


def test_sluicegate_keeps_the_promise_of_the_live_table_for_no_more_than_a_fixed_peak() -> None:
    lines = [line for line in results.read("live") if line["policy"] == "sluicegate"]
    assert not lines or statistics.median(line["kept"] for line in lines) >= 0.95
    assert not lines or statistics.median(line["slots_vs_peak"] for line in lines) <= 1.1


def test_an_attached_application_keeps_its_promise_for_less_than_the_peak() -> None:
    lines = [line for line in results.read("attach_triple_load") if line["arm"] == "attached"]
    assert not lines or statistics.median(line["kept_share"] for line in lines) >= 0.95
    assert not lines or statistics.median(line["share_of_peak"] for line in lines) <= 0.85


def test_attached_nexmark_keeps_its_throughput() -> None:
    taken: dict[str, dict[str, list[float]]] = {"plain": {}, "attached": {}}
    for line in results.read("nexmark"):
        if line["turn"] and line["way"] in taken:
            taken[line["way"]].setdefault(line["query"], []).append(line["wall_s"])
    both = set(taken["plain"]) & set(taken["attached"])
    plain, attached = (sum(statistics.median(taken[way][query]) for query in both) for way in ("plain", "attached"))
    assert not both or plain / attached >= 0.93


def test_a_budget_is_shared_in_time_that_grows_with_the_applications_and_no_faster() -> None:
    def took_s(applications: int) -> float:
        claims = scale.claims_of(applications, 100 * applications)
        return drs_speed.seconds(partial(shared, claims, 100 * applications), 3)

    assert took_s(400) / took_s(100) <= 16  # 4 times as many: 4 log n/log n at best, 16 where it were quadratic


def test_every_recorded_run_was_exact() -> None:
    wrong = [
        (section.part, line)
        for section in SECTIONS
        for line in results.read(section.part)
        if line.get("exact") is False or line.get("wrong")
    ]
    assert wrong == []


def test_the_greedy_is_far_faster_than_the_literal_algorithm() -> None:
    stations = drs_speed.network(3, 192, 0.5)
    literal = drs_speed.seconds(partial(drs_speed.literal_algorithm_1, stations, 192), 2)
    assert literal / drs_speed.seconds(partial(assign_processors, stations, 192), 5) >= 20


def test_the_simulator_is_far_faster_than_simpy() -> None:
    network = simulator_speed.NETWORKS[0]
    simulator_speed.by_sluicegate(network, 10.0)
    ours, theirs = (
        events / took
        for events, took in (
            simulator_speed.by_sluicegate(network, 200_000 / network.arrivals_per_s),
            simulator_speed.by_simpy(network, 5_000 / network.arrivals_per_s),
        )
    )
    assert ours / theirs >= 10


def test_r2_of_a_model_is_held_against_r2_of_the_plan() -> None:
    """Two rates far apart give a high R^2 whatever is predicted."""
    verdict = next(section.verdict for section in SECTIONS if section.part == "model_driven")
    assert verdict is not None
    pairs = [(60.0, 60.0, 55.0), (60.0, 60.0, 60.0), (180.0, 132.0, 180.0), (180.0, 180.0, 160.0)]
    lines = [
        {"pair": "MBA+SAM", "planned_per_s": plan, "predicted_per_s": told, "reached_per_s": seen}
        for plan, told, seen in pairs
    ]
    said = verdict(lines)
    assert "it says nothing of the model" in said
    assert "the model foresees less than planned in 1 of the runs" in said
    lines[2]["reached_per_s"] = 130.0
    assert "it says nothing of the model" not in verdict(lines)


def test_an_application_measured_again_takes_the_place_of_what_was_known_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that did not settle this time takes the place of failures alone."""
    monkeypatch.setattr(results, "RESULTS", tmp_path)

    def known() -> list[tuple[str, float | None]]:
        return [(line["app"], line.get("off")) for line in results.read("mst")]

    mst_curves.recorded({"app": "vht_waiting", "problem": "did not settle"})
    mst_curves.recorded({"app": "grep_waiting", "off": 0.2})
    mst_curves.recorded({"app": "vht_waiting", "off": 0.1})
    assert known() == [("grep_waiting", 0.2), ("vht_waiting", 0.1)]
    mst_curves.recorded({"app": "grep_waiting", "off": 0.05})
    mst_curves.recorded({"app": "vht_waiting", "problem": "did not settle"})
    mst_curves.recorded({"app": "vht_waiting", "problem": "did not settle again"})
    assert known() == [("vht_waiting", 0.1), ("grep_waiting", 0.05), ("vht_waiting", None)]
