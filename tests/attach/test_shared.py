"""Two queries of one application want more than its slots: the greedy divides them and says so, rows are exact."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.attach.attached import attached_session, batches, until

from sluicegate.runlog.run_record import read_record

pytestmark = [pytest.mark.slow, pytest.mark.long]

SLOTS, ROWS, EVERY_S = 3, 40, 0.5
SLEEP_MS = 15
"""Each query's rows keep 80 x 15 ms = 1.2 slots of 3 waiting; each wants two for its promise."""


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    promises = {"spark.sluicegate.query.tight.slo": "p95=6s", "spark.sluicegate.query.loose.slo": "p95=8s"}
    controller = {"spark.sluicegate.controller": "process", "spark.sluicegate.python": sys.executable}
    settings = {**controller, "spark.sluicegate.interval_s": "1", **promises}
    session = attached_session(tmp_path / "record", settings, f"local[{SLOTS}]")
    yield session
    session.stop()


def test_two_queries_share_the_slots_by_the_greedy(spark: SparkSession, tmp_path: Path) -> None:
    record, folder, ended = tmp_path / "record", tmp_path / "in", threading.Event()
    folder.mkdir()
    files = 0

    def feed() -> None:
        nonlocal files
        while not ended.wait(EVERY_S):
            draft = tmp_path / "draft"
            draft.write_text("".join(json.dumps({"v": files * ROWS + row}) + "\n" for row in range(ROWS)))
            draft.rename(folder / f"{files:05d}.json")
            files += 1

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    queries = []
    for name in ("tight", "loose"):
        rows = spark.readStream.schema("v long").json(str(folder)).dropDuplicates(["v"])
        slow = rows.select("v", F.expr(f"reflect('java.lang.Thread', 'sleep', {SLEEP_MS}L)").alias("slept"))
        writer = slow.writeStream.format("memory").queryName(name)
        queries.append(writer.option("checkpointLocation", str(tmp_path / name)).start())

    def divided() -> bool:
        reasons = [reason for decision in read_record(record).decisions for reason in decision["reasons"]]
        return any(f"there are {SLOTS}" in reason for reason in reasons)

    try:
        assert until(lambda: len(batches(record, "tight")) >= 3 and len(batches(record, "loose")) >= 3, 120)
        assert until(divided, 180), read_record(record).last
        planned = json.loads((record / "plan.json").read_text())["operators"]
        assert sum(one["processors"] for one in planned.values()) <= SLOTS
        assert {name for name, one in planned.items() if one["processors"] >= 1} == {"tight", "loose"}
    finally:
        ended.set()
        thread.join()
        time.sleep(0.5)
        for query in queries:
            query.processAllAvailable()
            query.stop()
    for name in ("tight", "loose"):
        assert sorted(row["v"] for row in spark.table(name).collect()) == list(range(files * ROWS))
