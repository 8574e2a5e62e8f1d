from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.sample_run import SampleRun, write_run

from sluicegate.dashboard.metrics import metrics_text
from sluicegate.dashboard.record import Record
from sluicegate.dashboard.routes import decisions_before, run_document, series_document
from sluicegate.dashboard.watching import News, Watching
from sluicegate.errors import BadInput
from sluicegate.runlog.batch_log import append_line
from sluicegate.runlog.failures import Failing, write_failures


def read(folder: Path) -> Record:
    record = Record(folder)
    while record.look():
        pass
    return record


def test_a_run_is_read_whole_and_then_only_what_is_new(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=50)
    record, heard = read(tmp_path), list[str]()
    record.publish = lambda kind, document: heard.append(kind)
    assert len(record.history) == 50
    record.look()
    assert heard == []
    SampleRun().append(tmp_path, 50)
    record.look()
    assert heard == ["tick"]
    assert len(record.history) == 51


def test_a_file_put_aside_is_read_first_and_nothing_is_lost_when_it_is_put_aside_again(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=0)
    run = SampleRun()
    source = tmp_path / "elsewhere"
    source.mkdir()
    lines = [json.dumps(run.append(source, number)) for number in range(60)]
    for line in lines[:20]:
        append_line(tmp_path / "ticks.jsonl", line, most_bytes=15_000)
    record = read(tmp_path)
    before = len(record.history)
    for line in lines[20:]:
        append_line(tmp_path / "ticks.jsonl", line, most_bytes=15_000)
        record.look()
    assert len(record.history) == before + 40


def test_half_a_line_waits_until_it_is_whole(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=3)
    record = read(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    line = json.dumps(SampleRun().append(other, 3)) + "\n"
    with (tmp_path / "ticks.jsonl").open("a") as file:
        file.write(line[:40])
        file.flush()
        record.look()
        assert len(record.history) == 3
        file.write(line[40:])
    record.look()
    assert len(record.history) == 4


def test_lines_that_are_no_ticks_are_left_out(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=2)
    with (tmp_path / "ticks.jsonl").open("ab") as file:
        file.write(b'{"at_s": 3.8e9, "operators": [1], "running": "?", "nodes": [7]}\n')
        file.write(b'{"at_s": 3.9e9, "operators": {"a": 1}}\n')
        file.write(b'not json\n[1]\n{"at_s": null}\n\xff\xfe\n{"at_s": 4e9, "sojourn": {"mean_s": Infinity}}\n')
    record = read(tmp_path)
    assert len(record.history) == 5
    assert record.tick is not None
    json.dumps(run_document(record), allow_nan=False)
    assert b"sluicegate_slot_seconds_total" in metrics_text(record)


def test_a_folder_of_an_older_version_is_shown(tmp_path: Path) -> None:
    record = read(write_run(tmp_path, ticks=200, old=True))
    document = run_document(record)
    assert document["control"] is None
    assert document["what_if"] is None
    assert [decision["number"] for decision in document["decisions"]][-1] == 1
    columns = series_document(record, 0, 4e9, 100, None)["columns"]
    assert set(columns["executors"]) == {None}
    assert all(value is not None for value in columns["mean_s"])


def test_numbers_of_decisions_go_on_where_an_older_file_is_gone(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=1)
    decision: dict[str, Any] = {"number": 41, "at_s": 1.0, "running": {}, "rescales": [], "reasons": [], "refusals": []}
    (tmp_path / "decisions.jsonl").write_text(
        json.dumps(decision) + "\n" + json.dumps(decision | {"number": 42}) + "\n"
    )
    record = read(tmp_path)
    assert record.decisions_made == 42
    assert [one["number"] for one in decisions_before(record, 42)] == [41]


def test_slot_seconds_are_processors_times_time(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=0)
    ticks = [{"at_s": 10.0, "running": {"rank": 2}}, {"at_s": 14.0, "running": {"rank": 3}}, {"at_s": 16.0}]
    (tmp_path / "ticks.jsonl").write_text("".join(json.dumps(tick) + "\n" for tick in ticks))
    assert read(tmp_path).slot_seconds == 4 * 2 + 2 * 3


def test_of_a_run_that_was_resumed_the_earlier_outcome_is_not_shown_and_the_time_between_costs_nothing(
    tmp_path: Path,
) -> None:
    """The outcome stays in the folder until the run that goes on has one of its own."""
    write_run(tmp_path, ticks=0)
    ticks = [{"at_s": 10.0, "running": {"rank": 2}}, {"at_s": 14.0, "running": {"rank": 2}}]
    (tmp_path / "ticks.jsonl").write_text("".join(json.dumps(tick) + "\n" for tick in ticks))
    (tmp_path / "control.json").write_text(json.dumps({"started_s": 9.0}))
    (tmp_path / "outcome.json").write_text(json.dumps({"began_s": 10.0, "seconds": 5.0, "slo_kept": 1.0}))
    record, heard = read(tmp_path), list[str]()
    record.publish = lambda kind, document: heard.append(kind)
    assert run_document(record)["outcome"]["slo_kept"] == 1.0
    (tmp_path / "control.json").write_text(json.dumps({"started_s": 1000.0}))
    with (tmp_path / "ticks.jsonl").open("a") as log:
        log.write('{"at_s": 1002.0, "running": {"rank": 3}}\n{"at_s": 1003.0}\n')
    record.look()
    assert heard == ["control", "tick", "tick"]
    assert run_document(record)["outcome"] is None
    assert record.slot_seconds == 4 * 2 + 1 * 3
    again = read(tmp_path)
    assert run_document(again)["outcome"] is None
    assert again.slot_seconds == record.slot_seconds
    (tmp_path / "outcome.json").write_text(json.dumps({"began_s": 1001.0, "seconds": 5.0, "slo_kept": 0.5}))
    record.look()
    assert heard[3:] == ["outcome"]
    assert run_document(record)["outcome"]["slo_kept"] == 0.5


def test_an_attached_application_is_over_once_no_query_of_it_runs_or_its_driver_is_gone(tmp_path: Path) -> None:
    node = {"name": "clicks", "reads": ["in"], "writes": ["out"]}
    pipeline = {"name": "app", "attached": True, "sources": ["in"], "kept": ["out"]}
    lock = tmp_path / "lock"
    lock.touch()
    for active, alive in ((True, True), (True, False), (False, True)):
        (tmp_path / "pipeline.json").write_text(json.dumps({**pipeline, "nodes": [{**node, "active": active}]}))
        with holding(lock) if alive else nullcontext():
            assert run_document(read(tmp_path))["over"] is not (active and alive)
    write_run(tmp_path / "ours", ticks=1)
    assert run_document(read(tmp_path / "ours"))["over"] is False


@contextmanager
def holding(lock: Path) -> Iterator[None]:
    """Another process holds the lock, as a driver does."""
    code = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(lock)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        yield
        other.stdin.close()


def test_what_is_stacked_adds_up_to_the_processors_there_were(tmp_path: Path) -> None:
    record = read(write_run(tmp_path, ticks=450))
    document = series_document(record, 0, 4e9, 60, None)
    totals = [sum(values) for values in zip(*(one["processors"] for one in document["operators"]), strict=True)]
    assert totals == document["columns"]["processors"]
    assert len(document["at_s"]) <= 60


def test_a_folder_without_a_pipeline_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name the folder of a run"):
        Record(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "x", "nodes": [{}]}', '{"name": "x", "nodes": 3}'])
def test_a_broken_description_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "pipeline.json").write_text(text)
    with pytest.raises(BadInput, match="describes no pipeline"):
        Record(tmp_path)


def test_an_operator_that_fails_is_told_when_it_begins_and_when_it_is_over(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=3)
    record, heard = read(tmp_path), list[Any]()
    record.publish = lambda kind, document: heard.append((kind, document))
    failing = Failing("count", 17, 88.0, 5, 5, "TimeoutError: timed out", "service", 108.0)
    for now, metric in (([failing], True), ([], False)):
        write_failures(tmp_path / "failures.json", now)
        record.look()
        sample = b'sluicegate_operator_failing_since_seconds{fault="service",operator="count"} 88.0'
        assert (sample in metrics_text(record)) is metric
    assert [(kind, len(document["operators"])) for kind, document in heard] == [("failures", 1), ("failures", 0)]
    assert run_document(record)["failures"] == {"operators": []}


def test_a_query_that_comes_later_is_drawn_and_its_past_read(tmp_path: Path) -> None:
    node = {"reads": ["in"], "writes": ["out"], "stateful": True, "key_groups": 4}
    pipeline = {"name": "app", "attached": True, "sources": ["in"], "kept": ["out"]}
    (tmp_path / "pipeline.json").write_text(json.dumps({**pipeline, "nodes": []}))
    record = Record(tmp_path)
    assert record.look() is False
    ticks = [{"at_s": 1.0, "running": {"first": 2}}, {"at_s": 2.0, "running": {"first": 2, "second": 3}}]
    (tmp_path / "ticks.jsonl").write_text("".join(f"{json.dumps(tick)}\n" for tick in ticks))
    for names in (["first"], ["first", "second"]):
        nodes = [{**node, "name": name} for name in names]
        (tmp_path / "pipeline.json").write_text(json.dumps({**pipeline, "nodes": nodes}))
        record.look()
        assert record.history.operators == tuple(names)
    assert record.history.between(0.0, 9.0).of_operator("second", "processors").tolist() == [0.0, 3.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ticks.jsonl", '{"at_s": 1.0, "running": {"rank": 1}, "nodes": 5}\n'),
        ("pipeline.json", '{"nodes": [{"name": "other"}]}'),
    ],
)
def test_a_damaged_entry_does_not_end_the_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    node = {"name": "rank", "reads": ["s"], "writes": ["rank"]}
    (tmp_path / "pipeline.json").write_text(json.dumps({"name": "p", "sources": ["s"], "nodes": [node], "kept": []}))
    record, looks = Record(tmp_path), list[bool]()
    look = record.look

    def counted() -> bool:
        looks.append(look())
        return looks[-1]

    monkeypatch.setattr(record, "look", counted)

    async def until(done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(0.02)

    async def shown() -> None:
        async with Watching(record, News()).running():
            (tmp_path / name).write_text(text)
            before = len(looks)
            await until(lambda: len(looks) >= before + 2)
            with (tmp_path / "ticks.jsonl").open("a") as file:
                file.write('{"at_s": 2.0, "running": {"rank": 3}}\n')
            await until(lambda: record.tick is not None and record.tick["at_s"] == 2.0)

    asyncio.run(shown())


def test_reasons_and_refusals_are_in_plain_words(tmp_path: Path) -> None:
    folder = write_run(tmp_path, ticks=3)
    refused = [{"rule": "promise", "why": "3 processors: p95 2.4 s (goal 1.9 s); 10% in reserve, model bias 1.38"}, 7]
    decision = {"at_s": 5.0, "rescales": [], "reasons": ["a: load: 5 rows/s", 7], "refusals": refused}
    (folder / "decisions.jsonl").write_text(json.dumps(decision) + "\n")
    record = read(folder)
    (told,) = record.decisions
    assert told["reasons"] == ["a: planned for a load of 5 rows/s", 7]
    assert "(planned to stay below 1.9 s); 10% of the promise is kept" in told["refusals"][0]["why"]
    with (folder / "ticks.jsonl").open("a") as ticks:
        ticks.write(json.dumps({"at_s": 5e9, "running": {}, "refusals": refused}) + "\n")
    assert "(planned to stay below 1.9 s)" in run_document(read(folder))["tick"]["refusals"][0]["why"]
