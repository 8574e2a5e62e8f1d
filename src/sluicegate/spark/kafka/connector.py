"""Adds Spark's Kafka connector to a session.

The versions are those tested with the Spark that sluicegate runs on; ``$SLUICEGATE_KAFKA_CONNECTOR`` (comma-separated
Maven coordinates) replaces them. Each jar is fetched without its dependencies, because Spark has the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.errors import EnvironmentLacks
from sluicegate.spark.kafka.maven import jars_of

COORDINATES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_MISSING = re.compile(r"data source:? `?kafka`?", re.IGNORECASE)
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def connector_jars() -> list[Path]:
    """The connector's jars on this machine; fetched with Maven the first time."""
    given = os.environ.get("SLUICEGATE_KAFKA_CONNECTOR", "")
    return jars_of("kafka-connector", tuple(part for part in given.split(",") if part) or COORDINATES)


def has_connector(spark: SparkSession) -> bool:
    """Whether the driver of a session can load the connector's classes."""
    try:
        _loader(spark).loadClass(_PROVIDER)
    except Py4JError:
        return False
    return True


def add_connector(spark: SparkSession) -> None:
    """Add the connector to the driver of a running session, and to its executors with their next tasks."""
    if has_connector(spark):
        return
    jvm: Any = spark._jvm
    loader, context = _loader(spark), spark.sparkContext._jsc
    for jar in connector_jars():
        context.addJar(str(jar))
        try:
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
        except Py4JError as problem:
            raise EnvironmentLacks(
                "Spark's Kafka connector cannot be added to this session: make it with "
                f"sluicegate.spark_session(kafka=True), or with spark.jars.packages={','.join(COORDINATES)}"
            ) from problem


def with_connector(spark: SparkSession, build: Callable[[SparkSession], object]) -> object:
    """Call ``build`` on the session; if it fails because the connector is missing, add it and retry."""
    try:
        return build(spark)
    except PySparkException as problem:
        if not _MISSING.search(str(problem)) or has_connector(spark):
            raise
    add_connector(spark)
    return build(spark)


def _loader(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()
