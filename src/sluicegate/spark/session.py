"""A Spark session with the settings that small, frequent batches need.

Spark's default checkpoint manager starts `stat` and `chmod` processes for every offset and commit it logs (measured: 55
ms each); the one that goes through the plain local file system renames as atomically and takes 8 ms. sluicegate's jar
brings that file system without `chmod` processes. On machines other than this one neither is used: there the edges lie
on a file system of their own, and of the jar only what reads edges and places tasks is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.spark.act.executors import DECOMMISSION_CONF
from sluicegate.spark.kafka.connector import add_connector

SETTINGS: Mapping[str, str] = {
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "4",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.python.daemon.module": "sluicegate.spark.python_daemon",
    "spark.plugins": "sluicegate.NodeLoads",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "60",
    "spark.ui.retainedStages": "120",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "20",
    **DECOMMISSION_CONF,
}

JAR = str(Path(__file__).parent / "jvm" / "sluicegate.jar")
ON_THIS_MACHINE: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraClassPath": JAR,
    "spark.executor.extraClassPath": JAR,
    "spark.hadoop.fs.file.impl": "sluicegate.LocalFiles",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
# Executors elsewhere need the jar's classes too; Spark brings it to them.
ELSEWHERE: Mapping[str, str] = {"spark.jars": JAR, "spark.driver.extraClassPath": JAR}


def spark_session(
    master: str = "local[4]",
    settings: Mapping[str, str] | None = None,
    name: str = "sluicegate",
    kafka: bool = False,
) -> SparkSession:
    """A session on ``master``; ``settings`` go over sluicegate's own; ``kafka`` brings Spark's Kafka connector."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    near = master.startswith(("local", "spark://127.0.0.1", "spark://localhost"))
    if near:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**SETTINGS, **(ON_THIS_MACHINE if near else ELSEWHERE), **(settings or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF" if master.startswith("local") else "ERROR")
    if kafka:
        add_connector(session)
    return session
