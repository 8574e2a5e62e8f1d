"""Files of a run that are damaged: what is whole counts, and what cannot be read is one line."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.runlog.batch_log import BatchRecord, Tail, append_line, records_of
from sluicegate.runlog.failures import Failing, read_failures
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile, PlanInForce
from sluicegate.runlog.run_record import read_record

GOOD = PlanInForce(1, {"count": OperatorPlan(3)})


def absurd(**changed: object) -> bytes:
    whole = json.loads(GOOD.to_json())
    whole["operators"]["count"] |= changed
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe\x00",
        b"[" * 5000,
        b'{"version": 1e999, "operators": {}}',
        absurd(processors=0),
        absurd(processors=-3),
        absurd(processors=10**12),
        absurd(pace_s=float("nan")),
        absurd(pace_s=-1.0),
        absurd(most_rows=0),
        absurd(groups=[-1]),
        absurd(key_groups=-1),
        absurd(key_groups=10**9),
        absurd(most_behind=-1),
    ],
)
def test_with_a_plan_that_nobody_can_follow_the_last_good_one_stays_in_force(text: bytes, tmp_path: Path) -> None:
    plan = PlanFile(tmp_path / "plan.json")
    plan.write(GOOD)
    assert plan.read() == GOOD
    (tmp_path / "plan.json").write_bytes(text)
    assert plan.read() == GOOD


def test_a_damaged_line_of_a_batch_log_costs_that_batch_alone(tmp_path: Path) -> None:
    path = tmp_path / "batches.jsonl"
    for number in range(3):
        append_line(path, BatchRecord(number, 1.0, 2.0, 1.0, 7, 7, 1, None, Births(())).to_json())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\xff" * 40 + b"\n" + lines[1][:30] + b"\n" + lines[2])
    assert [record.batch for record in records_of(Tail(path).lines())] == [0, 2]


def run_in(folder: Path) -> Path:
    (folder / "pipeline.json").write_text('{"name": "shop", "nodes": [{"name": "count"}]}')
    (folder / "ticks.jsonl").write_text('{"at_s": 5.0, "running": {"count": 2}}\n')
    return folder


def test_damaged_lines_of_a_runs_log_are_left_out(tmp_path: Path) -> None:
    with (run_in(tmp_path) / "ticks.jsonl").open("ab") as log:
        log.write(b'[1]\n{"at_s": "x"}\n{"at_s": 6.0}\n{"at_s": 6.0, "running": 3}\n\xff\xff\n' + b"[" * 5000 + b"\n")
        log.write(b'{"at_s": 7.0, "running": {"count": 3}, "sojourn": {"mean_s": 1e999}}\n')
    assert [tick["at_s"] for tick in read_record(tmp_path).ticks] == [5.0]


@pytest.mark.parametrize("text", [b"\xff\xff", b"{", b"[" * 5000, b'{"bounds": {"mean": "soon"}}', b'{"pid": "me"}'])
def test_a_damaged_document_of_a_run_is_one_line_that_names_it(text: bytes, tmp_path: Path) -> None:
    (run_in(tmp_path) / "control.json").write_bytes(text)
    with pytest.raises(BadInput, match=r"control\.json is .*: remove it, or give another run's folder") as told:
        read_record(tmp_path)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("what", ['"writes": true', '"reads": 3', '"writes": [4]'])
def test_a_description_whose_streams_are_none_is_one_line(what: str, tmp_path: Path) -> None:
    (run_in(tmp_path) / "pipeline.json").write_text('{"name": "shop", "nodes": [{"name": "count", ' + what + "}]}")
    with pytest.raises(BadInput, match=r"pipeline\.json is damaged"):
        read_record(tmp_path)


@pytest.mark.parametrize(
    "changed", [{"since_s": None}, {"next_try_s": []}, {"batch": "x"}, {"tries": {}}, {"tries": math.inf}]
)
def test_failures_without_times_are_none(changed: dict[str, object], tmp_path: Path) -> None:
    one = asdict(Failing("count", 1, 1.0, 1, 1, "x", "service", 2.0))
    path = tmp_path / "failures.json"
    path.write_text(json.dumps({"operators": [one]}))
    assert [found.line(5.0) for found in read_failures(path)]
    path.write_text(json.dumps({"operators": [one | changed]}))
    assert read_failures(path) == ()


def test_a_pipe_in_place_of_a_file_keeps_no_reader_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    assert read_if_there(tmp_path / "plan.json") == ""
    assert PlanFile(tmp_path / "plan.json").read() == PlanInForce()
