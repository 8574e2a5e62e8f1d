"""The page of a run: everything that is on record is on it, and nothing that is missing breaks it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.report.recorded import BEGAN_S, attach_to, tick, write_run

from sluicegate.report.run_page import run_page
from sluicegate.report.topology_picture import topology_picture
from sluicegate.runlog.run_record import read_record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def test_every_picture_is_well_formed_on_a_desk_and_on_a_phone(folder: Path) -> None:
    pictures = re.findall(r"<svg.*?</svg>", run_page(read_record(folder)), re.DOTALL)
    assert len(pictures) == 2 * 6
    for picture in pictures:
        assert "nan" not in picture
        ElementTree.fromstring(picture)


def test_the_page_asks_nobody_for_anything(folder: Path) -> None:
    page = run_page(read_record(folder))
    addresses = set(re.findall(r"https?:[^\"' ]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of SVG, which nobody fetches"
    assert not re.search(r"src=|@import|url\(|fetch\(|href=", page)


def test_what_was_kept_what_it_cost_and_every_reason_are_on_it(folder: Path) -> None:
    page = run_page(read_record(folder))
    for words in ("96.7%", "57.1%", "exact", "60,300", "0 lost, 0 doubled", "2 &rarr; 5", "static peak: 8", "420 ms"):
        assert words in page
    assert "carry it &lt;well&gt;" in page


def test_a_run_that_goes_on_is_judged_by_its_looks(folder: Path) -> None:
    (folder / "outcome.json").unlink()
    page = run_page(read_record(folder))
    assert "of observations so far" in page
    assert "so far" in page


def test_of_an_attached_application_only_what_is_known_is_on_it(tmp_path: Path) -> None:
    page = run_page(read_record(attach_to(write_run(tmp_path / "dead", pid=2**30), active=False)))
    assert "so far" not in page
    tiles = re.findall(r'class="tile [^"]*"><b>(.*?)</b>(.*?)</div>', page)
    assert [what for _, what in tiles] == [
        "of observations with the promise kept",
        "processors on average",
        "mean latency",
        "moves of k while it ran",
    ]
    assert "-" not in [value for value, _ in tiles]


def test_moves_are_counted_as_the_outcome_counts_them(folder: Path) -> None:
    paced = {"number": 4, "at_s": BEGAN_S + 110.0, "rescales": [], "reasons": ["the load is low"]}
    with (folder / "decisions.jsonl").open("a") as log:
        log.write(json.dumps(paced) + "\n")
    assert "<b>3</b>moves of k" in run_page(read_record(folder))


def test_lines_look_as_their_key_says_also_where_a_quantile_is_promised(folder: Path) -> None:
    control = json.loads((folder / "control.json").read_text())
    (folder / "control.json").write_text(json.dumps({**control, "bounds": {"p95": 5.0}}))
    outcome = json.loads((folder / "outcome.json").read_text())
    (folder / "outcome.json").write_text(json.dumps({**outcome, "goal": {"p95": 5.0}}))
    latency = run_page(read_record(folder)).split("<h2>Latency</h2>")[1].split("</svg>")[0]
    assert re.findall(r'class="line (main|thin)"', latency) == ["main", "thin"]


def test_a_promise_of_a_quantile_has_its_late_ticks_on_the_line_of_that_quantile(folder: Path) -> None:
    control = json.loads((folder / "control.json").read_text())
    (folder / "outcome.json").unlink()
    for what in ("mean", "p95"):
        (folder / "control.json").write_text(json.dumps({**control, "bounds": {what: 4.0}}))
        latency = run_page(read_record(folder)).split("<h2>Latency</h2>")[1].split("</svg>")[0]
        lines = re.findall(r'class="line (?:main|thin)" points="(.*?)"', latency)
        mean, p95 = (set(points.split()) for points in lines)
        late = {f"{x},{y}" for x, y in re.findall(r'class="late" cx="(.*?)" cy="(.*?)"', latency)}
        assert late
        assert late <= (mean if what == "mean" else p95)


def test_a_run_of_hours_is_told_in_hours_and_one_of_weeks_has_few_times_below_its_pictures(folder: Path) -> None:
    told = json.loads((folder / "outcome.json").read_text())
    (folder / "outcome.json").write_text(json.dumps({**told, "seconds": 3725.0}))
    assert "1:02:05 h in all" in run_page(read_record(folder))
    (folder / "outcome.json").write_text(json.dumps({**told, "seconds": 95.0}))
    assert "1:35 min in all" in run_page(read_record(folder))
    with (folder / "ticks.jsonl").open("a") as log:
        log.write(json.dumps({**tick(120.0), "at_s": BEGAN_S + 40 * 86_400.0}) + "\n")
    load = run_page(read_record(folder)).split("<h2>Load</h2>")[1].split("</svg>")[0]
    assert len(re.findall(r'text-anchor="middle">\d+:00:00<', load)) in range(4, 11)


def test_the_axis_of_a_small_load_has_different_numbers(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "ticks.jsonl").read_text().splitlines()]
    small = [{**line, "arrivals_per_s": line["arrivals_per_s"] / 400.0, "forecast": None} for line in lines]
    (folder / "ticks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in small))
    load = run_page(read_record(folder)).split("<h2>Load</h2>")[1].split("</svg>")[0]
    numbers = re.findall(r'text-anchor="end">(.*?)<', load)
    assert numbers == ["0", "0.5", "1", "1.5", "2", "2.5"]


def test_a_folder_of_an_older_sluicegate_still_gives_a_page(folder: Path) -> None:
    for name in ("control.json", "what_if.json", "fleet.jsonl", "outcome.json"):
        (folder / name).unlink()
    lines = [json.loads(line) for line in (folder / "ticks.jsonl").read_text().splitlines()]
    old = ("at_s", "arrivals_per_s", "sojourn", "running", "operators")
    (folder / "ticks.jsonl").write_text("".join(json.dumps({k: t[k] for k in old}) + "\n" for t in lines))
    page = run_page(read_record(folder))
    assert "no promise" in page
    assert "What another load would need" not in page


def test_a_run_without_a_single_look_gives_a_page(folder: Path) -> None:
    for name in ("ticks.jsonl", "decisions.jsonl", "outcome.json"):
        (folder / name).unlink()
    assert "Nothing was moved" in run_page(read_record(folder))


def test_numbers_that_were_not_measured_are_dashes(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "ticks.jsonl").read_text().splitlines()]
    for line in lines:
        line["arrivals_per_s"] = line["sojourn"] = None
        line["operators"] = {name: dict.fromkeys(told) for name, told in line["operators"].items()}
    (folder / "ticks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "<td>-</td>" in run_page(read_record(folder))


def test_what_an_earlier_run_left_in_the_folder_is_not_told(folder: Path) -> None:
    control = json.loads((folder / "control.json").read_text())
    (folder / "control.json").write_text(json.dumps({**control, "started_s": BEGAN_S + 400.0}))
    record = read_record(folder)
    assert record.outcome == {}
    assert record.ticks == record.decisions == ()


def test_a_loop_is_drawn_with_every_operator_once_and_its_way_back_apart() -> None:
    def node(name: str, reads: list[str], writes: list[str]) -> dict[str, object]:
        return {"name": name, "reads": reads, "writes": writes, "stateful": False}

    nodes = [node("a", ["s", "again"], ["x"]), node("b", ["x"], ["again", "out"])]
    pipeline = {"name": "l", "sources": ["s"], "kept": ["out"], "nodes": nodes}
    for width in (920, 380):
        picture = topology_picture(pipeline, {"a": "k = 1"}, width)
        ElementTree.fromstring(picture)
        assert re.findall(r'class="(?:name|small)"[^>]*>([^<]+)', picture) == ["a", "k = 1", "b", "s", "out"]
        assert picture.count('class="stream back"') == 1
