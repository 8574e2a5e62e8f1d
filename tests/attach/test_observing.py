"""The load and the lag of a saturated query, from what the driver writes of it; no Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.files import FilesSeen
from sluicegate.spark.attach.observing import QueryObserver

TRUE_PER_S, TAKEN, EVERY_S = 450, 360, 2.0
"""Rows that come in a second; rows that a batch takes, and how long it takes for them: 180 rows a second."""


def saturated(folder: Path, source: dict[str, Any], looks: int = 10) -> QueryObserver:
    """Back-to-back batches that take less than what comes."""
    log = Layout(folder).batches("clicks")
    log.parent.mkdir(parents=True)
    with log.open("w") as out:
        for batch in range(looks):
            at_s = 100.0 + EVERY_S * batch
            line: dict[str, Any] = {
                "batch": batch,
                "started_s": at_s,
                "published_s": at_s + 1.9,
                "duration_s": EVERY_S,
                "rows": TAKEN,
            }
            line |= {"rows_out": TAKEN, "processors": 1, "entered_s": None, "born": [], "cold": False, "work_s": 1.0}
            line |= {"task_s": [], "tasks": 1, "slots": 1, "trigger_s": 0.0, "stages": []}
            one = {"name": "in", "kafka": False, "rows": TAKEN}
            there = {what: told(batch, at_s) for what, told in source.items()}
            out.write(json.dumps({**line, "sources": [{**one, **there}]}) + "\n")
    return QueryObserver.of(Layout(folder), "clicks")


def test_the_load_of_files_is_what_comes_though_batches_take_less(tmp_path: Path) -> None:
    files = {"files": lambda batch, at_s: [[100.0 + 0.4 * batch, 2], [100.2 + 0.4 * batch, 2]]}
    now_s = 120.0
    came = tuple((second, 5, 0) for second in range(80, 120))  # five files of 90 rows every second
    seen = saturated(tmp_path, files).observe(now_s, True, None, FilesSeen(now_s, 61, came))
    assert seen.arrivals_per_s == pytest.approx(TRUE_PER_S, rel=0.05)
    assert seen.backlog_rows == pytest.approx(61 * 90)
    assert seen.sojourn is not None
    assert seen.sojourn.mean_s > 5.0


def test_the_latency_of_a_query_that_is_idle_is_forgotten_after_a_while(tmp_path: Path) -> None:
    observer = saturated(tmp_path, {"files": lambda batch, at_s: [[90.0, 4]]})
    none = FilesSeen(0.0, 0, ())
    assert observer.observe(125.0, False, None, none).sojourn is not None
    assert observer.observe(184.0, False, None, none).sojourn is not None
    assert observer.observe(300.0, True, None, none).sojourn is not None, "a batch runs: its rows are not out yet"
    seen = observer.observe(302.0, False, None, none)
    assert seen.sojourn is None
    assert seen.operators["clicks"].sojourn_s is None


def test_a_controller_that_starts_again_takes_no_latency_of_hours_ago_for_the_present_one(tmp_path: Path) -> None:
    observer = saturated(tmp_path, {"files": lambda batch, at_s: [[90.0, 4]]}, looks=40)  # until the second 180
    seen = observer.observe(185.0, False, None, FilesSeen(185.0, 0, ()))
    assert len(observer.records) == 40
    out = [EVERY_S * batch + 1.9 for batch in range(40)]  # after the first report, from which files are dated
    late = [age for age in out if 100.0 + age >= 125.0]
    assert seen.sojourn is not None
    assert seen.sojourn.mean_s == pytest.approx(sum(late) / len(late), rel=0.05)
    later = saturated(tmp_path / "later", {"files": lambda batch, at_s: [[90.0, 4]]})
    assert later.observe(4000.0, False, None, FilesSeen(4000.0, 0, ())).sojourn is None
    assert later.ages == []


def test_files_that_grow_are_more_load_before_a_batch_has_read_one(tmp_path: Path) -> None:
    files = {"files": lambda batch, at_s: [[at_s, 4]], "bytes": lambda batch, at_s: 4 * 9_000}
    came = (
        *((second, 4, 4 * 9_000) for second in range(80, 110)),
        *((second, 4, 12 * 9_000) for second in range(110, 120)),
    )
    seen = saturated(tmp_path, files).observe(120.0, True, None, FilesSeen(120.0, 40, came, 40 * 27_000))
    assert seen.arrivals_per_s == pytest.approx(3 * TAKEN, rel=0.05)
    assert seen.backlog_rows == pytest.approx(3 * TAKEN * 10)


def test_few_files_make_the_window_longer_and_an_idle_source_has_no_load(tmp_path: Path) -> None:
    observer = saturated(tmp_path, {"files": lambda batch, at_s: [[at_s, 1]]})
    rare = FilesSeen(130.0, 0, ((20, 1, 9), (50, 1, 9), (80, 1, 9), (110, 1, 9)))
    assert observer.observe(130.0, False, None, rare).arrivals_per_s == pytest.approx(4 * TAKEN / 120, rel=0.05)
    assert observer.observe(131.0, False, None, FilesSeen(131.0, 0)).arrivals_per_s == 0.0


def test_the_load_of_kafka_is_what_the_topic_grows_by_though_batches_take_less(tmp_path: Path) -> None:
    topic = {
        "kafka": lambda batch, at_s: True,
        "start": lambda batch, at_s: {"t": {"0": TAKEN * batch}},
        "end": lambda batch, at_s: {"t": {"0": TAKEN * (batch + 1)}},
        "latest": lambda batch, at_s: {"t": {"0": TAKEN + int(TRUE_PER_S * (at_s - 100.0))}},
    }
    seen = saturated(tmp_path, topic).observe(120.0, True, None)
    assert seen.arrivals_per_s == pytest.approx(TRUE_PER_S, rel=0.05)
    assert seen.backlog_rows == pytest.approx(18.0 * TRUE_PER_S - 9 * TAKEN)


def test_files_in_a_folder_that_is_not_listed_are_load(tmp_path: Path) -> None:
    observer = saturated(tmp_path, {"files": lambda batch, at_s: [[at_s, 4]]})
    assert observer.observe(120.0, True, None, None).arrivals_per_s == pytest.approx(TAKEN / EVERY_S, rel=0.1)


def test_rows_that_wait_for_the_trigger_are_no_backlog(tmp_path: Path) -> None:
    observer = saturated(tmp_path, {"files": lambda batch, at_s: [[at_s, 4]]})
    came = tuple((second, 5, 0) for second in range(120))
    observer.observe(119.0, True, None, FilesSeen(119.0, 0, came))
    observer.last = {**(observer.last or {}), "trigger_s": 60.0}
    seen = observer.observe(120.0, True, None, FilesSeen(120.0, 290, came))
    assert seen.backlog_rows == pytest.approx(290 * 90)
    assert seen.operators["clicks"].queue_rows == 0.0
