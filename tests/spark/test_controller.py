"""The controller sees a pipeline through its files alone, so files alone are enough to test it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from sluicegate.domain import ExecutorSeen, FleetSeen, OperatorObservation, Shape
from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.runlog.batch_log import BatchRecord, append_line
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile, PlanInForce
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control, Controller
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.pipeline.graph import Node, RunningGraph
from sluicegate.spark.pipeline.observing import Observer
from sluicegate.spark.supervisor import ControllerFailed, Supervisor

GRAPH = RunningGraph("one", ("rows",), (Node("work", ("rows",), ("work",), False, 8, True, None),), ("work",))
MU_PER_S, OVERHEAD_S, PER_TASK_S = 100.0, 0.2, 0.02


class Pipeline:
    """What a pipeline of one operator leaves on disk, batch by batch, at a rate and with the k of its plan."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder)
        self.layout.folder.mkdir()
        self.layout.description.write_text(GRAPH.to_json())
        schema = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long"}]})
        for stream in ("rows", "work"):
            FolderEdge(self.layout.edge(stream)).create(schema)
        (self.layout.checkpoint("work") / "offsets").mkdir(parents=True)
        PlanFile(self.layout.plan).write(PlanInForce(1, {"work": OperatorPlan(1)}))
        self.batch = 0

    @property
    def k(self) -> int:
        return PlanFile(self.layout.plan).read().of("work").processors

    def second(self, now_s: float, rows: int) -> None:
        """``rows`` come in and are taken by one batch, by the micro-batch law."""
        born = Births.of([(now_s - 0.5, float(rows))])
        file = DataFile(f"data/{self.batch}-x/part-0.parquet", rows)
        FolderEdge(self.layout.edge("rows")).publish(self.batch, [file], born, now_s - 0.4)
        FolderEdge(self.layout.edge("work")).publish(self.batch, [file], born, now_s)
        offset = json.dumps({"edge": "rows", "next": self.batch + 1})
        (self.layout.checkpoint("work") / "offsets" / str(self.batch)).write_text(f"v1\n{{}}\n{offset}")
        work_s = rows / MU_PER_S
        took_s = OVERHEAD_S + PER_TASK_S * self.k + work_s / self.k
        record = BatchRecord(
            self.batch, now_s - took_s, now_s, took_s, rows, rows, self.k, now_s - 0.4, born, work_s=work_s
        )
        append_line(self.layout.batches("work"), record.to_json())
        self.batch += 1


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path / "p")


def drive(pipeline: Pipeline, control: Control, rates: list[int], at_s: float = 1000.0) -> Controller:
    controller = Controller(pipeline.layout, control)
    for step, rate in enumerate(rates):
        pipeline.second(at_s + step, rate)
        controller.step(at_s + step)
    return controller


CONTROL = Control(slo=("mean=2s",), budget=16, interval_s=1.0, cooldown_s=3.0, settle_down_s=10.0)


def test_more_load_brings_more_processors_and_less_brings_them_back(pipeline: Pipeline) -> None:
    drive(pipeline, CONTROL, [50] * 10)
    calm = pipeline.k
    drive(pipeline, CONTROL, [350] * 20, at_s=2000.0)
    busy = pipeline.k
    drive(pipeline, CONTROL, [50] * 60, at_s=3000.0)
    assert calm <= 2
    assert busy >= 4
    assert pipeline.k < busy


def test_a_batch_takes_no_more_than_the_promise_leaves_time_for(pipeline: Pipeline) -> None:
    """Else a backlog becomes one batch of minutes, in which new processors are idle."""
    drive(pipeline, CONTROL, [50] * 5 + [350] * 20)
    planned = PlanFile(pipeline.layout.plan).read().of("work")
    took_s = OVERHEAD_S + PER_TASK_S * planned.processors + planned.most_rows / (MU_PER_S * planned.processors)
    assert 2.0 < took_s < 3 * 2.0
    drive(pipeline, replace(CONTROL, slo=()), [350] * 5, at_s=2000.0)
    assert PlanFile(pipeline.layout.plan).read().of("work").most_rows == OperatorPlan().most_rows


def test_every_move_is_logged_with_its_reasons(pipeline: Pipeline) -> None:
    drive(pipeline, CONTROL, [50] * 5 + [350] * 20)
    moves = [json.loads(line) for line in pipeline.layout.decisions.read_text().splitlines()]
    assert moves
    assert any(move["rescales"] for move in moves)
    assert all((move["rescales"] or move["changes"]) and move["reasons"] for move in moves)


def test_moves_are_numbered_on_across_a_restart_of_the_controller(pipeline: Pipeline) -> None:
    drive(pipeline, CONTROL, [50] * 5 + [350] * 20)
    drive(pipeline, CONTROL, [50] * 60, at_s=2000.0)
    numbers = [json.loads(line)["number"] for line in pipeline.layout.decisions.read_text().splitlines()]
    assert len(numbers) > 1
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_folder_says_who_decides_and_what_was_promised(pipeline: Pipeline) -> None:
    Controller(pipeline.layout, CONTROL)
    told = json.loads(pipeline.layout.control.read_text())
    assert (told["policy"], told["bounds"], told["budget"]) == ("sluicegate", {"mean": 2.0}, 16)


def test_what_would_run_under_more_load_is_told_before_it_comes(pipeline: Pipeline) -> None:
    drive(pipeline, CONTROL, [100] * 20)
    points = json.loads(pipeline.layout.what_if.read_text())["points"]
    totals = [point["total"] for point in points]
    assert totals == sorted(totals)
    assert totals[-1] > totals[0]
    assert points[0]["rate_per_s"] < 100 < points[-1]["rate_per_s"]
    assert all(point["why"] for point in points)


def test_of_a_policy_that_only_reacts_the_table_says_where_it_comes_to_rest(pipeline: Pipeline) -> None:
    drive(pipeline, replace(CONTROL, policy="hpa"), [100] * 20)
    points = json.loads(pipeline.layout.what_if.read_text())["points"]
    assert points[-1]["total"] > points[0]["total"]
    assert "reactive" in points[0]["why"]


def test_every_look_tells_forecast_prediction_and_variability(pipeline: Pipeline) -> None:
    drive(pipeline, CONTROL, [100] * 20)
    tick = json.loads(pipeline.layout.ticks.read_text().splitlines()[-1])
    low, mean, high = (tick["forecast"][f"{what}_per_s"][0] for what in ("low", "mean", "high"))
    assert low <= mean <= high
    assert tick["predicted_mean_s"] > 0
    assert tick["operators"]["work"]["arrival_scv"] == 0.0
    assert tick["operators"]["work"]["service_scv"] == pytest.approx(0.0, abs=1e-9)


def test_a_dry_run_advises_and_moves_nothing(pipeline: Pipeline) -> None:
    control = Control(slo=("mean=2s",), budget=16, interval_s=1.0, cooldown_s=3.0, dry_run=True)
    before = pipeline.layout.plan.read_text()
    drive(pipeline, control, [350] * 15)
    assert pipeline.layout.plan.read_text() == before
    assert pipeline.layout.decisions.exists()


def test_a_controller_that_returns_goes_on_with_the_plan_in_force(pipeline: Pipeline) -> None:
    drive(pipeline, CONTROL, [350] * 20)
    k = pipeline.k
    again = Controller(pipeline.layout, CONTROL)
    pipeline.second(1100.0, 350)
    seen, decision = again.step(1100.0)
    assert seen.running == {"work": k}
    assert not decision.moves
    assert pipeline.k == k


def test_a_controller_whose_pipeline_is_gone_before_it_began_ends_at_once(pipeline: Pipeline) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    command = [sys.executable, "-m", "sluicegate.spark.controller", str(pipeline.layout.folder), f"--parent={gone.pid}"]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def test_the_law_of_the_batches_is_learned_from_the_log(pipeline: Pipeline) -> None:
    controller = drive(pipeline, CONTROL, [60, 90, 150, 220, 300, 350, 350, 200, 100, 60] * 3)
    learned = controller.state.learned.topology.operator("work")
    assert learned.service_per_s == pytest.approx(MU_PER_S, rel=0.05)
    assert learned.batch is not None
    assert learned.batch.overhead_s + learned.batch.per_task_s == pytest.approx(OVERHEAD_S + PER_TASK_S, rel=0.25)


def test_rows_that_no_batch_has_taken_are_the_queue_and_little_holds(pipeline: Pipeline) -> None:
    observer = Observer.of(pipeline.layout, GRAPH)
    pipeline.second(1000.0, 100)
    observer.observe(1000.0)
    pipeline.second(1001.0, 100)
    FolderEdge(pipeline.layout.edge("rows")).publish(2, [DataFile("data/2-x/part-0.parquet", 40)], Births(), 1001.5)
    seen = observer.observe(1002.0)
    assert seen.arrivals_per_s == pytest.approx(140 / 1.9)  # since the manifest before, published at 999.6
    assert seen.of("work").queue_rows == 40
    assert seen.backlog_rows == 40
    # 100 rows were inside for 0.4 s each in these 2 s: L = lambda W
    assert seen.of("work").sojourn_s == pytest.approx(0.4)


def never_pausing(pipeline: Pipeline, work_s: float, task_s: tuple[float, ...] = ()) -> OperatorObservation:
    """Three batches of a second, of 100 rows by two tasks, one after the other, and 40 rows that no batch has taken."""
    observer = Observer.of(pipeline.layout, GRAPH)
    PlanFile(pipeline.layout.plan).write(PlanInForce(2, {"work": OperatorPlan(2)}))
    observer.observe(1000.0)
    for batch in range(3):
        file = DataFile(f"data/{batch}-x/part-0.parquet", 100)
        for stream in ("rows", "work"):
            FolderEdge(pipeline.layout.edge(stream)).publish(batch, [file], Births(), 1000.5 + batch)
        offset = json.dumps({"edge": "rows", "next": batch + 1})
        (pipeline.layout.checkpoint("work") / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offset}")
        end_s = 1001.0 + batch
        one = BatchRecord(batch, end_s - 1.0, end_s, 1.0, 100, 100, 2, end_s - 1.0, Births(), work_s=work_s)
        one = replace(one, task_s=task_s, task_rows=(50,) * len(task_s))
        append_line(pipeline.layout.batches("work"), one.to_json())
    FolderEdge(pipeline.layout.edge("rows")).publish(3, [DataFile("data/3-x/part-0.parquet", 40)], Births(), 1003.0)
    return observer.observe(1003.0).of("work")


def test_a_saturated_operator_and_the_queues_of_its_instances_are_measured(pipeline: Pipeline) -> None:
    """Two tasks, one of half the speed, that never wait for rows."""
    seen = never_pausing(pipeline, work_s=1.5, task_s=(0.5, 1.0))
    assert seen.saturated_per_s == pytest.approx(100.0)
    # an equal part of the 40 rows each; the slow one still had half of its 50 when the other was done
    assert seen.instance_queues == (20.0, 45.0)


def test_batches_without_a_pause_that_are_mostly_overhead_are_not_the_most_that_is_carried(pipeline: Pipeline) -> None:
    """Rows come all the time, so that batches of a tenth of the capacity follow one another and rows always wait."""
    seen = never_pausing(pipeline, work_s=0.2)
    assert (seen.utilisation, seen.queue_rows) == (1.0, 40.0)
    assert seen.saturated_per_s is None


def test_an_even_load_is_measured_evenly_although_its_lumps_fall_unevenly_between_looks(pipeline: Pipeline) -> None:
    observer, looked_s, rates = Observer.of(pipeline.layout, GRAPH), 1000.0, []
    for lump in range(60):
        at_s = 1000.1 + 0.3 * lump
        while looked_s + 1.0 <= at_s:
            looked_s += 1.0
            rates.append(observer.observe(looked_s).arrivals_per_s)
        file = DataFile(f"data/{lump}-x/part-0.parquet", 30)
        FolderEdge(pipeline.layout.edge("rows")).publish(lump, [file], Births(), at_s)
    assert rates[2:] == pytest.approx([100.0] * (len(rates) - 2))


def test_the_sojourn_is_from_birth_to_the_last_operator(pipeline: Pipeline) -> None:
    observer = Observer.of(pipeline.layout, GRAPH)
    pipeline.second(1000.0, 10)
    sojourn = observer.observe(1000.0).sojourn
    assert sojourn is not None
    assert sojourn.mean_s == pytest.approx(0.5)


def test_what_runs_is_what_batches_were_cut_for_not_what_was_asked_for(pipeline: Pipeline) -> None:
    observer, plan = Observer.of(pipeline.layout, GRAPH), PlanFile(pipeline.layout.plan)
    pipeline.second(1000.0, 100)
    assert not observer.observe(1000.0).rescaling
    plan.change({"work": OperatorPlan(4)})
    for stream in ("rows", "work"):
        FolderEdge(pipeline.layout.edge(stream)).publish(1, [DataFile("data/1-x/part-0.parquet", 40)], Births(), 1000.5)
    waiting = observer.observe(1001.0)
    assert (waiting.running, waiting.rescaling, waiting.overdue) == ({"work": 1}, True, ())
    late = observer.observe(1040.0)
    assert (late.running, late.rescaling) == ({"work": 1}, False)
    assert late.overdue == ("work: 4 tasks asked for 39 s ago, no batch has begun with them",)
    pipeline.batch = 2
    pipeline.second(1041.0, 100)
    done = observer.observe(1041.0)
    assert (done.running, done.rescaling, done.overdue) == ({"work": 4}, False, ())


def test_a_plan_that_no_batch_has_begun_with_yet_is_not_taken_back(pipeline: Pipeline) -> None:
    """What was asked for stays asked for, though it does not run yet; more may be asked for beside it."""
    controller = drive(pipeline, CONTROL, [100] * 5)
    PlanFile(pipeline.layout.plan).change({"work": OperatorPlan(5)})
    for stream in ("rows", "work"):
        files = [DataFile(f"data/{pipeline.batch}-x/part-0.parquet", 400)]
        FolderEdge(pipeline.layout.edge(stream)).publish(pipeline.batch, files, Births(), 1005.0)
    seen, decision = controller.step(1006.0)
    assert (seen.rescaling, seen.running["work"] < 5) == (True, True)
    assert decision.running["work"] >= 5
    assert pipeline.k >= 5
    numbered = len(pipeline.layout.decisions.read_text().splitlines()) if pipeline.layout.decisions.exists() else 0
    for step in range(3):
        controller.step(1007.0 + step)
    again = len(pipeline.layout.decisions.read_text().splitlines()) if pipeline.layout.decisions.exists() else 0
    assert again - numbered <= 1  # what was decided once is not decided again at every look until it runs


def test_nothing_is_taken_from_an_operator_of_which_no_batch_has_ended(pipeline: Pipeline) -> None:
    PlanFile(pipeline.layout.plan).write(PlanInForce(1, {"work": OperatorPlan(6)}))
    controller = Controller(pipeline.layout, CONTROL)
    for step in range(6):
        file = DataFile(f"data/{step}-x/part-0.parquet", 10)
        FolderEdge(pipeline.layout.edge("rows")).publish(step, [file], Births(), 1000.0 + step)
        seen, decision = controller.step(1000.0 + step)
    assert seen.unmeasured == {"work"}
    assert pipeline.k == 6
    assert "no batch of work yet: it stays at 6" in [refusal.why for refusal in decision.refusals]


def test_executors_that_do_not_come_are_said_with_the_reason_and_the_loop_goes_on(pipeline: Pipeline) -> None:
    fleet = FleetSeen(Shape(), (ExecutorSeen("h1", 1),), None, 3, 1000.0, "the master has no free cores")
    pipeline.second(1000.0, 100)
    observer = Observer.of(pipeline.layout, GRAPH)
    seen = []
    for now_s in (1002.0, 1150.0):
        pipeline.layout.fleet_seen.write_text(json.dumps({"at_s": now_s, **asdict(fleet)}))
        seen.append(observer.observe(now_s))
    assert [(one.rescaling, one.starting) for one in seen] == [(True, True), (False, False)]
    assert seen[0].fleet == fleet
    said = "3 executors asked for 150 s ago, 1 are there, 1 of them warm: the master has no free cores"
    assert seen[1].overdue == (said,)


def test_as_many_executors_as_before_are_wanted_while_none_are_reported(pipeline: Pipeline) -> None:
    """As while a node starts, which may take minutes: fewer would be drained for no reason."""
    controller = Controller(pipeline.layout, CONTROL)
    for now_s in range(1000, 1020):
        fleet = FleetSeen(Shape(2, 1, 4), (ExecutorSeen("h1", 2),), None, 1)
        pipeline.layout.fleet_seen.write_text(json.dumps({"at_s": float(now_s), **asdict(fleet)}))
        pipeline.second(float(now_s), 350)
        controller.step(float(now_s))
    wanted = PlanFile(pipeline.layout.plan).read().executors
    assert wanted is not None
    assert wanted > 1
    for now_s in range(1020, 1060):  # the last report is too old by now
        pipeline.second(float(now_s), 350)
        controller.step(float(now_s))
    assert PlanFile(pipeline.layout.plan).read().executors == wanted


def test_shares_are_withdrawn_once_the_policy_asks_for_none(pipeline: Pipeline) -> None:
    PlanFile(pipeline.layout.plan).write(PlanInForce(1, {"work": OperatorPlan(2, shares=(0.7, 0.3))}))
    drive(pipeline, CONTROL, [100] * 5)
    assert PlanFile(pipeline.layout.plan).read().of("work").shares == ()


def test_a_folder_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="start it first"):
        Controller(Layout(tmp_path), CONTROL)


def test_a_controller_that_cannot_start_is_an_error_with_the_last_line_of_its_log(pipeline: Pipeline) -> None:
    pipeline.layout.description.write_text("{")
    with Supervisor(pipeline.layout, CONTROL) as supervisor:
        assert wait_until(lambda: supervisor.problem is not None, 120.0, 0.1)
        with pytest.raises(ControllerFailed, match=r"start \(3 tries\): .*json is torn or overwritten") as failed:
            supervisor.check()
        assert "\n" not in str(failed.value)
        assert str(pipeline.layout.controller_log) in str(failed.value)
        assert len(supervisor.deaths) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slo": ("mean3s",)}, "write NAME=VALUE"),
        ({"slo": "mean=3s"}, "give texts such as"),
        ({"slo": ("mean=0s",)}, "mean_s"),
        ({"policy": "slucegate"}, "did you mean 'sluicegate'"),
        ({"policy": None}, "give its name"),
        ({"policy": "hindsight"}, "needs the future load"),
        ({"budget": 0}, "at least 1 processor"),
        ({"budget": -3}, "at least 1 processor"),
        ({"budget": 2.5}, "at least 1 processor"),
        ({"interval_s": 0.0}, "above 0"),
        ({"cooldown_s": -1.0}, "0 or more"),
        ({"startup_s": float("nan")}, "0 or more"),
    ],
)
def test_what_the_controller_could_not_use_is_refused_where_it_is_given(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Control(**given)


def test_a_killed_controller_is_started_again_and_the_plan_stays(pipeline: Pipeline) -> None:
    before = pipeline.layout.plan.read_text()
    with Supervisor(pipeline.layout, CONTROL) as supervisor:
        first = supervisor.process.pid
        supervisor.process.send_signal(signal.SIGKILL)
        assert wait_until(lambda: supervisor.process.pid != first, 60.0, 0.1)
        assert supervisor.process.poll() is None
        assert supervisor.deaths == [-signal.SIGKILL]
        assert pipeline.layout.plan.read_text() == before


def test_a_controller_killed_while_its_log_cannot_be_opened_is_started_once_it_can(pipeline: Pipeline) -> None:
    """A disk that fails for some seconds: it had ended the thread that watches, so that nobody controlled any more."""
    log = pipeline.layout.controller_log
    with Supervisor(pipeline.layout, CONTROL) as supervisor:
        first = supervisor.process
        log.unlink()
        log.mkdir()
        first.kill()
        assert wait_until(lambda: bool(supervisor.deaths), 60.0, 0.1)
        time.sleep(2.5)  # in which it is tried several times
        assert supervisor.process is first
        assert supervisor.deaths == [-signal.SIGKILL], "one death, however often it is tried"
        log.rmdir()
        assert wait_until(lambda: supervisor.process is not first, 60.0, 0.1)
        supervisor.check()
