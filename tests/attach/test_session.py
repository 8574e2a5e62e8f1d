"""A session that has the jar is attached, detached, given plans and faults: its queries go on and stay exact.

Two executors of one core; the session is built without plugin and extension, as one that was there before us.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.request import urlopen

import pytest
from pyspark import InheritableThread
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from tests.attach.attached import MOVES, PARTITIONS, batches, drop_plan, put_plan, until, write_plan
from tests.attach.query_kinds import BATCHES, COUNTS, LEFT, Streams, told, write_input

import sluicegate
from sluicegate.cli.app import run as sluicegate_command
from sluicegate.errors import BadInput
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.run_record import read_record
from sluicegate.spark.attach.application import Application
from sluicegate.spark.attach.controller import run
from sluicegate.spark.attach.options import Options, plain_name
from sluicegate.spark.session import spark_session

pytestmark = pytest.mark.slow

NOWHERE = "/dev/null/not-a-folder"
ODD_NAME = "заказы/1 падают " + 30 * "long "


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = spark_session(
        "local-cluster[2,1,512]",
        {
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.plugins": "",
            "spark.sluicegate.controller": "none",
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            "spark.locality.wait": "10s",
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
        },
        "a session",
    )
    context: Any = session.sparkContext._jsc
    assert until(lambda: context.sc().getExecutorMemoryStatus().size() == 3, 180), "the driver and both executors"
    yield session
    session.stop()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("source")
    write_input(base / "left", LEFT)
    return base


@pytest.fixture
def record(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "record"
    yield folder
    sluicegate.detach(spark)
    settings(spark).remove("spark.sluicegate.test.faults")


def settings(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc().conf()


def counting(spark: SparkSession, source: Path, name: str, folder: Path, every_s: int | None = None) -> StreamingQuery:
    counts = Streams(spark, source).left().groupBy("k").agg(F.count("*").alias("n"))
    writer = counts.writeStream.outputMode("update").format("memory").queryName(name)
    writer = writer.option("checkpointLocation", str(folder / name))
    return (
        writer.trigger(processingTime=f"{every_s} seconds") if every_s else writer.trigger(availableNow=True)
    ).start()


def counted(spark: SparkSession, name: str, *queries: StreamingQuery) -> bool:
    for query in queries:
        assert query.awaitTermination(120)
    return told(spark.table(name).collect()) == COUNTS


def test_attached_from_python_tasks_move_and_state_stays_on_its_executor(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    assert sluicegate.attach(spark, slo="p95=10s", folder=str(record)) == str(record)
    write_plan(record, {"four": {"processors": 4}, "moved": {"processors": 1, "by_batch": MOVES}})
    four, moved = counting(spark, source, "four", tmp_path), counting(spark, source, "moved", tmp_path)
    assert counted(spark, "four", four)
    assert counted(spark, "moved", moved)
    assert until(lambda: len(batches(record, "moved")) >= BATCHES and len(batches(record, "four")) >= BATCHES)
    assert {batch["tasks"] for batch in batches(record, "four")} == {4}
    tasks = [batch["tasks"] for batch in batches(record, "moved")]
    assert tasks == [MOVES[number % len(MOVES)] for number in range(len(tasks))]
    places = [batch["places"] for batch in batches(record, "four")]
    assert all(place["executors"] == 2 for place in places)
    # the first batch finds nothing loaded; after that nothing has a reason to move
    assert [place["kept"] for place in places[2:]] == [PARTITIONS] * len(places[2:])


def test_plans_that_were_moved_can_be_copied_and_written_as_json_as_tools_of_others_do(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    write_plan(record, {"copied": {"processors": 2}})
    query: Any = counting(spark, source, "copied", tmp_path)
    assert counted(spark, "copied", query)
    plan = query._jsq.streamingQuery().lastExecution().executedPlan()
    assert "SluicegateFewerTasks copied, 2, true" in plan.clone().treeString()
    assert "sluicegate.attach.FewerTasks" in plan.toJSON()


def test_a_continuous_query_has_all_its_tasks_though_an_earlier_one_of_its_name_had_fewer(
    spark: SparkSession, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    write_plan(record, {"endless": {"processors": 1, "stages": {"scan": 1}, "spread": 3}})
    rows = spark.readStream.format("rate").option("rowsPerSecond", 20).option("numPartitions", 2).load()
    writer = rows.select("value").writeStream.format("memory").queryName("endless").trigger(continuous="1 second")
    query = writer.option("checkpointLocation", str(tmp_path / "endless")).start()
    try:  # its tasks have all slots: rows of a memory sink are read without any
        assert until(lambda: len(spark.table("endless").collect()) >= 60 or not query.isActive)
        assert query.isActive, query.exception()
    finally:
        query.stop()
    values = [row["value"] for row in spark.table("endless").collect()]
    for partition in range(2):
        mine = sorted(value for value in values if value % 2 == partition)
        assert len(mine) > 10
        assert mine == list(range(partition, partition + 2 * len(mine), 2))


def test_a_query_started_again_and_again_for_what_is_available_follows_the_plan_each_time(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    folder, rows = tmp_path / "left", list[Row]()
    folder.mkdir()
    for number, file in enumerate(sorted((source / "left").iterdir())):
        write_plan(record, {"again": {"processors": MOVES[number]}})
        (folder / file.name).write_bytes(file.read_bytes())
        counts = Streams(spark, tmp_path).left().groupBy("k").agg(F.count("*").alias("n"))
        writer = counts.writeStream.outputMode("update").queryName("again").trigger(availableNow=True)
        writer = writer.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        assert writer.option("checkpointLocation", str(tmp_path / "again")).start().awaitTermination(120)
    assert told(rows) == COUNTS
    assert until(lambda: len(batches(record, "again")) >= BATCHES)
    assert [batch["tasks"] for batch in batches(record, "again")] == list(MOVES[:BATCHES])


def test_jobs_of_a_thread_that_foreach_batch_keeps_count_for_the_batch_in_which_they_run(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    asked, answers, rows, threads = Queue[int](), Queue[int](), list[Row](), list[InheritableThread]()

    def work() -> None:
        while (wanted := asked.get()) >= 0:
            answers.put(spark.range(0, 100 + wanted, 1, 7).count())

    def write(batch: DataFrame, number: int) -> None:
        if not threads:
            threads.append(InheritableThread(target=work, daemon=True))  # as a pool of Java or Scala would
            threads[0].start()
        rows.extend(batch.collect())
        asked.put(number)
        assert answers.get() == 100 + number

    counts = Streams(spark, source).left().groupBy("k").agg(F.count("*").alias("n"))
    writer = counts.writeStream.outputMode("update").queryName("pooled").foreachBatch(write).trigger(availableNow=True)
    assert writer.option("checkpointLocation", str(tmp_path / "pooled")).start().awaitTermination(120)
    asked.put(-1)
    assert told(rows) == COUNTS
    assert until(lambda: len(batches(record, "pooled")) >= BATCHES)
    found = [[stage["tasks"] for stage in batch["stages"]].count(7) for batch in batches(record, "pooled")]
    assert found == [1] * len(found)


def test_an_executor_request_that_is_not_answered_keeps_nothing_else_waiting(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "lever=600000:1")
    sluicegate.attach(spark, slo="p95=10s", executors=(1, 2), folder=str(record))
    write_plan(record, {"unanswered": {"processors": 2}}, executors=2)
    assert counted(spark, "unanswered", counting(spark, source, "unanswered", tmp_path))
    assert until(lambda: len(batches(record, "unanswered")) >= BATCHES)
    assert {batch["tasks"] for batch in batches(record, "unanswered")} == {2}
    sluicegate.detach(spark)
    assert not (record / "said.jsonl").exists(), "that a detach ends the wait is no trouble"


def test_the_rate_source_has_a_short_name_by_which_its_rows_are_dated(
    spark: SparkSession, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    rows = spark.readStream.format("rate").option("rowsPerSecond", 7).load()
    query = rows.writeStream.format("noop").queryName("rated").option("checkpointLocation", str(tmp_path / "c")).start()
    assert until(lambda: len(batches(record, "rated")) > 1, 120)
    query.stop()
    (source,) = batches(record, "rated")[-1]["sources"]
    assert source["name"] == "RateStream rowsPerSecond=7"
    assert isinstance(source["end"], int)


def test_the_record_is_closed_to_other_users_also_where_the_folder_above_is_open(
    spark: SparkSession, record: Path
) -> None:
    record.parent.chmod(0o755)
    sluicegate.attach(spark, slo="p95=10s", folder=str(record / "inner"))
    assert (record.stat().st_mode & 0o077, (record / "inner").stat().st_mode & 0o077) == (0, 0)
    assert record.parent.stat().st_mode & 0o077 == 0o055


def test_a_query_may_be_named_after_secrets_and_keeps_its_promise_while_secrets_stay_out_of_the_record(
    spark: SparkSession, record: Path
) -> None:
    given = {"query.tokens.slo": "mean=2s", "web.password": "hunter2", "api.key": "hunter2"}
    for key, value in given.items():
        settings(spark).set(f"spark.sluicegate.{key}", value)
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    for key in given:
        settings(spark).remove(f"spark.sluicegate.{key}")
    assert Application.read(Layout(record)).options.own_slo == {"tokens": ("mean=2s",)}
    assert "hunter2" not in (record / "application.json").read_text()


def test_files_of_a_record_in_a_folder_that_others_can_read_are_the_owners_alone(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    record.mkdir()
    record.chmod(0o755)
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    assert counted(spark, "closed", counting(spark, source, "closed", tmp_path))
    assert until(lambda: bool(batches(record, "closed")) and (record / "nodes.json").exists())
    sluicegate.detach(spark)
    made = list(record.rglob("*"))
    assert {"lock", "application.json", "pipeline.json", "batches.jsonl"} <= {path.name for path in made}
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_without_a_plan_and_after_detaching_spark_is_as_it_is(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    write_plan(record, {"before": {"processors": 2}, "between": {"processors": 2}})
    assert counted(spark, "before", counting(spark, source, "before", tmp_path))
    drop_plan(record)
    assert counted(spark, "between", counting(spark, source, "between", tmp_path))
    assert until(lambda: len(batches(record, "between")) >= BATCHES)
    assert {batch["tasks"] for batch in batches(record, "before")} == {2}
    assert {batch["tasks"] for batch in batches(record, "between")} == {PARTITIONS}
    sluicegate.detach(spark)
    assert counted(spark, "after", counting(spark, source, "after", tmp_path))
    assert batches(record, "after") == []


def test_a_query_that_fails_while_attached_and_is_started_again_is_exact(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    name = plain_name(ODD_NAME)
    write_plan(record, {name: {"processors": 2}})
    rows, failures = dict[int, list[Row]](), [2]

    def write(batch: DataFrame, number: int) -> None:
        rows[number] = batch.collect()
        if number in failures:
            failures.remove(number)
            raise ConnectionError("the user's own service is down")

    def started() -> StreamingQuery:
        counted = Streams(spark, source).left().groupBy("k").agg(F.count("*").alias("n"))
        writer = counted.writeStream.outputMode("update").queryName(ODD_NAME).foreachBatch(write)
        return writer.option("checkpointLocation", str(tmp_path / "failing")).trigger(availableNow=True).start()

    with pytest.raises(StreamingQueryException, match="own service is down"):
        started().awaitTermination(120)
    assert until(lambda: not _described(record, name)["active"])
    assert _described(record, name)["given"] == ODD_NAME
    assert _described(record, name)["checkpoint"] == str(tmp_path / "failing")
    assert started().awaitTermination(120)
    assert told([row for batch in rows.values() for row in batch]) == COUNTS
    assert until(lambda: len(batches(record, name)) >= BATCHES)
    assert {batch["tasks"] for batch in batches(record, name)} == {2}


def _described(record: Path, query: str) -> dict[str, Any]:
    nodes = json.loads((record / "pipeline.json").read_text())["nodes"]
    return next(node for node in nodes if node["name"] == query)


_OFF_THE_QUERY = (
    "plan",
    "executors",
    "controller",
    "nodes",
    "lever",
    "sources",
    "pace",
    "split",
    "files",
    "listing",
    "executor",
    "stage",
    "query",
    "tab",
    "topics",
    "close",
)


@pytest.mark.parametrize(
    "faults",
    [
        "rule=throw",
        "node=throw",
        "places=throw",
        "rule=700,places=700,node=700",
        ",".join(f"{callback}=throw" for callback in (*_OFF_THE_QUERY, "listener")),
        ",".join(f"{callback}=1500" for callback in _OFF_THE_QUERY),
    ],
    ids=["rule", "node", "places", "slow on the query", "all others", "all others slow"],
)
def test_a_fault_of_ours_neither_fails_nor_holds_up_the_query(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path, faults: str
) -> None:
    settings(spark).set("spark.sluicegate.test.faults", faults)
    sluicegate.attach(spark, slo="p95=10s", folder=str(record), pace=True)
    plan = {"faulty": {"processors": 1, "by_batch": MOVES, "pace_s": 0.1, "spread": 2}}
    (put_plan if "plan=" in faults else write_plan)(record, plan)  # one that cannot be read is never in force
    query = counting(spark, source, "faulty", tmp_path)
    assert counted(spark, "faulty", query)
    assert query.exception() is None
    # slow code on the query's own thread is given up after two slow calls each: three callbacks, 0.7 s, twice
    progress = [p.durationMs["addBatch"] + p.durationMs.get("queryPlanning", 0) for p in query.recentProgress[-2:]]
    assert all(took_ms < 20_000 for took_ms in progress)


def test_a_fault_on_the_plans_of_two_queries_leaves_the_third_its_tasks(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "rule=throw:1,node=throw:1")
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    names = ("by_rule", "by_node", "sound")
    write_plan(record, {name: {"processors": 2} for name in names})
    for name in names:
        assert counted(spark, name, counting(spark, source, name, tmp_path))
    assert until(lambda: all(len(batches(record, name)) >= BATCHES for name in names))
    tasks = {name: {batch["tasks"] for batch in batches(record, name)} for name in names}
    assert tasks == {"by_rule": {PARTITIONS}, "by_node": {PARTITIONS}, "sound": {2}}
    said = (record / "said.jsonl").read_text().splitlines()
    assert [f"tasks of {name} given up" in line for name, line in zip(names, said, strict=False)] == [True, True]
    assert "a plan that moved it failed" in _described(record, "by_rule")["left"]
    assert _described(record, "sound")["left"] is None


def test_a_query_that_fails_because_its_tasks_are_moved_is_left_to_spark_when_it_is_started_again(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    session, rows = spark.newSession(), dict[int, list[Row]]()
    session.conf.set("spark.sql.shuffle.partitions", "2")  # a barrier stage has a task for each, all at once
    write_plan(record, {"barrier": {"processors": 1}})

    def write(batch: DataFrame, number: int) -> None:
        rows[number] = batch.rdd.barrier().mapPartitions(lambda part: part).collect()

    def started() -> StreamingQuery:
        counts = Streams(session, source).left().groupBy("k").agg(F.count("*").alias("n"))
        writer = counts.writeStream.outputMode("update").queryName("barrier").foreachBatch(write)
        return writer.option("checkpointLocation", str(tmp_path / "barrier")).trigger(availableNow=True).start()

    with pytest.raises(StreamingQueryException, match="SPARK-24821"):
        started().awaitTermination(120)
    assert until(lambda: "SPARK-24821" in (_described(record, "barrier")["left"] or ""))
    assert started().awaitTermination(120)
    assert told([row for batch in rows.values() for row in batch]) == COUNTS


@pytest.mark.long
def test_a_query_whose_end_no_event_told_does_not_count_as_one_that_runs(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "query=throw")
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    write_plan(record, {"unheard": {"processors": 2}})
    assert counted(spark, "unheard", counting(spark, source, "unheard", tmp_path))

    def ended() -> bool:
        nodes = json.loads((record / "pipeline.json").read_text())["nodes"]
        return [node["active"] for node in nodes if node["name"] == "unheard"] == [False]

    assert until(ended)


def test_a_listing_that_fails_is_tried_again(spark: SparkSession, source: Path, record: Path, tmp_path: Path) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "listing=throw:2")
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    query = counting(spark, source, "listed", tmp_path, every_s=1)

    def listed() -> bool:
        return "listed" in json.loads(read_if_there(record / "nodes.json") or "{}").get("files", {})

    try:
        assert until(listed)
    finally:
        query.stop()


def test_a_fault_of_the_tab_s_page_is_said_on_it(spark: SparkSession, record: Path) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "tab-page=throw")
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    page = urlopen(f"{spark.sparkContext.uiWebUrl}/sluicegate/", timeout=30).read().decode()
    assert "the record cannot be read" in page


def test_what_an_attach_before_allowed_is_not_allowed_for_the_next(spark: SparkSession, record: Path) -> None:
    sluicegate.attach(spark, observe=True, executors=(1, 2), pace=True, split=True, folder=str(record))
    sluicegate.detach(spark)
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    assert Application.read(Layout(record)).options == Options(("p95=10s",), folder=str(record))


def test_attached_again_it_goes_on_with_what_is_asked_now(spark: SparkSession, record: Path) -> None:
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    sluicegate.attach(spark, slo="p95=2s", executors="1:2", query_slo={"odd one": "none"}, folder=str(record))
    assert Application.read(Layout(record)).options == Options(
        ("p95=2s",), (1, 2), query_slo={"odd one": ()}, folder=str(record)
    )
    settings(spark).remove("spark.sluicegate.query.odd one.slo")
    one_number: Any = 4
    with pytest.raises(BadInput, match="the fewest and the most"):
        sluicegate.attach(spark, slo="p95=2s", executors=one_number)


def test_a_fault_while_attaching_leaves_the_application_as_it_is(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "attach=throw")
    with pytest.raises(BadInput, match="injected into attach"):
        sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    assert counted(spark, "unattached", counting(spark, source, "unattached", tmp_path))
    settings(spark).remove("spark.sluicegate.test.faults")
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))  # the folder was given back


def test_slow_code_on_the_query_s_own_thread_is_given_up(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "rule=4000")
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    write_plan(record, {"slow": {"processors": 1}})
    assert counted(spark, "slow", counting(spark, source, "slow", tmp_path))
    assert until(lambda: len(batches(record, "slow")) >= BATCHES)
    assert [batch["tasks"] for batch in batches(record, "slow")][-2:] == [PARTITIONS] * 2


def test_after_a_while_of_slowness_tasks_follow_the_plan_again(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.test.faults", "rule=4000:2")
    settings(spark).set("spark.sluicegate.test.rest_s", "1")
    try:
        sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    finally:
        settings(spark).remove("spark.sluicegate.test.rest_s")
    write_plan(record, {"paused": {"processors": 1}})
    query = counting(spark, source, "paused", tmp_path, every_s=2)
    try:
        assert until(lambda: len(batches(record, "paused")) >= BATCHES)
    finally:
        query.stop()
    assert told(spark.table("paused").collect()) == COUNTS
    assert batches(record, "paused")[BATCHES - 1]["tasks"] == 1
    assert "tasks left to Spark for 1 s" in (record / "said.jsonl").read_text()


def test_with_a_version_of_spark_that_was_not_tried_it_observes_and_moves_nothing(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.test.version", "9.9.9")
    try:
        sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    finally:
        settings(spark).remove("spark.sluicegate.test.version")
    write_plan(record, {"untried": {"processors": 1}})
    assert counted(spark, "untried", counting(spark, source, "untried", tmp_path))
    assert until(lambda: len(batches(record, "untried")) >= BATCHES)
    assert {batch["tasks"] for batch in batches(record, "untried")} == {PARTITIONS}


def test_a_controller_that_cannot_start_is_one_line_in_status_and_the_query_goes_on(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(spark).set("spark.sluicegate.controller", "process")
    try:
        sluicegate.attach(spark, slo="p95=30s", folder=str(record))
        sluicegate.detach(spark)
        settings(spark).set("spark.sluicegate.python", "/dev/null/python")
        context: Any = spark.sparkContext
        assert not context._jvm.sluicegate.attach.Attachment.attachSession(spark._jsparkSession)
    finally:
        settings(spark).set("spark.sluicegate.controller", "none")
    assert counted(spark, "alone", counting(spark, source, "alone", tmp_path))
    assert until(lambda: (record / "said.jsonl").exists())
    assert sluicegate_command(["status", str(record)]) == 0
    told = capsys.readouterr().out.replace("\n", " ")
    assert "no controller, so nothing is moved" in told
    assert "spark.sluicegate.python" in told


def test_a_folder_that_cannot_be_written_is_one_line_and_the_query_goes_on(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="not attached"):
        sluicegate.attach(spark, slo="p95=10s", folder=NOWHERE)
    assert counted(spark, "unwritten", counting(spark, source, "unwritten", tmp_path))


def test_the_controller_ticks_decides_and_a_second_one_is_refused(
    spark: SparkSession, source: Path, record: Path, tmp_path: Path
) -> None:
    settings(spark).set("spark.sluicegate.controller", "process")
    settings(spark).set("spark.sluicegate.interval_s", "1")
    try:
        sluicegate.attach(spark, slo="p95=30s", folder=str(record))
    finally:
        settings(spark).set("spark.sluicegate.controller", "none")
    assert until(lambda: (record / "control.json").exists(), 180)
    with pytest.raises(BadInput, match="another controller"):
        run(Layout(record), None)
    query = counting(spark, source, "steady", tmp_path, every_s=1)
    try:
        assert until(lambda: (record / "plan.json").exists(), 180)

        def seen() -> bool:
            last = read_record(record).last
            return "steady" in last.get("operators", {}) and (last.get("sojourn") or {}).get("p95_s") is not None

        assert until(seen, 180)
        last = read_record(record).last
        assert last["executors"] == 2
        assert last["sojourn"]["p95_s"] > 0
        page = urlopen(f"{spark.sparkContext.uiWebUrl}/sluicegate/", timeout=30).read().decode()
        assert "p95=30s" in page
        assert "steady" in page
        query.processAllAvailable()
    finally:
        query.stop()
    assert told(spark.table("steady").collect()) == COUNTS
