"""`sluicegate run app.py` on a topic that never dries up: ended by its time and by Ctrl-C, side by side, both exact."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.ctrl_c import hears_ctrl_c
from tests.kafka.producing import Numbers

from sluicegate.lab.chaos.broker import Broker
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import last_batch, last_committed
from sluicegate.spark.kafka.offsets import planned

pytestmark = pytest.mark.slow
SLUICEGATE = str(Path(sys.executable).parent / "sluicegate")
PARTITIONS, PER_S, SECONDS = 2, 300, 12
ENDS_WITHIN_S = 45.0
"""Of its end: the batch that runs (about 10 s of a backlog at most), the last rows, Spark's own stop; 2 busy cores."""
APP = """
from sluicegate import Pipeline

def events(spark):
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{address}")
    return kafka.option("subscribe", "{topic}").option("startingOffsets", "earliest").load()

pipeline = Pipeline("clicks")
rows = pipeline.source("events", stream=events)
parse = "CAST(split(CAST(value AS string), ' ')[0] AS long) AS id"
pipeline.sink("ids", pipeline.operator("parse", lambda frame: frame.selectExpr(parse).where("id % 10 > 0"), rows))
"""
NAME = "events+parse"


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that was ended while rows went on coming."""

    folder: Path
    code: int
    late_s: float
    out: str
    err: str

    @property
    def document(self) -> dict[str, object]:
        return dict(json.loads(self.out))


@pytest.fixture(scope="module")
def numbers(kafka: Broker) -> Numbers:
    return Numbers(kafka, kafka.topic(PARTITIONS), PARTITIONS)


@pytest.fixture(scope="module")
def runs(kafka: Broker, numbers: Numbers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """Two runs of one topic at the same time; rows come until both have ended."""
    place = tmp_path_factory.mktemp("runs")
    app = place / "app.py"
    app.write_text(APP.format(address=kafka.address, topic=numbers.topic))
    numbers.send(2_000)
    numbers.steadily(PER_S)
    timed = _begin(app, place / "timed", str(SECONDS))
    stopped = _begin(app, place / "stopped", "600")
    try:
        _wait_for_batches(place / "stopped", stopped)
        asked_s = time.time()
        os.killpg(stopped.pid, signal.SIGINT)
        return {"stopped": _ended(place / "stopped", stopped, asked_s), "timed": _ended(place / "timed", timed, None)}
    finally:
        numbers.end()
        for process in (timed, stopped):
            if process.poll() is None:
                process.kill()


def _begin(app: Path, folder: Path, seconds: str) -> subprocess.Popen[str]:
    command = [SLUICEGATE, "run", str(app), "--seconds", seconds, "--slo", "mean=3s"]
    return subprocess.Popen(
        [*command, "--folder", str(folder), "--master", "local[4]", "--json", "--conf", "spark.driver.memory=1g"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_ctrl_c,
        process_group=0,
    )


def _wait_for_batches(folder: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while (last_committed(Layout(folder).checkpoint(NAME)) or 0) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.2)


def _ended(folder: Path, process: subprocess.Popen[str], asked_s: float | None) -> Ended:
    out, err = process.communicate(timeout=150)
    ended_s = time.time()
    began_s = float(json.loads(out)["began_s"]) if out.strip() else 0.0
    return Ended(folder, process.returncode, ended_s - (asked_s or began_s + SECONDS), out, err)


@pytest.mark.parametrize("how", ["timed", "stopped"])
def test_a_run_on_an_endless_topic_ends_soon_after_it_should(runs: dict[str, Ended], how: str) -> None:
    assert runs[how].code == {"timed": 0, "stopped": 130}[how], runs[how].err
    assert runs[how].late_s < ENDS_WITHIN_S


@pytest.mark.parametrize("how", ["timed", "stopped"])
def test_every_row_up_to_the_admitted_offsets_is_in_the_sink_once(
    runs: dict[str, Ended], numbers: Numbers, how: str
) -> None:
    layout = Layout(runs[how].folder)
    checkpoint = layout.checkpoint(NAME)
    admitted = last_batch(checkpoint)
    assert admitted is not None
    assert admitted == last_committed(checkpoint), "what was admitted was finished"
    taken = {int(key.rsplit("/", 1)[1]): end for key, end in planned(checkpoint, admitted).items()}
    expected = sorted(offset * PARTITIONS + p for p, end in taken.items() for offset in range(end))
    assert sum(taken.values()) < numbers.sent, "the topic went on"
    assert _ids(layout) == [number for number in expected if number % 10]


@pytest.mark.parametrize("how", ["timed", "stopped"])
def test_rows_are_counted_as_they_were_read(runs: dict[str, Ended], how: str) -> None:
    checkpoint = Layout(runs[how].folder).checkpoint(NAME)
    assert runs[how].document["rows_in"] == sum(planned(checkpoint, last_batch(checkpoint) or 0).values())


def test_a_run_is_never_planned_beyond_the_partitions(runs: dict[str, Ended]) -> None:
    moves = [r for d in runs["timed"].document["decisions"] for r in d["rescales"]]  # type: ignore[attr-defined]
    assert all(move["want"] <= PARTITIONS for move in moves)


def _ids(layout: Layout) -> list[int]:
    edge = FolderEdge(layout.edge("parse"))
    files = [edge.folder / file.path for n in edge.numbers() for file in edge.need(n).files]
    return sorted(
        value for path in files for value in pq.read_table(path).column("id").to_pylist() if value is not None
    )
