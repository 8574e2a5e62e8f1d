"""The controller of an attached application on a folder as the driver writes it; no Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sluicegate.cli.app import run as sluicegate
from sluicegate.dashboard.metrics import metrics_text
from sluicegate.dashboard.record import Record
from sluicegate.errors import BadInput
from sluicegate.policy.sharing import Claim, shared
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.run_record import read_record
from sluicegate.spark.attach.application import Application
from sluicegate.spark.attach.controller import AttachController, alone, rehearse_for

T0 = 4_000_000_000.0
"""Long after any controller of these tests really started: what was logged before its start is not shown."""


class Driver:
    """Writes what the plugin would: queries of 8 state partitions in batches that follow b = o + c k + n/(k mu)."""

    def __init__(self, folder: Path, settings: dict[str, str], no_executors: str | None = None) -> None:
        self.folder, self.settings, self.no_executors = folder, settings, no_executors
        self.batches: dict[str, int] = {}
        self.trigger_s = 0.0
        self.stages: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.given: dict[str, str] = {}
        self.left: dict[str, str] = {}
        folder.mkdir()

    def write(self, at_s: float, queries: dict[str, float], processors: dict[str, int], executors: int = 1) -> None:
        """All queries, their load in rows a second, one batch of each."""
        application = {"name": "app", "touches": True, "no_executors": self.no_executors, "settings": self.settings}
        self._whole("application.json", application)
        node = {"active": True, "stateful": True, "key_groups": 8, "terminal": True, "source": None}
        nodes = [
            {
                **node,
                "name": name,
                "given": self.given.get(name),
                "left": self.left.get(name),
                "reads": [f"{name}-in"],
                "writes": [f"{name}-out"],
            }
            for name in queries
        ]
        self._whole("pipeline.json", {"name": "app", "attached": True, "sources": [], "kept": [], "nodes": nodes})
        ground = {
            "at_s": at_s,
            "slots": executors,
            "executor_cores": 1,
            "executors": executors,
            "busy": {},
            "loads": [],
        }
        self._whole("nodes.json", ground)
        for name, rate in queries.items():
            self._batch(name, at_s, rate, min(processors[name], executors), processors[name])

    def _batch(self, name: str, at_s: float, rate: float, k: int, tasks: int) -> None:
        number = self.batches[name] = self.batches.get(name, -1) + 1
        rows = int(rate * 2)
        work_s = rows / 200
        took_s = 0.3 + 0.02 * k + work_s / k
        line: dict[str, Any] = {
            "batch": number,
            "started_s": at_s - took_s,
            "published_s": at_s,
            "duration_s": took_s,
            "rows": rows,
        }
        line |= {"rows_out": rows, "processors": k, "entered_s": None, "born": [], "cold": number < 2, "work_s": work_s}
        source = {"name": "in", "kafka": False, "rows": rows}
        line |= {"task_s": [], "tasks": tasks, "slots": k, "trigger_s": self.trigger_s, "sources": [source]}
        line |= {"stages": self.stages, **self.state}
        log = self.folder / "operators" / name / "batches.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _whole(self, name: str, document: dict[str, Any]) -> None:
        (self.folder / name).write_text(json.dumps(document))


def plan(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "plan.json").read_text())
    assert isinstance(found, dict)
    return found


def played(driver: Driver, looks: int, queries: dict[str, float], start_s: float = T0) -> AttachController:
    """A controller after so many looks, two seconds apart; tasks and executors follow its plan at once."""
    processors, executors = dict.fromkeys(queries, 1), 1
    driver.write(start_s, queries, processors)
    layout = Layout(driver.folder)
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, looks + 1):
        now_s = start_s + 2.0 * look
        driver.write(now_s, queries, processors, executors)
        controller.step(now_s)
        if layout.plan.exists():
            told = plan(driver.folder)
            executors = told["executors"] or executors
            processors |= {name: one["processors"] for name, one in told["operators"].items()}
    return controller


def test_more_load_than_one_task_carries_gives_more_tasks_and_executors(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"})
    played(driver, 25, {"clicks": 380.0})
    told = plan(driver.folder)
    assert told["operators"]["clicks"]["processors"] >= 2
    assert told["executors"] == told["operators"]["clicks"]["processors"]
    record = read_record(driver.folder)
    assert record.decisions[-1]["reasons"]
    changes = [change for decision in record.decisions for change in decision["changes"]]
    executors = [change for change in changes if change["what"] == "executors"]
    assert executors[-1]["want"] == str(told["executors"])
    assert "processors need" in executors[-1]["reason"]
    assert record.last["operators"]["clicks"]["arrivals_per_s"] == pytest.approx(380, rel=0.3)
    assert record.last["sojourn"]["p95_s"] > record.last["sojourn"]["mean_s"] > 0


def test_what_was_planned_stays_while_executors_start(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"})
    driver.write(T0, {"clicks": 380.0}, {"clicks": 1})
    layout = Layout(driver.folder)
    controller, plans = AttachController(layout, Application.read(layout)), []
    for look in range(1, 25):
        driver.write(T0 + 2.0 * look, {"clicks": 380.0}, {"clicks": 4})
        controller.step(T0 + 2.0 * look)
        plans += [plan(driver.folder)["operators"]["clicks"]["processors"]] if layout.plan.exists() else []
    assert plans == sorted(plans)
    assert plans[-1] > 1


def test_batches_are_cut_finer_while_executors_start_so_that_a_new_one_has_work(
    tmp_path: Path,
) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"})
    driver.write(T0, {"clicks": 380.0}, {"clicks": 1})
    layout = Layout(driver.folder)
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, 25):
        driver.write(T0 + 2.0 * look, {"clicks": 380.0}, {"clicks": 8})
        controller.step(T0 + 2.0 * look)
    awaited = plan(driver.folder)["operators"]["clicks"]
    assert awaited["stages"] == {"state": 8, "shuffle": 8}, "as many as there are state partitions"
    driver.write(T0 + 50.0, {"clicks": 380.0}, {"clicks": awaited["processors"]}, awaited["processors"])
    controller.step(T0 + 50.0)
    assert "stages" not in plan(driver.folder)["operators"]["clicks"]
    assert controller.lanes["clicks"].stuck == 0


def test_the_governor_s_cool_down_holds_while_executors_start(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=3s", "executors": "1:8"})
    driver.write(T0, {"clicks": 60.0}, {"clicks": 1})
    layout = Layout(driver.folder)
    controller, moved_s = AttachController(layout, Application.read(layout)), list[float]()
    for look in range(1, 40):
        now_s = T0 + 2.0 * look
        driver.write(now_s, {"clicks": min(60.0 * 1.08**look, 900.0)}, {"clicks": 8})
        controller.step(now_s)
        decision = controller.lanes["clicks"].decision
        moved_s += [now_s] if decision is not None and decision.moves else []
    assert len(moved_s) >= 2
    assert all(later - before >= 3.0 for before, later in pairwise(moved_s)), moved_s


def test_a_master_that_gives_fewer_executors_is_asked_again_now_and_then(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=3s", "executors": "1:4"})
    driver.write(T0, {"clicks": 500.0}, {"clicks": 1})
    layout = Layout(driver.folder)
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, 120):
        driver.write(T0 + 2.0 * look, {"clicks": 500.0}, {"clicks": 4}, executors=2)
        controller.step(T0 + 2.0 * look)
    assert plan(driver.folder)["operators"]["clicks"]["processors"] == 4
    assert plan(driver.folder)["executors"] == 4
    assert len(read_record(driver.folder).decisions) < 12
    assert controller.lanes["clicks"].movable


def test_k_of_a_query_that_is_left_to_spark_is_not_planned_and_status_shows_what_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"})
    driver.left = {"clicks": "it writes to foreach"}
    driver.write(T0, {"clicks": 380.0}, {"clicks": 8})
    layout, executors = Layout(driver.folder), 1
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, 25):
        driver.write(T0 + 2.0 * look, {"clicks": 380.0}, {"clicks": 8}, executors)
        controller.step(T0 + 2.0 * look)
        executors = (plan(driver.folder)["executors"] or executors) if layout.plan.exists() else executors
    assert plan(driver.folder)["operators"] == {}
    assert 2 <= executors <= 4
    record = read_record(driver.folder)
    assert record.last["running"] == {"clicks": executors}
    assert [rescale for decision in record.decisions for rescale in decision["rescales"]] == []
    assert sluicegate(["status", str(driver.folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "k of clicks is not moved, only executors follow its load: it writes to foreach" in told


def test_without_a_promise_nothing_is_planned_and_everything_is_seen(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"executors": "1:4"})
    played(driver, 8, {"clicks": 380.0})
    assert not (driver.folder / "plan.json").exists()
    record = read_record(driver.folder)
    assert record.control["dry_run"] is True
    assert record.last["operators"]["clicks"]["arrivals_per_s"] > 0


def test_the_latency_of_queries_that_got_no_row_for_a_minute_is_unknown(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s"})
    controller = played(driver, 8, {"one": 380.0, "two": 380.0})
    assert read_record(driver.folder).last["sojourn"]["mean_s"] > 0
    for look in range(9, 45):
        driver.write(T0 + 2.0 * look, {"one": 0.0, "two": 0.0}, {"one": 1, "two": 1})
        controller.step(T0 + 2.0 * look)
    record = read_record(driver.folder)
    assert record.last["sojourn"] is None
    assert record.broken is None


def test_queries_that_want_more_than_there_is_share_it(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:3", "query.slow.slo": "p95=60s"})
    played(driver, 30, {"fast": 380.0, "slow": 380.0})
    told = plan(driver.folder)["operators"]
    assert told["fast"]["processors"] + told["slow"]["processors"] <= 4
    assert plan(driver.folder)["executors"] == 3
    assert set(read_record(driver.folder).last["operators"]) == {"fast", "slow"}


def test_what_queries_share_is_damped_by_the_governor(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=2.5s", "executors": "1:5"})
    processors = {"one": 1, "two": 1}
    driver.write(T0, dict.fromkeys(processors, 380.0), processors)
    layout = Layout(driver.folder)
    controller, plans = AttachController(layout, Application.read(layout)), list[tuple[float, dict[str, int]]]()
    for look in range(1, 45):
        now_s, more = T0 + 2.0 * look, look % 2
        driver.write(now_s, {"one": 420.0 + 300.0 * more, "two": 720.0 - 300.0 * more}, processors, executors=5)
        controller.step(now_s)
        if layout.plan.exists():
            processors |= {name: one["processors"] for name, one in plan(driver.folder)["operators"].items()}
        if not plans or plans[-1][1] != processors:
            plans.append((now_s, dict(processors)))
    assert sum(processors.values()) == 5
    settled = [at_s for at_s, _ in plans if at_s > T0 + 30.0]
    assert all(later - before >= 3.0 for before, later in pairwise(settled)), plans


def test_a_query_without_a_promise_beside_one_that_has_is_left_alone(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"query.fast.slo": "p95=4s", "executors": "1:4"})
    played(driver, 20, {"fast": 380.0, "other": 380.0})
    assert set(plan(driver.folder)["operators"]) == {"fast"}


def test_queries_of_one_name_in_two_sessions_have_the_promise_of_that_name(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "query.left alone.slo": "none", "executors": "1:4"})
    driver.given = {"left_alone": "left alone", "left_alone-1f2e3d4c": "left alone"}
    played(driver, 20, {"fast": 380.0, **dict.fromkeys(driver.given, 380.0)})
    assert set(plan(driver.folder)["operators"]) == {"fast"}


def test_where_executors_cannot_move_the_budget_is_what_there_is(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"}, "dynamic allocation is on")
    played(driver, 15, {"clicks": 380.0})
    assert plan(driver.folder)["executors"] == 0
    assert plan(driver.folder)["operators"]["clicks"]["processors"] == 1


def test_a_controller_that_is_started_again_goes_on_with_the_plan(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"})
    played(driver, 25, {"clicks": 380.0})
    before = plan(driver.folder)
    AttachController(Layout(driver.folder), Application.read(Layout(driver.folder))).step(T0 + 52.0)
    assert plan(driver.folder)["operators"] == before["operators"]


def test_a_promise_that_the_trigger_interval_breaks_is_said(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s"})
    driver.trigger_s = 5.0
    controller = played(driver, 3, {"clicks": 40.0})
    decision = controller.lanes["clicks"].decision
    assert decision is not None
    assert [r.why for r in decision.refusals if r.rule == "trigger"] == [
        "p95 <= 4 s is out of reach: clicks starts a batch every 5 s"
    ]


def test_pace_and_limit_are_planned_only_with_the_user_s_leave(tmp_path: Path) -> None:
    for leave in ("true", "false"):
        driver = Driver(tmp_path / leave, {"slo": "mean=6s", "pace": leave})
        driver.trigger_s = 20.0
        controller = played(driver, 12, {"clicks": 40.0})
        planned = plan(driver.folder)["operators"]["clicks"]
        decision = controller.lanes["clicks"].decision
        assert decision is not None
        assert planned["pace_s"] == round(decision.pace_s.get("clicks", 0.0), 3)
        assert (planned["pace_s"] > 0.5) == (leave == "true")
        # 200 rows a second for the 5.7 s that the promise leaves beside a batch's own cost, rounded up
        assert (5.7 * 200 <= planned["most_rows"] <= 1.25 * 5.7 * 200) == (leave == "true")
        refused = {refusal.rule for refusal in decision.refusals}
        assert ("trigger" in refused) == (leave == "false")


def test_a_query_that_only_reads_a_source_is_read_in_as_many_tasks_as_planned(tmp_path: Path) -> None:
    for split, expected in (("false", {"scan": 4}), ("true", 4)):
        driver = Driver(tmp_path / split, {"slo": "p95=2s", "executors": "1:4", "split": split})
        driver.stages = [{"tasks": 8 if split == "false" else 2, "behind_shuffle": False, "run_s": 1.0}]
        played(driver, 30, {"clicks": 500.0})
        planned = plan(driver.folder)["operators"]["clicks"]
        assert planned["processors"] == 4
        assert planned.get("stages" if split == "false" else "spread") == expected
        assert ("stages" in planned, "spread" in planned) == (split == "false", split == "true")


def test_a_promise_that_cannot_be_kept_is_said_and_what_comes_nearest_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=0.05s", "executors": "1:4"})
    played(driver, 15, {"clicks": 100.0})
    assert plan(driver.folder)["operators"]["clicks"]["processors"] == 4
    assert sluicegate(["status", str(driver.folder)]) == 0
    assert "the goal is out of reach within the limits" in capsys.readouterr().out.replace("\n", " ")


def test_a_load_beyond_the_most_executors_is_said_with_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=5s", "executors": "1:4"})
    played(driver, 30, {"clicks": 1000.0})
    assert sluicegate(["status", str(driver.folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "rows/s come to clicks, and 4 processors carry" in told
    assert "give it more executors or slots (spark.sluicegate.executors)" in told


def test_many_state_partitions_for_little_state_are_named_with_the_gain_to_expect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=10s", "sol": "p95=1s"})
    driver.state = {"state_partitions": 200, "state_rows": 40, "state_commit_s": 0.4, "rocksdb": True}
    played(driver, 15, {"clicks": 100.0})
    assert sluicegate(["status", str(driver.folder)]) == 0
    told = capsys.readouterr().out.replace("\n", " ")
    assert "200 state partitions hold 40 rows: `sluicegate repartition CHECKPOINT 8`" in told
    assert "saves about 0.38 s of a batch's" in told
    assert "spark.sluicegate.sol is not a setting" in told


def test_executors_that_do_not_come_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=3s", "executors": "1:4"})
    driver.write(T0, {"clicks": 500.0}, {"clicks": 1})
    layout = Layout(driver.folder)
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, 60):
        driver.write(T0 + 2.0 * look, {"clicks": 500.0}, {"clicks": 4}, executors=2)
        controller.step(T0 + 2.0 * look)
    assert sluicegate(["status", str(driver.folder)]) == 0
    assert "4 executors are requested and 2 are there" in capsys.readouterr().out.replace("\n", " ")


def test_a_query_that_failed_and_is_started_again_goes_on_with_its_plan(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"})
    controller = played(driver, 25, {"clicks": 380.0})
    before = plan(driver.folder)["operators"]
    driver.write(T0 + 52.0, {}, {}, executors=4)
    controller.step(T0 + 52.0)
    assert controller.lanes == {}
    assert plan(driver.folder)["operators"] == before
    driver.write(T0 + 54.0, {"clicks": 380.0}, {"clicks": before["clicks"]["processors"]}, executors=4)
    controller.step(T0 + 54.0)
    assert plan(driver.folder)["operators"] == before


@pytest.mark.parametrize("spoiled", [b"", b"[1]", b'{"operators": {}, "executors": 3}', b"\xff\x00", None])
def test_a_plan_that_others_overwrote_is_written_again_and_one_that_was_removed_is_not(
    tmp_path: Path, spoiled: bytes | None
) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:4"})
    controller = played(driver, 25, {"clicks": 380.0})
    before, file = plan(driver.folder), driver.folder / "plan.json"
    if spoiled is None:
        file.unlink()
    else:
        file.write_bytes(spoiled)
    tasks = before["operators"]["clicks"]["processors"]
    driver.write(T0 + 52.0, {"clicks": 380.0}, {"clicks": tasks}, executors=before["executors"])
    controller.step(T0 + 52.0)
    assert file.exists() == (spoiled is not None)
    if spoiled is not None:
        assert plan(driver.folder) == {**before, "version": before["version"] + 1}


def test_promises_of_single_queries_are_shown_with_whether_they_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(tmp_path / "run", {"query.fast.slo": "p95=100s", "query.slow.slo": "mean=1ms"})
    layout, load = Layout(driver.folder), {"fast": 150.0, "slow": 150.0}
    driver.write(T0, load, dict.fromkeys(load, 2), 2)
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, 8):
        driver.write(T0 + 2 * look, load, dict.fromkeys(load, 2), 2)
        controller.step(T0 + 2 * look)
    record = read_record(driver.folder)
    assert record.promised == "fast p95 <= 100s, slow mean <= 1ms"
    assert record.broken
    assert record.last["sojourn"]["mean_s"] > 0
    assert sluicegate(["status", str(driver.folder)]) == 0
    assert sluicegate(["top", str(driver.folder)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "slow mean <= 1ms, broken now" in said
    assert "of 100 s promised" in said
    monkeypatch.setattr(Record, "over", False)  # no driver holds the folder here
    shown = Record(driver.folder)
    while shown.look():
        pass
    assert b'sluicegate_query_promise_seconds{of="p95",operator="fast"} 100.0' in metrics_text(shown)


def test_two_controllers_on_one_application_are_refused(tmp_path: Path) -> None:
    with alone(Layout(tmp_path)), pytest.raises(BadInput, match="another controller"), alone(Layout(tmp_path)):
        pass
    assert (tmp_path / "controller.lock").stat().st_mode & 0o077 == 0


def test_the_next_processor_goes_to_a_query_that_cannot_keep_up() -> None:
    behind = Claim(3, 10.0, lambda k: float("inf") if k < 3 else 5.0, offered=2.5)
    well = Claim(3, 1.0, lambda k: 1.0 / k)
    assert shared({"behind": behind, "well": well}, 4) == {"behind": 3, "well": 1}


def test_the_rehearsal_of_a_controller_leaves_neither_plan_nor_log(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "app", {"spark.sluicegate.slo": "p95=10s", "spark.sluicegate.executors": "1:4"})
    driver.write(T0, {}, {})
    layout = Layout(driver.folder)
    rehearse_for(layout, Application.read(layout))
    assert not any(path.exists() for path in (layout.control, layout.plan, layout.decisions, layout.ticks))


def test_the_first_tick_does_not_wait_for_the_models_to_be_compiled(tmp_path: Path) -> None:
    """With an empty cache, as after an installation; the process that compiles ends with its controller."""
    driver = Driver(tmp_path / "app", {"spark.sluicegate.slo": "p95=10s", "spark.sluicegate.executors": "1:4"})
    driver.write(time.time(), {"clicks": 50.0}, {"clicks": 1})
    layout, empty = Layout(driver.folder), {"NUMBA_CACHE_DIR": str(tmp_path / "code"), "SLUICEGATE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "sluicegate.spark.attach.controller", str(driver.folder)]
    with subprocess.Popen(command, env={**os.environ, **empty}, stderr=subprocess.PIPE) as controller:
        while controller.poll() is None and not layout.ticks.exists():
            time.sleep(0.05)
        compilers = _children(controller.pid)
        controller.terminate()
        _, said = controller.communicate()
    assert said == b""
    assert len(compilers) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in compilers)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_tasks_that_fill_every_slot_do_not_ask_for_more_executors(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"query.fast.slo": "p95=4s", "executors": "1:9"})
    load, executors = {"fast": 150.0, "other": 20.0}, 1
    driver.write(T0, load, {"fast": 1, "other": 200})
    layout = Layout(driver.folder)
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, 40):
        told = plan(driver.folder) if layout.plan.exists() else {}
        executors = told.get("executors") or executors
        k = told.get("operators", {}).get("fast", {}).get("processors", 1)
        driver.write(T0 + 2.0 * look, load, {"fast": k, "other": 200}, executors)
        controller.step(T0 + 2.0 * look)
    assert plan(driver.folder)["executors"] <= 4


def scanned(
    driver: Driver, controller: AttachController, load: float, natural: int, looks: int, first: int = 1
) -> None:
    """A query that only scans, in at most ``natural`` tasks."""
    executors = 1
    for look in range(first, first + looks):
        told = plan(driver.folder) if (driver.folder / "plan.json").exists() else {}
        executors = told.get("executors") or executors
        tasks = min(told.get("operators", {}).get("clicks", {}).get("stages", {}).get("scan", natural), natural)
        driver.stages = [{"tasks": tasks, "behind_shuffle": False, "run_s": 1.0}]
        driver.write(T0 + 2.0 * look, {"clicks": load}, {"clicks": tasks}, executors)
        nodes = json.loads((driver.folder / "pipeline.json").read_text())
        for node in nodes["nodes"]:
            node["stateful"] = False
        (driver.folder / "pipeline.json").write_text(json.dumps(nodes))
        controller.step(T0 + 2.0 * look)


def scanner(tmp_path: Path, load: float, natural: int) -> tuple[Driver, AttachController]:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:6"})
    driver.write(T0, {"clicks": load}, {"clicks": natural})
    layout = Layout(driver.folder)
    return driver, AttachController(layout, Application.read(layout))


def test_a_scan_that_began_with_few_tasks_gets_more_when_its_batches_have_more(tmp_path: Path) -> None:
    driver, controller = scanner(tmp_path, 150.0, 2)
    scanned(driver, controller, 150.0, 2, 20)
    scanned(driver, controller, 550.0, 8, 40, first=21)
    assert plan(driver.folder)["operators"]["clicks"]["processors"] > 2


def test_a_batch_with_fewer_files_than_planned_tasks_counts_as_following_the_plan(tmp_path: Path) -> None:
    driver, controller = scanner(tmp_path, 350.0, 4)
    scanned(driver, controller, 350.0, 4, 20)
    scanned(driver, controller, 350.0, 1, 80, first=21)
    assert controller.lanes["clicks"].movable


def test_what_a_trigger_interval_lets_wait_leaves_less_time_for_a_batch(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=15s", "executors": "1:8"})
    driver.trigger_s = 10.0
    played(driver, 40, {"clicks": 300.0})
    # 3,000 rows in 15 * 0.9 - 9.5 = 4 s at 200 rows/s each
    assert plan(driver.folder)["operators"]["clicks"]["processors"] >= 4


def test_executors_of_a_query_that_ended_stay_for_the_settle_window(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "1:9"})
    controller = played(driver, 40, {"clicks": 150.0, "views": 380.0})
    before, told = plan(driver.folder)["executors"], list[int]()
    for look in range(41, 56):
        k = plan(driver.folder)["operators"]["clicks"]["processors"]
        driver.write(T0 + 2.0 * look, {"clicks": 150.0}, {"clicks": k}, before)
        controller.step(T0 + 2.0 * look)
        told.append(plan(driver.folder)["executors"])
    assert told[5] == before > told[-1]


def test_a_wide_stage_of_the_user_s_own_in_a_batch_counts_as_following_the_plan(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "4:4"})
    driver.write(T0, {"clicks": 250.0}, {"clicks": 8}, 4)
    layout = Layout(driver.folder)
    controller = AttachController(layout, Application.read(layout))
    for look in range(1, 80):  # foreachBatch that groups what it was given by a key, in Spark's 200 tasks
        told = plan(driver.folder) if layout.plan.exists() else {}
        k = told.get("operators", {}).get("clicks", {}).get("processors", 8)
        reads = {"tasks": 4, "behind_shuffle": False, "run_s": 1.0}
        driver.stages = [reads, {"tasks": k, "behind_shuffle": True, "run_s": 4.0}]
        driver.stages += [{"tasks": 200, "behind_shuffle": True, "run_s": 0.5}]
        driver.write(T0 + 2.0 * look, {"clicks": 250.0}, {"clicks": 200}, 4)
        controller.step(T0 + 2.0 * look)
    lane = controller.lanes["clicks"]
    assert lane.movable
    assert lane.running == plan(driver.folder)["operators"]["clicks"]["processors"] < 4


def test_a_query_that_did_not_follow_is_tried_again_later(tmp_path: Path) -> None:
    """The driver leaves tasks to Spark for a while if it was slow: that must not be for good."""
    driver = Driver(tmp_path / "run", {"slo": "p95=4s", "executors": "4:4"})
    driver.write(T0, {"clicks": 250.0}, {"clicks": 8}, 4)
    layout = Layout(driver.folder)
    controller, movable = AttachController(layout, Application.read(layout)), dict[float, bool]()
    for after_s in (*range(2, 300, 2), *range(300, 900, 20)):
        driver.write(T0 + after_s, {"clicks": 250.0}, {"clicks": 8}, 4)
        controller.step(T0 + after_s)
        movable[after_s] = controller.lanes["clicks"].movable
    given_up_s = max(at_s for at_s in movable if at_s < 300 and movable[at_s])
    assert 100 < given_up_s < 250
    assert not any(movable[at_s] for at_s in movable if given_up_s < at_s < given_up_s + 560)
    assert any(movable[at_s] for at_s in movable if at_s > given_up_s + 560)


def test_a_promise_that_a_shuffle_of_few_tasks_breaks_names_the_cure(tmp_path: Path) -> None:
    driver, controller = scanner(tmp_path, 700.0, 2)
    for look in range(1, 30):
        driver.stages = [{"tasks": 2, "behind_shuffle": False, "run_s": 0.5}]
        driver.stages += [{"tasks": 2, "behind_shuffle": True, "run_s": 3.0}]
        driver.write(T0 + 2.0 * look, {"clicks": 700.0}, {"clicks": 2}, 4)
        nodes = json.loads((driver.folder / "pipeline.json").read_text())
        nodes["nodes"][0]["stateful"] = False
        (driver.folder / "pipeline.json").write_text(json.dumps(nodes))
        controller.step(T0 + 2.0 * look)
    decision = controller.lanes["clicks"].decision
    assert decision is not None
    told = [refusal.why for refusal in decision.refusals if refusal.rule == "promise"]
    assert told
    assert "spark.sql.adaptive.coalescePartitions.enabled=false" in told[0]
