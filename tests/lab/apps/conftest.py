from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sluicegate.spark.session import spark_session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a file: starting it takes longer than most of them."""
    session = spark_session("local[8]", {"spark.driver.memory": "1g"}, name="sluicegate tests of applications")
    yield session
    session.stop()
