"""The loads and the synthetic driver of the benchmarks of attached applications."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from attach_many import Driver
from attach_triple_load import shape_named
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.application import Application
from sluicegate.spark.attach.controller import AttachController


@pytest.mark.parametrize(("name", "most"), [("x3", 3.0), ("burst", 4.0), ("match", 3.0)])
def test_a_load_rises_to_its_peak_and_falls_back_within_the_run(name: str, most: float) -> None:
    shape = shape_named(name, 30.0, 45.0, 75.0)
    loads = [shape(second / 2) for second in range(300)]
    assert max(loads) == pytest.approx(most, rel=0.05)
    assert max(loads[:40]) <= 1.0
    assert loads[-1] <= 1.0


def test_an_unknown_shape_is_refused_with_those_there_are() -> None:
    with pytest.raises(SystemExit, match="there are x3, burst, match"):
        shape_named("sine", 30.0, 45.0, 75.0)


def test_the_controller_looks_at_all_queries_of_the_synthetic_driver_and_plans(tmp_path: Path) -> None:
    folder = tmp_path / "record"
    folder.mkdir()
    driver, layout = Driver(folder, 5), Layout(folder)
    controller, now_s = AttachController(layout, Application.read(layout)), time.time()
    for look in range(12):
        controller.step(now_s + 2.0 * look)
        driver.round(now_s + 2.0 * (look + 1))
    looks = [json.loads(line) for line in layout.ticks.read_text().splitlines()]
    assert len(looks) == 12
    assert set(looks[-1]["operators"]) == set(driver.names)
    planned = json.loads(layout.plan.read_text())["operators"]
    assert planned
    assert set(planned) <= set(driver.names)
