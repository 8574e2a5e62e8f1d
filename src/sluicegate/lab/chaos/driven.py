"""The driver process that chaos kills and restarts: runs an application in its folder under the control loop.

    python -m sluicegate.lab.chaos.driven FOLDER APP MASTER EXECUTORS

It prints ``ready`` once Spark has started, then waits for a line on standard input, so that a standby driver can be
kept; it prints ``running`` once its queries have started. A line of JSON on standard input, the rows fed by source,
makes it drain, check the answer and print it as one line of JSON. On SIGTERM it stops between two batches. It ends too
if one operator stops, as where a file of its state is missing: what was spoiled is then repaired. Any earlier end is
reported as one line on standard error.
"""

from __future__ import annotations

import json
import select
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.errors import EnvironmentLacks, SluicegateError
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.chaos import to_database
from sluicegate.lab.running.app import App
from sluicegate.lab.running.user_file import app_from
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.controller import Control
from sluicegate.spark.ground import Ground, ground_of
from sluicegate.spark.pipeline.failures import ended_by
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session, stop_spark
from sluicegate.spark.spark_log import quiet_spark
from sluicegate.spark.supervisor import Supervisor

_DRAINED_WITHIN_S = 600.0
_LOSES_SOON = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "10s",
    "spark.executor.heartbeatInterval": "3s",
}
"""Spark's default is two minutes: longer than a run waits for a fault to be over."""


def application(name: str) -> App:
    """The application of this name, or the one defined in a user's file."""
    if name == to_database.NAME:
        return to_database.APP
    return app_from(Path(name)) if name.endswith(".py") or "/" in name else app_named(name)


def main(folder: Path, name: str, master: str, executors: str) -> int:
    try:
        app, ground = application(name), ground_of(master, executors or None)
        settings = {"spark.driver.memory": "700m", "spark.driver.extraJavaOptions": QUICK_JAVA, **ground.settings}
        if not ground.master.startswith("local"):  # nodes that can be cut off or frozen
            settings |= _LOSES_SOON
        with quiet_spark(folder.parent / "spark.log"):  # stderr must hold only our own lines, which chaos checks
            spark = spark_session(ground.master, settings, f"sluicegate chaos {app.name}")
        try:
            _say("ready")
            if not sys.stdin.readline():
                return 0
            answer = _run(app, spark, ground, folder)
        except SluicegateError:
            raise
        except Exception as problem:  # a damaged row, or a call that failed because Java ended
            raise ended_by(problem, spark) or problem from None
        finally:
            stop_spark(spark)
    except SluicegateError as problem:
        sys.stderr.write(f"sluicegate: {problem}\n")
        return problem.exit_code
    except OSError as problem:  # the disk, as `sluicegate run` says it
        sys.stderr.write(f"sluicegate: {problem}\n")
        return EnvironmentLacks.exit_code
    _say(answer)
    return 0


def _run(app: App, spark: SparkSession, ground: Ground, folder: Path) -> dict[str, object]:
    slots = ground.slots or spark.sparkContext.defaultParallelism
    control = Control(slo=(app.slo,), budget=slots, interval_s=1.0, startup_s=ground.startup_s)
    fleet = ground.fleet(spark)
    with (
        app.brought_up() as ready,
        start(ready.build(), spark, folder, when_stopped="raise") as running,
        fleet(running) if fleet else nullcontext(),
        Supervisor(running.layout, control) as supervisor,
    ):
        running.also_check.append(supervisor.check)
        _say("running")
        fed = _until_told(running)
        running.drain(_DRAINED_WITHIN_S)
        return _answer(ready, running, fed)


def _until_told(running: Running) -> Mapping[str, int]:
    """Wait for the rows fed by source on standard input; stop on SIGTERM, or if the parent process has ended."""
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: asked.set())
    while not select.select([sys.stdin], [], [], 0.5)[0]:
        running.check()
        if asked.is_set():
            raise SluicegateError("asked to stop: stopped between two batches")
    line = sys.stdin.readline()
    if not line:
        raise SluicegateError("nobody listens any more: stopped between two batches")
    fed: Mapping[str, int] = json.loads(line)
    return fed


def _answer(app: App, running: Running, fed: Mapping[str, int]) -> dict[str, object]:
    streams = [stream for stream in running.graph.kept if running.graph.keep_s.get(stream) != 0]
    pipeline = app.build()
    sinks = {sink.name: running.read(sink.stream) for sink in pipeline.sinks.values() if sink.stream in streams}
    assert app.check is not None
    return {**asdict(app.check(fed, sinks)), "failures": list(running.restarts)}


def _say(what: object) -> None:
    sys.stdout.write((what if isinstance(what, str) else json.dumps(what)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:5]))
