"""Spark streams whose offsets and tasks a Python planner decides: registers planners with the jar."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark import java_gateway
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from sluicegate.errors import BadInput
from sluicegate.spark.cluster.java import JAR
from sluicegate.spark.edges.planner import EdgePlanner


def read_by(spark: SparkSession, planner: EdgePlanner) -> DataStreamReader:
    """A reader of the stream that ``planner`` plans; Spark calls the planner until ``forget``."""
    provider = _provider(spark)
    if isinstance(provider, JavaPackage):
        raise BadInput(
            "this Spark session does not know sluicegate's classes: make it with sluicegate.spark_session(), or start "
            f"it with spark.jars and spark.driver.extraClassPath set to {JAR}"
        )
    listen: Any = java_gateway.ensure_callback_server_started
    listen(spark.sparkContext._gateway)
    provider.register(planner.name, planner)
    return spark.readStream.format("sluicegate.EdgeProvider").option("planner", planner.name)


def forget(spark: SparkSession, planner: EdgePlanner) -> None:
    _provider(spark).forget(planner.name)


def _provider(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.sluicegate.EdgeProvider
