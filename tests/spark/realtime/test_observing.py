from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest


def test_a_second_with_many_rows_weighs_more_than_one_with_few(tmp_path: Path) -> None:
    """20,000 rows of 1 s, then 100 rows of 10 ms: the mean is near 1 s, also when the rows are sampled."""
    from sluicegate.runlog.layout import Layout
    from sluicegate.spark.realtime.marks import Timed
    from sluicegate.spark.realtime.running import RealTimeRunning

    one = object.__new__(RealTimeRunning)
    one.layout, one.names, one.running, one.pauses_s = Layout(tmp_path), ("score",), {"score": 1}, []
    one._warm_at_s, one._rescaling, one._resumed_s, one._told = 0.0, False, 0.0, None
    one._query = cast(Any, SimpleNamespace(lastProgress=None))
    for count, age_s in ((20_000, 1.0), (100, 0.01)):
        one._rows = [Timed(0.0, ((0.0, age_s),), age_s)] * count
        one._log(1000.0, 1.0, count)
    lines = [json.loads(line) for line in Layout(tmp_path).stages.read_text().splitlines()]
    ages = [(age, weight) for line in lines for age, weight in line["ages"]]
    mean_s = sum(age * weight for age, weight in ages) / sum(weight for _, weight in ages)
    assert mean_s == pytest.approx((20_000 * 1.0 + 100 * 0.01) / 20_100, rel=0.01)
