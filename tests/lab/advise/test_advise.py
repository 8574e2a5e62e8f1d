"""Event logs of Spark, made here line by line so that the right answer is known, and one that Spark itself wrote."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluicegate.cli.app import run
from sluicegate.domain import Goal
from sluicegate.errors import BadInput
from sluicegate.lab.advise.advice import advise
from sluicegate.lab.advise.event_log import events
from sluicegate.lab.advise.logged import LoggedApplication, read_application
from sluicegate.lab.advise.walk import Load, fewest, fixed
from sluicegate.model.batch_fit import BatchLaw

OVERHEAD_S, PER_S, SLOTS, BEGAN_S = 0.6, 200.0, 16, 1_700_000_000.0
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"


def rate_at(at_s: float) -> float:
    """Rises to three times as much and falls back, over ten minutes."""
    return 600.0 - 300.0 * math.cos(2 * math.pi * at_s / 600.0)


def log_lines(seconds: float = 900.0, kafka: bool = False) -> list[str]:
    """A query on 16 slots under a load that triples and falls back: batches back to back by a known law."""
    lines = [
        {"Event": "SparkListenerApplicationStart", "App Name": "shop", "Timestamp": BEGAN_S * 1e3},
        *(
            {
                "Event": "SparkListenerExecutorAdded",
                "Timestamp": BEGAN_S * 1e3,
                "Executor ID": str(i),
                "Executor Info": {"Total Cores": 4},
            }
            for i in range(SLOTS // 4)
        ),
        {"Event": f"{_STREAMING}QueryStartedEvent", "id": "q-1", "name": "orders"},
    ]
    at_s, taken, arrived, batch = 1.0, 0, 0.0, 0
    before_s = 0.0
    while at_s < seconds:
        arrived += rate_at((before_s + at_s) / 2) * (at_s - before_s)
        rows, before_s = int(arrived) - taken, at_s
        work_s = rows / PER_S
        took_s = OVERHEAD_S + work_s / SLOTS
        lines += batch_lines(batch, at_s, took_s, rows, work_s, (taken, taken + rows) if kafka else None)
        taken, at_s, batch = taken + rows, at_s + took_s, batch + 1
    return [json.dumps(line, separators=(",", ":")) for line in lines]


def batch_lines(
    batch: int, at_s: float, took_s: float, rows: int, work_s: float, offsets: tuple[int, int] | None
) -> list[dict[str, object]]:
    source: dict[str, object] = {"numInputRows": rows, "startOffset": str(batch), "endOffset": str(batch + 1)}
    if offsets is not None:
        text = json.dumps({"orders": {"0": offsets[1]}})
        source = {"numInputRows": rows, "endOffset": text, "latestOffset": text}
    told = {"sql.streaming.queryId": "q-1", "streaming.sql.batchId": str(batch)}
    sums = [{"Name": "internal.metrics.executorRunTime", "Value": work_s * 1e3}]
    stamp = datetime.fromtimestamp(BEGAN_S + at_s, UTC).isoformat().replace("+00:00", "Z")
    return [
        {"Event": "SparkListenerJobStart", "Job ID": batch, "Stage IDs": [batch], "Properties": told},
        {"Event": "SparkListenerTaskEnd", "Stage ID": batch, "Task Info": {"Task ID": 7}},
        {
            "Event": "SparkListenerStageCompleted",
            "Stage Info": {"Stage ID": batch, "Number of Tasks": SLOTS, "Accumulables": sums},
        },
        {
            "Event": f"{_STREAMING}QueryProgressEvent",
            "progress": {
                "id": "q-1",
                "name": "orders",
                "batchId": batch,
                "timestamp": stamp,
                "durationMs": {"triggerExecution": took_s * 1e3, "addBatch": took_s * 900, "latestOffset": 0},
                "sources": [source],
                "stateOperators": [{"numRowsTotal": 40, "numShufflePartitions": 200, "commitTimeMs": 4000}],
            },
        },
    ]


def written(folder: Path, lines: list[str], name: str = "app-1") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> LoggedApplication:
    return read_application(events(path))


def test_a_clock_that_was_set_back_during_the_run_is_no_end_of_the_advice(tmp_path: Path) -> None:
    """The last batch then ends before the first began; so do parts of a log that are read in another order."""
    lines = log_lines(seconds=120)
    middle = next(i for i, line in enumerate(lines) if '"Job ID":60,' in line)
    (in_order,) = advise(read(written(tmp_path, lines)), Goal(p95_s=5.0))
    (turned,) = advise(read(written(tmp_path, [*lines[:6], *lines[middle:], *lines[6:middle]])), Goal(p95_s=5.0))
    assert turned.slot_seconds == pytest.approx(in_order.slot_seconds, rel=0.05)
    assert turned.law.service_per_s == pytest.approx(PER_S, rel=0.1)


def test_the_law_of_the_log_is_found_and_less_keeps_the_promise(tmp_path: Path) -> None:
    (one,) = advise(read(written(tmp_path, log_lines())), Goal(p95_s=5.0))
    assert one.law.service_per_s == pytest.approx(PER_S, rel=0.1)
    assert one.slots == pytest.approx(SLOTS, rel=0.05)
    assert one.kept == 1.0
    assert one.advised.kept is not None
    assert one.advised.kept >= 0.95
    assert one.saved > 0.5
    assert 3 <= one.advised.most <= SLOTS
    (stores,) = [reason for reason in one.reasons if "repartition" in reason]
    assert stores.startswith("200 state partitions hold 40 rows: `sluicegate repartition CHECKPOINT ")
    assert "saves about 0.2" in stores, "4 s of commits by 16 tasks at once, most of it saved"


def test_a_promise_that_no_size_keeps_is_said_to_be_out_of_reach(tmp_path: Path) -> None:
    (one,) = advise(read(written(tmp_path, log_lines(200.0))), Goal(p95_s=0.2))
    assert one.smallest_fixed is None
    assert any("no fixed size keeps the promise" in reason for reason in one.reasons)


def test_a_topics_offsets_say_when_rows_were_born(tmp_path: Path) -> None:
    (query,) = read(written(tmp_path, log_lines(100.0, kafka=True))).queries
    assert "newest offsets" in query.assumed
    batch = query.batches[20]
    born = [at for at, _ in batch.born.points]
    assert query.batches[19].admitted_s <= min(born) <= max(born) <= batch.admitted_s


def _zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


def _lz4(data: bytes) -> bytes:
    packed = pa.compress(data, "lz4_raw", asbytes=True)
    return struct.pack("<8sBiii", b"LZ4Block", 0x26, len(packed), len(data), 0) + packed


def _snappy(data: bytes) -> bytes:
    packed = pa.compress(data, "snappy", asbytes=True)
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(packed)) + packed


@pytest.mark.parametrize(("ending", "pack"), [("zstd", _zstd), ("lz4", _lz4), ("snappy", _snappy)])
def test_logs_packed_by_sparks_codecs_and_rolled_are_read(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    lines = log_lines(100.0)
    log = tmp_path / "eventlog_v2_app-1"
    log.mkdir()
    (log / "appstatus_app-1").touch()
    for number, part in enumerate((lines[:150], lines[150:]), start=1):
        (log / f"events_{number}_app-1.{ending}").write_bytes(pack(("\n".join(part) + "\n").encode()))
    plain = read(written(tmp_path, lines))
    assert read(log).queries == plain.queries


def test_files_that_the_history_server_has_compacted_and_not_yet_deleted_count_once(tmp_path: Path) -> None:
    lines = log_lines(100.0)
    log = tmp_path / "eventlog_v2_app-1"
    log.mkdir()
    for number, part in enumerate((lines[:50], lines[50:150], lines[150:]), start=1):
        written(log, part, f"events_{number}_app-1")
    written(log, lines[:150], "events_2_app-1.compact")
    assert read(log).queries == read(written(tmp_path, lines)).queries


def test_a_log_cut_off_in_a_line_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    text = "\n".join(log_lines(60.0))
    path = tmp_path / "app-1.inprogress"
    path.write_text(text[:-200], encoding="utf-8")
    assert len(read(path).queries[0].batches) > 10


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("app-1.zstd", b"no zstd at all", "not compressed by zstd"),
        ("app-1.lz4", b"x" * 40, "not compressed by lz4"),
        ("app-1.lzf", b"x" * 40, "lzf"),
        ("app-1", b"hello\nworld\n", "app-1 holds no event of Spark"),
        ("app-1", b"", "app-1 holds no event of Spark"),
        ("app-1", b'{"Event":"SparkListenerJobStart",\n', "damaged line"),
    ],
)
def test_what_is_no_event_log_is_refused_in_one_line(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadInput, match=why):
        read(tmp_path / name)


def test_the_command_prints_the_contracts_keys_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path, log_lines(200.0))
    assert run(["advise", str(log), "--slo", "p95=5s", "--json", "--html", str(tmp_path / "a.html")]) == 0
    (one,) = json.loads(capsys.readouterr().out)["queries"]
    assert {"name", "batches", "law", "slot_seconds", "slot_seconds_advised", "saved", "reasons"} <= set(one)
    assert set(one["law"]) == {"o_s", "c_s", "service_per_s"}
    assert "orders" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert run(["advise", str(tmp_path / "none")]) == 2


_SPARK = """
import sys, time
from pyspark.sql import SparkSession, functions as F
spark = (SparkSession.builder.master("local[2]").appName("logged").config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", "file://" + sys.argv[1])
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
query = rows.groupBy((F.col("value") % 7).alias("k")).count().writeStream.queryName("counts").outputMode("update")
query = query.format("noop").option("checkpointLocation", sys.argv[1] + "/checkpoint").start()
while query.lastProgress is None or query.lastProgress["batchId"] < 6:
    time.sleep(0.2)
query.stop()
spark.stop()
"""


@pytest.mark.slow
def test_a_log_that_spark_wrote_is_understood(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _SPARK, str(tmp_path)], check=True, capture_output=True, timeout=180)
    (log,) = (path for path in tmp_path.iterdir() if path.name != "checkpoint")
    (query,) = read(log).queries
    assert query.name == "counts"
    assert len(query.batches) >= 4
    assert all(batch.tasks >= 2 and batch.work_s for batch in query.batches)


_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"
Line = dict[str, Any]


def _texts(lines: list[Line]) -> list[str]:
    return [json.dumps(line, separators=(",", ":")) for line in lines]


def _head() -> list[Line]:
    return [json.loads(line) for line in log_lines(0.0)]


@pytest.mark.parametrize("rolled", [False, True])
def test_a_zstd_log_of_a_killed_driver_is_read_as_far_as_it_goes(tmp_path: Path, rolled: bool) -> None:
    """The frame of the file that was being written does not end."""
    lines = log_lines(200.0)
    log = tmp_path / "eventlog_v2_app-1"
    log.mkdir()
    kept = lines[:200] if rolled else []
    before, last = (
        pa.compress("".join(f"{line}\n" for line in part).encode(), "zstd", asbytes=True)
        for part in (kept, lines[len(kept) :])
    )
    (log / "events_1_app-1.zstd").write_bytes(before if rolled else b"")
    (log / "events_2_app-1.zstd.inprogress").write_bytes(last[:-5])
    (log / "events_3_app-1.zstd.inprogress").write_bytes(last[:5])
    whole = len(read(written(tmp_path, lines)).queries[0].batches)
    assert len(read(log).queries[0].batches) > whole // 2


@pytest.mark.parametrize("topic", [True, False])
def test_rows_after_an_idle_time_are_not_old(tmp_path: Path, topic: bool) -> None:
    """1,000 rows every ten minutes, taken at once: Spark logs idle events in between, and no progress."""
    lines = _head()
    for batch in range(6):
        lines += batch_lines(
            batch, 600.0 * batch, 1.0, 1000, 0.5, (1000 * batch, 1000 * (batch + 1)) if topic else None
        )
        for idle in range(1, 60):
            stamp = datetime.fromtimestamp(BEGAN_S + 600.0 * batch + 10 * idle, UTC).isoformat()
            lines.append({"Event": f"{_STREAMING}QueryIdleEvent", "id": "q-1", "runId": "r", "timestamp": stamp})
    (query,) = read(written(tmp_path, _texts(lines))).queries
    assert max(age_s for b in query.batches for age_s, _ in b.born.ages_s(b.ended_s)) < 15.0


def test_a_topic_that_was_empty_at_first_still_says_when_rows_were_born(tmp_path: Path) -> None:
    """60,000 rows come at once and are taken in a minute: most of them are late."""
    lines = [*_head(), *batch_lines(0, 0.0, 1.0, 0, 0.1, (0, 0))]
    for batch in range(1, 61):
        lines += batch_lines(batch, 1.0 * batch, 1.0, 1000, 0.5, (1000 * (batch - 1), 1000 * batch))
        lines[-1]["progress"]["sources"][0]["latestOffset"] = json.dumps({"orders": {"0": 60_000}})
    app = read(written(tmp_path, _texts(lines)))
    (one,) = advise(app, Goal(p95_s=5.0))
    assert "newest offsets" in app.queries[0].assumed
    assert one.kept is not None
    assert one.kept < 0.2


def test_a_query_that_ran_alone_held_all_slots(tmp_path: Path) -> None:
    """Two queries, one long after the other, share nothing."""
    first = log_lines(300.0)
    text = "\n".join(first[5:]).replace("q-1", "q-2").replace('"orders"', '"later"')
    later = [json.loads(line) for line in text.splitlines()]
    for line in later:
        if "progress" in line:
            at_s = datetime.fromisoformat(line["progress"]["timestamp"]).timestamp() + 3000
            line["progress"]["timestamp"] = datetime.fromtimestamp(at_s, UTC).isoformat()
    found = advise(read(written(tmp_path, [*first, *_texts(later)])), Goal(p95_s=5.0))
    assert [one.slots for one in found] == pytest.approx([SLOTS, SLOTS], rel=0.05)


def test_tasks_that_take_two_cores_have_half_the_slots(tmp_path: Path) -> None:
    lines = log_lines(100.0)
    told = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.task.cpus": "2"}}
    (one,) = advise(read(written(tmp_path, [*lines[:5], *_texts([told]), *lines[5:]])), Goal(p95_s=5.0))
    assert one.slots == pytest.approx(SLOTS / 2, rel=0.05)


def test_rows_that_wait_at_the_end_of_a_log_count_as_late() -> None:
    """A minute of forty times the load at the end: one slot would need ten minutes for it."""
    law, load = BatchLaw(0.5, 0.02, 100.0, 0.0, 9.0), Load((50.0,) * 600 + (1000.0,) * 60, 1.0)
    kept = fixed(law, load, 1, Goal(p95_s=5.0)).kept
    assert kept is not None
    assert kept < 0.4, "a third of the rows came before the burst"
    short = Load((50.0,) * 600 + (5000.0,), 1.0)
    found = fewest(law, short, Goal(p95_s=5.0), 64, lambda share: share >= 0.99)
    assert found is None or found > 8


@pytest.mark.parametrize("rows", [-5, 10**400])
def test_a_batch_of_impossible_rows_is_damage(tmp_path: Path, rows: int) -> None:
    lines = [*_head(), *(line for n in range(5) for line in batch_lines(n, 1.0 * n, 1.0, rows, 0.5, None))]
    with pytest.raises(BadInput, match="damaged"):
        advise(read(written(tmp_path, _texts(lines))), Goal(p95_s=5.0))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("app-1.lz4", struct.pack("<8sBiii", b"LZ4Block", 0x26, 10, 100, 0) + b"0" * 10),
        ("app-1.snappy", b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, 10) + b"\xff" * 10),
    ],
)
def test_a_block_that_cannot_be_unpacked_is_refused_in_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadInput, match="damaged"):
        read(tmp_path / name)
