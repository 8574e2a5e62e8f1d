"""What the live comparison of node policies and the measured curves are made of, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

import uncertainty_live
from mst_curves import predicted
from sluicegate.config.capacity_file import CapacityFile, CapacityPoint, capacity_text
from sluicegate.lab.profile.mst import MstMeasured
from sluicegate.lab.running.app import App
from sluicegate.model.mst import choose_model
from uncertainty_live import FULL, WINDOW, curve_in, history_of, load_of, nodes_of, while_loaded

LINE = CapacityFile(tuple(CapacityPoint(m, 100.0 * m, 3.0, (97.0 * m, 103.0 * m)) for m in (1, 2, 4)), "grep_waiting")


def test_the_load_peaks_where_most_of_the_largest_size_is_needed() -> None:
    load, peak = load_of(None, 120.0, LINE)
    rates = [load(step / 500) for step in range(501)]
    assert nodes_of(LINE) == 4
    assert peak == pytest.approx(FULL * 400.0, rel=0.02)
    assert max(rates) == pytest.approx(peak, rel=0.01)
    assert min(rates) > 0


def test_a_trace_gives_the_load_its_shape(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("minute,rate\n" + "".join(f"{t},{100 if t < 60 else 300}\n" for t in range(120)), encoding="utf-8")
    load, peak = load_of(path, 60.0, LINE)
    assert load(0.0) == pytest.approx(peak / 3)
    assert load(1.0) == pytest.approx(peak)


def test_a_window_of_the_generated_day_is_calm_until_its_match() -> None:
    load, peak = load_of(None, 300.0, LINE, "690:1050")
    assert max(load(step / 300) for step in range(145)) < peak / 2
    assert max(load(step / 300) for step in range(165, 250)) == pytest.approx(peak, rel=0.01)
    assert load(1.0) < peak / 2


def test_the_history_is_what_came_before_the_window_in_steps_of_the_forecaster() -> None:
    load, _ = load_of(None, 120.0, LINE, WINDOW)
    before = history_of(None, 120.0, LINE, WINDOW, step_s=1.0)
    assert len(before) == 100
    assert before[-1] == pytest.approx(load(0.0), rel=0.15)
    assert len(history_of(None, 120.0, LINE, "30:210", step_s=1.0)) == 20
    assert history_of(None, 120.0, LINE, "0:180", step_s=1.0) == []


def test_twice_the_largest_size_is_predicted_from_the_others_alone() -> None:
    points = (*LINE.points, CapacityPoint(8, 600.0, 10.0, (590.0, 610.0)))
    file = CapacityFile(points, "grep_waiting")
    model = choose_model(LINE.samples("training"), largest=8)
    found = predicted(MstMeasured(file, Path("x"), model, (), ""), (1, 2, 4), 8)
    assert (found["twice"], found["measured_per_s"]) == (8, 600.0)
    assert found["predicted_per_s"] == pytest.approx(800.0, rel=0.05)
    assert found["within_10_percent"] is False


def test_draining_what_is_left_counts_neither_as_late_nor_as_cost() -> None:
    rates = [None, 0.0, 40.0, 0.0, 60.0, 0.0, 0.0]
    ticks = [{"at_s": float(at), "arrivals_per_s": rate} for at, rate in enumerate(rates)]
    assert [tick["at_s"] for tick in while_loaded(ticks)] == [2.0, 3.0, 4.0]
    assert while_loaded(ticks[:2]) == []


def test_a_curve_that_is_not_there_is_measured_and_one_that_is_there_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a clean clone the documented command needs nothing before it."""
    asked: list[tuple[str, tuple[int, ...], Path]] = []

    def measured(app: App, nodes: tuple[int, ...], minutes: float, out: Path, *_: object) -> MstMeasured:
        asked.append((app.name, nodes, out))
        return MstMeasured(LINE, out / "x", choose_model(LINE.samples("training")), (), "")

    monkeypatch.setattr(uncertainty_live, "measure_mst", measured)
    path = tmp_path / "curves" / "grep_waiting.mst.toml"
    assert curve_in(path) == LINE
    assert asked == [("grep_waiting", (1, 2, 4), path.parent)]
    path.write_text(capacity_text(LINE), encoding="utf-8")
    assert curve_in(path) == LINE
    assert len(asked) == 1
    with pytest.raises(SystemExit, match=r"name it APP.mst.toml"):
        curve_in(tmp_path / "other.toml")
