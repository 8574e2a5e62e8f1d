"""A Spark session with the settings that small, frequent batches need.

Spark's default checkpoint manager starts `stat` and `chmod` processes for every offset and commit it logs (measured: 55
ms each); the one that goes through the plain local file system renames as atomically and takes 8 ms. sluicegate's jar
brings that file system without `chmod` processes. On machines other than this one neither is used: there the edges lie
on a file system of their own, and of the jar only what reads edges and places tasks is needed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.spark.act.executors import DECOMMISSION_CONF
from sluicegate.spark.cluster.java import JAR
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
# Tasks run in the driver's own process there: one that sleeps with its machine, or whose clock is set, is not lost.
IN_ONE_PROCESS: Mapping[str, str] = {"spark.storage.blockManagerHeartbeatTimeoutMs": "30d"}
# Spark's own pattern for what it keeps out of its pages and logs (`spark.redaction.regex`).
_SECRET_KEY = re.compile(r"(?i)secret|password|token|access[.]?key")
_AUTHENTICATE = "spark.authenticate"
_CLUSTER_SECRET = "spark.authenticate.secret"
_authenticates = False
"""Whether the last session of this process set it."""
# Executors elsewhere need the jar's classes too; Spark brings it to them.
ELSEWHERE: Mapping[str, str] = {"spark.jars": JAR, "spark.driver.extraClassPath": JAR}
_ANSWERS_WITHIN_S = 5.0
_ENDS_WITHIN_S = 2.0
_STANDALONE = "spark://"


_MASTERS = re.compile(
    r"local(\[(\*|[1-9]\d*)(\s*,\s*\d+)?\])?"
    r"|local-cluster\[\d+\s*,\s*\d+\s*,\s*\d+\]"
    r"|spark://[^\s,]+:\d+(,[^\s,]+:\d+)*"
    r"|yarn|k8s://\S+"
)


def check_master(master: str) -> None:
    """Refuse a master that Spark does not know, before Spark takes its time to say so.

    >>> check_master("local[0]")
    Traceback (most recent call last):
    sluicegate.errors.BadInput: master is 'local[0]': give local[N], spark://HOST:PORT, yarn or k8s://...
    """
    if not isinstance(master, str) or not _MASTERS.fullmatch(master):
        raise BadInput(f"master is {master!r}: give local[N], spark://HOST:PORT, yarn or k8s://...")


def _check_settings(settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        if not isinstance(key, str) or not key.startswith("spark."):
            raise BadInput(f"setting {key!r}: Spark's settings have names such as spark.executor.memory")
        if not isinstance(value, str | int | float):
            raise BadInput(f"setting {key}: value is {value!r}: give a text or a number")


def spark_session(
    master: str = "local[4]",
    settings: Mapping[str, str] | None = None,
    name: str = "sluicegate",
    kafka: bool = False,
) -> SparkSession:
    """A session on ``master``; ``settings`` go over sluicegate's own; ``kafka`` brings Spark's Kafka connector.

    A Spark that cannot start is told in one line.
    """
    check_master(master)
    _check_settings(settings or {})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    near = master.startswith(("local", "spark://127.0.0.1", "spark://localhost"))
    if near:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    check_reachable(master)
    quiet_bridge()
    where = {**(ON_THIS_MACHINE if near else ELSEWHERE), **(IN_ONE_PROCESS if master.startswith("local[") else {})}
    wanted = {**SETTINGS, **where, **_guarded(master), **(settings or {})}
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    try:
        _start_java({"spark.master": master, "spark.app.name": name, **wanted})
        session = builder.getOrCreate()
    except (Py4JError, PySparkException, OSError) as problem:
        told = _said(problem)
        raise EnvironmentLacks(f"Spark did not start on {master}: {told}; see `sluicegate doctor`") from problem
    _quiet_accumulators(session.sparkContext)
    session.sparkContext.setLogLevel("OFF" if master.startswith("local") else "ERROR")
    if kafka:
        add_connector(session)
    return session


def quiet_bridge() -> None:
    """What the bridge to Java logs, a trace for every call that was under way when Java ended, is for those who set up
    logging; who calls is told by the exception.

    Some of it is logged under no name, which makes Python set up logging by itself, for all that follows.
    """
    bridge = logging.getLogger("py4j")
    bridge.addHandler(logging.NullHandler())
    if not logging.getLogger().handlers:
        bridge.propagate = False
    logging.getLogger().addFilter(_not_of_the_bridge)


def _quiet_accumulators(context: SparkContext) -> None:
    """PySpark's server for accumulators prints a trace when Java ends in the middle of a message; others it keeps."""
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is None:
        return
    loud = server.handle_error

    def handle_error(request: object, address: object) -> None:
        if not isinstance(sys.exception(), EOFError | OSError):
            loud(request, address)

    server.handle_error = handle_error


def _not_of_the_bridge(record: logging.LogRecord) -> bool:
    """The same of what it logs under no name; who calls is told by the exception."""
    return not (record.pathname.endswith("java_gateway.py") and str(record.msg).startswith("Exception while sending"))


def check_reachable(master: str) -> None:
    """Refuse a standalone master that nobody listens at: Spark would try for a minute and end in a trace.

    >>> check_reachable("local[2]")
    """
    if not master.startswith(_STANDALONE):
        return
    problems = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _ANSWERS_WITHIN_S).close()
            return
        except ValueError:
            problems.append("give it as spark://HOST:PORT")
        except OSError as problem:
            problems.append(problem.strerror or str(problem))
    raise EnvironmentLacks(
        f"no Spark master answers at {master} ({problems[0]}): start it (`sluicegate cluster up` starts one here), or "
        "name another"
    )


def spark_is_gone(spark: SparkSession) -> EnvironmentLacks | None:
    """Why nothing can run on a session any more; ``None`` while it works."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    ended = _ended(process, 0.0)
    if ended is not None:
        return ended
    try:
        context = spark.sparkContext._jsc
        stopped = context is None or context.sc().isStopped()
    except (Py4JError, OSError) as problem:
        # one that was just killed stops answering a moment before the system says that it has ended
        return _ended(process, _ENDS_WITHIN_S) or EnvironmentLacks(
            f"Spark's driver process (Java) does not answer ({type(problem).__name__}): start again in the same "
            "folder, nothing is lost"
        )
    if stopped:
        return EnvironmentLacks(
            "the Spark session was stopped while the pipeline ran: start again in the same folder, nothing is lost"
        )
    return None


def _ended(process: subprocess.Popen[bytes] | None, within_s: float) -> EnvironmentLacks | None:
    """How Spark's Java process ended, if it has or does so in time."""
    if process is None:
        return None
    try:
        code = process.wait(within_s)
    except subprocess.TimeoutExpired:
        return None
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return EnvironmentLacks(
        f"Spark's driver process (Java) has ended ({how}): it was killed, perhaps for lack of memory; "
        "start again in the same folder, nothing is lost"
    )


def stop_spark(spark: SparkSession) -> None:
    """Stop a session; one whose Java process is gone is stopped already."""
    with contextlib.suppress(Py4JError, PySparkException, OSError):
        spark.stop()


def _said(problem: Exception) -> str:
    """The first line of what Java or PySpark said."""
    thrown = getattr(problem, "java_exception", None)
    told = str(problem) if thrown is None else thrown.toString()
    return next((line.strip() for line in str(told).splitlines() if line.strip()), type(problem).__name__)[:300]


def _guarded(master: str) -> Mapping[str, str]:
    """In local mode too the driver listens on loopback, where any user of the machine could send it objects to load.

    Spark makes up a secret for itself there, and needs one for the cluster that it starts for a session; on any other
    cluster the secret must be the cluster's.
    """
    if re.fullmatch(r"local(\[.*\])?", master):
        return {_AUTHENTICATE: "true"}
    if master.startswith("local-cluster"):
        return {_AUTHENTICATE: "true", _CLUSTER_SECRET: secrets.token_hex(32)}
    return {}


def _start_java(settings: Mapping[str, str]) -> None:
    """Start Spark's Java process, unless it runs, with no secret on its command line, which other users can list.

    PySpark would put every setting there; those left out reach Spark over the authenticated connection to that process.
    """
    public = SparkConf(loadDefaults=False)
    public.setAll([(key, value) for key, value in settings.items() if not _SECRET_KEY.search(key)])
    SparkContext._ensure_initialized(conf=public)
    _forget_authentication(settings)
    if _CLUSTER_SECRET in settings:
        _remember(settings[_CLUSTER_SECRET])


def _forget_authentication(settings: Mapping[str, str]) -> None:
    """Java keeps what it was started with: that the first session authenticated must not bind one elsewhere."""
    global _authenticates
    java = SparkContext._jvm
    if _authenticates and _AUTHENTICATE not in settings and java is not None:
        java.java.lang.System.clearProperty(_AUTHENTICATE)
    _authenticates = _AUTHENTICATE in settings


def _remember(secret: str) -> None:
    """Put a cluster's secret where Spark looks first: one that a local session of this process left there is stale."""
    java = SparkContext._jvm
    assert java is not None
    found = java.org.apache.hadoop.security.Credentials()
    found.addSecretKey(java.org.apache.hadoop.io.Text("sparkCookie"), secret.encode())
    java.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(found)
