"""A pipeline under the control loop, from a program of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, WhenStopped, start
from sluicegate.spark.supervisor import Supervisor


@contextmanager
def elastic(
    pipeline: Pipeline,
    spark: SparkSession,
    folder: Path | str,
    slo: str | tuple[str, ...] = (),
    policy: str = "sluicegate",
    budget: int | None = None,
    retry_for_s: float | None = None,
    when_stopped: WhenStopped = "say",
) -> Iterator[Running]:
    """Start the pipeline in its folder, or resume the one that is there, and let its parallelism follow the load.

    ``slo`` is the promise, such as "mean=3s" or ("mean=3s", "p95=8s"); ``budget`` the processors there are, where not
    given the slots of the session. Leaving the block stops between two batches; what waits waits for the next start.
    ``retry_for_s`` and ``when_stopped`` are about operators that fail: see ``start``.
    """
    promise = (slo,) if isinstance(slo, str) else slo
    control = Control(policy, promise, budget or spark.sparkContext.defaultParallelism)
    with (
        start(pipeline, spark, folder, retry_for_s=retry_for_s, when_stopped=when_stopped) as running,
        Supervisor(running.layout, control),
    ):
        yield running
