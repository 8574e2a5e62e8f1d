"""One real broker for all tests of a session, and one Spark session for a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sluicegate.lab.chaos.broker import Broker
from sluicegate.spark.cluster.daemons import free_port
from sluicegate.spark.session import spark_session


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("kafka"), free_port())
    broker.up()
    yield broker
    broker.down()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Not told of Kafka: a pipeline that reads it brings the connector itself."""
    session = spark_session("local[4]", {"spark.driver.memory": "1g"})
    yield session
    session.stop()
