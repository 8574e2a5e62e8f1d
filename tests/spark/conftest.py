"""One Spark session for a module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sluicegate.spark.session import spark_session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[4]", {"spark.driver.memory": "1g"})
    yield session
    session.stop()
