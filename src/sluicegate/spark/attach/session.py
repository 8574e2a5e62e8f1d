"""Attach from Python: a session that has the jar follows its load from the next query on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.errors import BadInput
from sluicegate.spark.attach.options import PREFIX, Options, own_promise, range_from

_ASKED = ("slo", "executors", "policy", "observe", "pace", "split")
"""What every attach asks for anew; the folder and promises of single queries stay until others are named."""


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
    """Attach the session's application; queries started from now on follow their load. Gives the record's folder.

    ``slo`` is the promise, such as "p95=10s"; without one it only observes. ``query_slo`` has promises of single
    queries by name, "none" for those to leave alone. ``executors`` are the fewest and the most: (1, 4), or "1:4".
    ``pace`` allows to move trigger intervals and read limits, ``split`` to read sources in more tasks than they give.
    An application that is attached already goes on with what is asked here. The session needs sluicegate's jar
    (``spark.jars``); with the plugin configured as well, executors also report their load.
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
        jvm.sluicegate.attach.Attachment.detach()  # who is attached already was asked for something else
    problem = jvm.sluicegate.attach.Attachment.attachSession(spark._jsparkSession)
    if problem:
        raise BadInput(f"not attached: {problem}")
    return str(jvm.sluicegate.attach.Attachment.folder())


def detach(spark: SparkSession) -> None:
    """From the next batch on every query runs as Spark would run it; executors stay as they are."""
    jvm, _ = _jvm(spark)
    with suppress(Py4JError, TypeError):  # a session without the jar has nothing attached
        jvm.sluicegate.attach.Attachment.detach()


def _bounds(executors: tuple[int, int] | str | None) -> tuple[int, int] | None:
    if isinstance(executors, str):
        return range_from(executors)
    two = isinstance(executors, tuple | list) and [type(one) for one in executors] == [int, int]
    if executors is not None and not two:
        raise BadInput(f"executors is {executors!r}: give the fewest and the most, such as (1, 4)")
    return (executors[0], executors[1]) if executors is not None else None


def _set(conf: Any, asked: tuple[str, ...], wanted: Mapping[str, str]) -> bool:
    """Spark's settings as they are wanted, without what an attach before this one set; whether that changes any."""
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
