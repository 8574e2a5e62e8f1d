"""A Spark session with the settings that small, frequent batches need.

Spark's default checkpoint manager starts `stat` and `chmod` processes for every offset and commit it logs (measured: 55
ms each); the one that goes through the plain local file system renames as atomically and takes 8 ms. sluicegate's jar
brings that file system without `chmod` processes. On machines other than this one neither is used: there the edges lie
on a file system of their own, and of the jar only what reads edges and places tasks is needed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from sluicegate.spark.act.executors import DECOMMISSION_CONF
from sluicegate.spark.cluster.java import JAR

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
# Spark's own pattern for what it keeps out of its pages and logs (`spark.redaction.regex`).
_SECRET_KEY = re.compile(r"(?i)secret|password|token|access[.]?key")
_CLUSTER_SECRET = "spark.authenticate.secret"
# Executors elsewhere need the jar's classes too; Spark brings it to them.
ELSEWHERE: Mapping[str, str] = {"spark.jars": JAR, "spark.driver.extraClassPath": JAR}


def spark_session(
    master: str = "local[4]", settings: Mapping[str, str] | None = None, name: str = "sluicegate"
) -> SparkSession:
    """A session on ``master``; ``settings`` go over sluicegate's own."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    near = master.startswith(("local", "spark://127.0.0.1", "spark://localhost"))
    if near:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wanted = {**SETTINGS, **(ON_THIS_MACHINE if near else ELSEWHERE), **_guarded(master), **(settings or {})}
    _start_java({"spark.master": master, "spark.app.name": name, **wanted})
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF" if master.startswith("local") else "ERROR")
    return session


def _guarded(master: str) -> Mapping[str, str]:
    """In local mode too the driver listens on loopback, where any user of the machine could send it objects to load.

    Spark makes up a secret for itself there; on a cluster the secret must be the cluster's.
    """
    return {"spark.authenticate": "true"} if re.fullmatch(r"local(\[.*\])?", master) else {}


def _start_java(settings: Mapping[str, str]) -> None:
    """Start Spark's Java process, unless it runs, with no secret on its command line, which other users can list.

    PySpark would put every setting there; those left out reach Spark over the authenticated connection to that process.
    """
    public = SparkConf(loadDefaults=False)
    public.setAll([(key, value) for key, value in settings.items() if not _SECRET_KEY.search(key)])
    SparkContext._ensure_initialized(conf=public)
    if _CLUSTER_SECRET in settings:
        _remember(settings[_CLUSTER_SECRET])


def _remember(secret: str) -> None:
    """Put a cluster's secret where Spark looks first: one that a local session of this process left there is stale."""
    java = SparkContext._jvm
    assert java is not None
    found = java.org.apache.hadoop.security.Credentials()
    found.addSecretKey(java.org.apache.hadoop.io.Text("sparkCookie"), secret.encode())
    java.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(found)
