from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.observe.node_loads import NodeLog, read_nodes


def told(path: Path, at_s: float, *names: str) -> Path:
    nodes = [{"name": name, "cpu": 0.5, "memory": 0.25, "io": 0.75} for name in names]
    path.write_text(json.dumps({"at_s": at_s, "executors": len(names), "nodes": nodes}))
    return path


def test_what_was_told_lately_counts_and_a_single_node_hosts_all_that_runs(tmp_path: Path) -> None:
    seen = read_nodes(told(tmp_path / "nodes.json", 100.0, "h1"), 110.0, {"a": 2})
    assert seen.executors == 1
    assert [(node.name, node.load, dict(node.hosts)) for node in seen.nodes] == [("h1", 0.75, {"a": 2})]


def test_with_several_nodes_the_operators_of_each_are_unknown(tmp_path: Path) -> None:
    seen = read_nodes(told(tmp_path / "nodes.json", 100.0, "h1", "h2"), 110.0, {"a": 2})
    assert [dict(node.hosts) for node in seen.nodes] == [{}, {}]


def test_what_is_old_or_was_never_told_stays_missing(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    assert read_nodes(path, 110.0, {}).nodes == ()
    assert read_nodes(told(path, 100.0, "h1"), 116.0, {}).executors is None


def test_the_last_word_of_another_applications_executor_is_no_node_of_this_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    jvm: Any = spark.sparkContext._jvm
    driver = jvm.sluicegate.NodeLoads().driverPlugin()
    driver.receive("7\t127.0.0.9\t2\t0.5\t1000\t4000\t0.25\t8\t3.5")
    log = NodeLog(spark, tmp_path / "nodes.json")
    try:
        wait_until(lambda: _nodes(tmp_path / "nodes.json") == ["127.0.0.1"], 60.0, 0.1)
    finally:
        log.close()
    assert _nodes(tmp_path / "nodes.json") == ["127.0.0.1"]


def _nodes(path: Path) -> list[str]:
    return [node["name"] for node in json.loads(path.read_text())["nodes"]] if path.exists() else []
