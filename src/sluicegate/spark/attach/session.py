"""Attach from Python: a session that has the jar follows its load from the next query on."""

from __future__ import annotations

import sys
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.errors import BadInput
from sluicegate.spark.attach.options import PREFIX, Options


def attach(
    spark: SparkSession,
    slo: str | tuple[str, ...] = (),
    executors: tuple[int, int] | None = None,
    policy: str = "sluicegate",
    observe: bool = False,
    folder: str | None = None,
) -> str:
    """Attach the session's application; queries started from now on follow their load. Gives the record's folder.

    ``slo`` is the promise, such as "p95=10s"; without one it only observes. ``executors`` are the fewest and the most.
    The session needs sluicegate's jar (``spark.jars``); with the plugin configured as well, executors also report
    their load.
    """
    promise = (slo,) if isinstance(slo, str) else tuple(slo)
    options = Options(promise, executors, policy, observe, folder=folder)
    jvm, context = _jvm(spark)
    conf = context.conf()
    for key, value in {f"{PREFIX}python": sys.executable, **options.settings()}.items():
        conf.set(key, value)
    try:
        problem = jvm.sluicegate.attach.Attachment.attachSession(spark._jsparkSession)
    except (Py4JError, TypeError):
        raise BadInput("this session lacks sluicegate's jar: start it with the words of `sluicegate conf`") from None
    if problem:
        raise BadInput(f"not attached: {problem}")
    return str(jvm.sluicegate.attach.Attachment.folder())


def detach(spark: SparkSession) -> None:
    """From the next batch on every query runs as Spark would run it; executors stay as they are."""
    jvm, _ = _jvm(spark)
    jvm.sluicegate.attach.Attachment.detach()


def _jvm(spark: SparkSession) -> tuple[Any, Any]:
    try:
        context: Any = spark.sparkContext
    except PySparkException:
        raise BadInput("a Spark Connect session cannot be attached: attach the server it talks to") from None
    return context._jvm, context._jsc.sc()
