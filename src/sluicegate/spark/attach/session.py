"""Attaches and detaches a running Spark session from Python; the session needs sluicegate's jar."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.config.typed import executors_from
from sluicegate.errors import BadInput
from sluicegate.spark.attach.options import PREFIX, Options, own_promise

_ASKED = ("slo", "executors", "policy", "observe", "pace", "split")
"""Settings that every attach replaces; the folder and SLOs of single queries stay until others are given."""


def attach(
    spark: SparkSession,
    slo: str | tuple[str, ...] | None = (),
    executors: tuple[int, int] | str | None = None,
    policy: str = "sluicegate",
    observe: bool = False,
    folder: str | None = None,
    pace: bool = False,
    split: bool = False,
    query_slo: Mapping[str, str] | None = None,
) -> str:
    """Attach the session's application, so that queries started from now on are scaled with their load.

    Returns the run folder. ``slo`` is the target, such as "p95=10s"; without one it only observes. ``query_slo`` maps
    names of single queries to their SLOs, "none" for those not to control. ``executors`` are the fewest and the most:
    (1, 4), or "1:4". ``pace`` allows changing trigger intervals and read limits, ``split`` reading sources in more
    tasks than they provide. If the application is attached already, these options replace the earlier ones. The session
    needs sluicegate's jar (``spark.jars``); if the plugin is configured too, executors also report their load.
    """
    promise = (slo,) if isinstance(slo, str) else tuple(slo or ())
    own = dict(own_promise(f"{name}={text}") for name, text in (query_slo or {}).items())
    options = Options(promise, _bounds(executors), policy, observe, own, folder=folder, pace=pace, split=split)
    jvm, context = _jvm(spark)
    try:
        jvm.sluicegate.attach.Attachment.folder()
    except (Py4JError, TypeError):
        raise BadInput("this session lacks sluicegate's jar: start it with the words of `sluicegate conf`") from None
    asked = (*_ASKED, "query") if query_slo is not None else _ASKED
    if _set(context.conf(), asked, {f"{PREFIX}python": sys.executable, **options.settings()}):
        jvm.sluicegate.attach.Attachment.detach()  # an existing attachment runs with the old settings
    problem = jvm.sluicegate.attach.Attachment.attachSession(spark._jsparkSession)
    if problem:
        raise BadInput(f"not attached: {problem}")
    return str(jvm.sluicegate.attach.Attachment.folder())


def detach(spark: SparkSession) -> None:
    """Detach: from the next batch on Spark alone runs every query; executors stay as they are."""
    jvm, _ = _jvm(spark)
    with suppress(Py4JError, TypeError):  # a session without the jar has nothing attached
        jvm.sluicegate.attach.Attachment.detach()


def _bounds(executors: tuple[int, int] | str | None) -> tuple[int, int] | None:
    if isinstance(executors, str):
        return executors_from(executors)
    two = isinstance(executors, tuple | list) and [type(one) for one in executors] == [int, int]
    if executors is not None and not two:
        raise BadInput(f"executors is {executors!r}: give the fewest and the most, such as (1, 4)")
    return (executors[0], executors[1]) if executors is not None else None


def _set(conf: Any, asked: tuple[str, ...], wanted: Mapping[str, str]) -> bool:
    """Set ``wanted`` and remove what an earlier attach set; returns whether any setting changed."""
    given = {str(one._1()): str(one._2()) for one in conf.getAllWithPrefix(PREFIX)}
    left = [key for key in given if key.partition(".")[0] in asked and f"{PREFIX}{key}" not in wanted]
    for key in left:
        conf.remove(f"{PREFIX}{key}")
    for key, value in wanted.items():
        conf.set(key, value)
    return bool(left) or any(given.get(key.removeprefix(PREFIX)) != value for key, value in wanted.items())


def _jvm(spark: SparkSession) -> tuple[Any, Any]:
    try:
        context: Any = spark.sparkContext
    except PySparkException:
        raise BadInput("a Spark Connect session cannot be attached: attach the server it talks to") from None
    if context._jsc is None:
        raise BadInput("this session was stopped: attach one that runs")
    return context._jvm, context._jsc.sc()
