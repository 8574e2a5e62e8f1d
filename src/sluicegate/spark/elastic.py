"""Runs a pipeline under the control loop from a user's program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.errors import BadInput
from sluicegate.runlog.lock import check_free
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.pipeline.start_checks import WhenStopped, check_stopping
from sluicegate.spark.supervisor import Supervisor


def elastic(
    pipeline: Pipeline,
    spark: SparkSession,
    folder: Path | str,
    slo: str | tuple[str, ...] = (),
    policy: str = "sluicegate",
    budget: int | None = None,
    retry_for_s: float | None = None,
    when_stopped: WhenStopped = "say",
    policy_options: str | Sequence[str] = (),
) -> AbstractContextManager[Running]:
    """Start the pipeline in its folder, or resume the one that is there, and scale its parallelism with the load.

    ``slo`` is the target, such as "mean=3s" or ("mean=3s", "p95=8s"); ``budget`` is the number of processors, by
    default the slots of the session. Leaving the block stops between two batches; the backlog is kept for the next
    start. ``retry_for_s`` and ``when_stopped`` are about operators that fail: see ``start``. ``policy_options`` are
    texts such as "t_ra_s=30": `sluicegate policies POLICY` lists them.
    All arguments are checked at the call. If the controller cannot start, ``running.check()``, ``wait()`` and
    ``drain()`` raise the error; the pipeline itself continues with the plan in force.
    """
    if not isinstance(pipeline, Pipeline):
        raise BadInput(f"elastic runs a Pipeline, got {type(pipeline).__name__}: make one with sluicegate.Pipeline")
    if not isinstance(spark, SparkSession):
        raise BadInput(f"elastic needs a Spark session, got {type(spark).__name__}: take sluicegate.spark_session()")
    if not isinstance(folder, str | os.PathLike) or not str(folder):
        raise BadInput(f"elastic: folder is {folder!r}: give the path of a folder for the pipeline")
    promise = (slo,) if isinstance(slo, str) else slo
    slots = spark.sparkContext.defaultParallelism if budget is None else budget
    control = Control(
        policy, promise, slots, options=(policy_options,) if isinstance(policy_options, str) else tuple(policy_options)
    )
    check_stopping(pipeline, retry_for_s, when_stopped)
    pipeline.check()
    check_free(Path(folder))
    begun = partial(start, pipeline, spark, folder, retry_for_s=retry_for_s, when_stopped=when_stopped)
    return _elastic(begun, control)


@contextmanager
def _elastic(begun: Callable[[], Running], control: Control) -> Iterator[Running]:
    with begun() as running, Supervisor(running.layout, control) as supervisor:
        running.also_check.append(supervisor.check)
        yield running
