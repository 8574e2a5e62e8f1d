"""Applications that look at images, sensors and positions are exact while k moves under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lab.apps.moving import assert_exact_while_k_moves

from sluicegate.lab.apps import finance, flight_distances, grid, traffic, vht, vld
from sluicegate.lab.running.app import App
from sluicegate.spark.pipeline.declaration import Pipeline

CASES: Mapping[str, tuple[App, Callable[[], Pipeline], int]] = {
    "vld": (vld.APP, partial(vld.build, key_groups=2), 12),
    "vld_waiting": (vld.WAITING, partial(vld.build, key_groups=2, fetch_ms=1.0, look_up_ms=1.0), 12),
    "vht": (vht.APP, partial(vht.build, key_groups=2), 60),
    "traffic": (traffic.APP, partial(traffic.build, key_groups=2), 100),
    "finance": (finance.APP, partial(finance.build, key_groups=2), 100),
    "grid": (grid.APP, partial(grid.build, key_groups=2), 150),
    "flight_distances": (flight_distances.APP, partial(flight_distances.build, key_groups=2), 100),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_exact_while_k_moves_up_and_down(name: str, spark: SparkSession, tmp_path: Path) -> None:
    app, build, count = CASES[name]
    assert_exact_while_k_moves(app, build(), count, spark, tmp_path)
