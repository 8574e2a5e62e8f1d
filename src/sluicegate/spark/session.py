"""Creates Spark sessions with the settings that small, frequent batches need.

Spark's default checkpoint manager starts `stat` and `chmod` processes for every offset and commit that it logs. The one
based on a plain file system renames just as atomically, and with the local file system of sluicegate's jar it starts
neither. With a master on another machine both are left out: the edges are on another file system there, and only the
jar's classes that read edges and place tasks are needed.
"""

from __future__ import annotations

import contextlib
import errno
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
# Tasks run in the driver's process: it must not count as lost after the machine slept or its clock was set.
IN_ONE_PROCESS: Mapping[str, str] = {"spark.storage.blockManagerHeartbeatTimeoutMs": "30d"}
# Spark's own pattern for what it redacts in its pages and logs (`spark.redaction.regex`), and what that leaves out:
# keys of storage accounts, and Kafka's logins.
_SECRET_KEY = re.compile(r"(?i)secret|passw|token|(?:access|account|api)[._-]?key|jaas")
_AUTHENTICATE = "spark.authenticate"
_CLUSTER_SECRET = "spark.authenticate.secret"
_authenticates = False
"""Whether the last session of this process set ``spark.authenticate``."""
# Executors on other machines need the jar's classes too; Spark distributes it to them.
ELSEWHERE: Mapping[str, str] = {"spark.jars": JAR, "spark.driver.extraClassPath": JAR}
_ANSWERS_WITHIN_S = 5.0
_ENDS_WITHIN_S = 2.0
_NO_HANDLE = (errno.EMFILE, errno.ENFILE)
"""This process, or the machine, has too many files open for another socket to Java."""
_STANDALONE = "spark://"


_MASTERS = re.compile(
    r"local(\[(\*|[1-9]\d*)(\s*,\s*\d+)?\])?"
    r"|local-cluster\[\d+\s*,\s*\d+\s*,\s*\d+\]"
    r"|spark://[^\s,]+:\d+(,[^\s,]+:\d+)*"
    r"|yarn|k8s://\S+"
)


def check_master(master: str) -> None:
    """Refuse an invalid master at once, instead of after Spark's slow start.

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
    """Create a session on ``master``; ``settings`` override sluicegate's own; ``kafka`` adds Spark's Kafka connector.

    If Spark cannot start, ``EnvironmentLacks`` says why in one line.
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
    """Suppress py4j's log output unless the user has configured logging.

    py4j logs a trace for every call in progress when Java ends; the caller gets the exception anyway. Some of it goes
    to the root logger, which makes Python configure logging by itself for everything that follows.
    """
    bridge = logging.getLogger("py4j")
    bridge.addHandler(logging.NullHandler())
    if not logging.getLogger().handlers:
        bridge.propagate = False
    logging.getLogger().addFilter(_not_of_the_bridge)


def _quiet_accumulators(context: SparkContext) -> None:
    """Silence the trace that PySpark's accumulator server prints when Java ends mid-message; keep other errors."""
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is None:
        return
    loud = server.handle_error

    def handle_error(request: object, address: object) -> None:
        if not isinstance(sys.exception(), EOFError | OSError):
            loud(request, address)

    server.handle_error = handle_error


def _not_of_the_bridge(record: logging.LogRecord) -> bool:
    """Filter py4j's records on the root logger; the caller gets the exception anyway."""
    return not (record.pathname.endswith("java_gateway.py") and str(record.msg).startswith("Exception while sending"))


def check_reachable(master: str) -> None:
    """Refuse a standalone master with no listener; Spark itself would retry for a minute and end in a trace.

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
    """Why a session can no longer run anything; ``None`` while it works."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    ended = _ended(process, 0.0)
    if ended is not None:
        return ended
    try:
        context = spark.sparkContext._jsc
        stopped = context is None or context.sc().isStopped()
    except (Py4JError, OSError) as problem:
        if isinstance(problem, OSError) and problem.errno in _NO_HANDLE:  # it cannot be asked, and runs
            return None
        # a killed process stops answering slightly before the system reports its exit code
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
    """How Spark's Java process ended, if it has ended or does so within ``within_s``."""
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
    """Stop a session; errors are ignored, as its Java process may have ended already."""
    with contextlib.suppress(Py4JError, PySparkException, OSError):
        spark.stop()


def _said(problem: Exception) -> str:
    """The first line of the Java or PySpark error."""
    thrown = getattr(problem, "java_exception", None)
    told = str(problem) if thrown is None else thrown.toString()
    return next((line.strip() for line in str(told).splitlines() if line.strip()), type(problem).__name__)[:300]


def _guarded(master: str) -> Mapping[str, str]:
    """Authentication settings for a master that this process starts.

    Even in local mode the driver listens on loopback, where any user of the machine could send it objects to load. In
    local mode Spark generates a secret itself; local-cluster needs one from us; on any other cluster the secret must be
    the cluster's.
    """
    if re.fullmatch(r"local(\[.*\])?", master):
        return {_AUTHENTICATE: "true"}
    if master.startswith("local-cluster"):
        return {_AUTHENTICATE: "true", _CLUSTER_SECRET: secrets.token_hex(32)}
    return {}


def _start_java(settings: Mapping[str, str]) -> None:
    """Start Spark's Java process, unless it runs, without secrets on its command line, which other users can list.

    PySpark would put every setting there; the secrets reach Spark over the authenticated connection to that process.
    """
    public = SparkConf(loadDefaults=False)
    public.setAll([(key, value) for key, value in settings.items() if not _SECRET_KEY.search(key)])
    SparkContext._ensure_initialized(conf=public)
    _forget_authentication(settings)
    if _CLUSTER_SECRET in settings:
        _remember(settings[_CLUSTER_SECRET])


def _forget_authentication(settings: Mapping[str, str]) -> None:
    """Clear the authentication property that an earlier session left in Java, so that it does not apply to this one."""
    global _authenticates
    java = SparkContext._jvm
    if _authenticates and _AUTHENTICATE not in settings and java is not None:
        java.java.lang.System.clearProperty(_AUTHENTICATE)
    _authenticates = _AUTHENTICATE in settings


def _remember(secret: str) -> None:
    """Store a cluster's secret where Spark looks first, replacing a stale one from a local session of this process."""
    java = SparkContext._jvm
    assert java is not None
    found = java.org.apache.hadoop.security.Credentials()
    found.addSecretKey(java.org.apache.hadoop.io.Text("sparkCookie"), secret.encode())
    java.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(found)
