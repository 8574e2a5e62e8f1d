"""What real-time mode refuses before Spark starts, and what the loop decides from the log of a query's seconds."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sluicegate.errors import BadInput
from sluicegate.lab.apps import chain, finance, fpd, payments, wordcount
from sluicegate.runlog.batch_log import append_line
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.controller import Control, Controller
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream
from sluicegate.spark.pipeline.graph import read_graph
from sluicegate.spark.realtime.marks import StageFigures, as_document
from sluicegate.spark.realtime.stages import begin_with, graph_of, reserve, sink_of, stages_of

SERVICE_S = {"screen": 0.002, "score": 0.025}
PER_S, SECONDS = 100, 12


def test_operators_in_a_row_are_stages_in_the_order_that_rows_pass_them() -> None:
    assert [step.name for step in stages_of(payments.build())] == ["screen", "score"]
    assert [step.name for step in stages_of(chain.build())] == ["parse", "enrich", "store"]


@pytest.mark.parametrize(
    ("pipeline", "why"),
    [
        (wordcount.build(), "operator 'count' is stateful"),
        (finance.build(), "has 2 sources"),
        (fpd.build(), "has a loop"),
    ],
)
def test_what_is_no_row_of_stateless_operators_is_refused(pipeline: Pipeline, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        stages_of(pipeline)


def test_two_readers_of_one_stream_and_a_sink_in_the_middle_are_refused() -> None:
    split = payments.build()
    split.sink("more", split.operator("also", lambda rows: rows, _stream(split, "screen")))
    with pytest.raises(BadInput, match="'score' and 'also' both read 'screen'"):
        stages_of(split)
    early = payments.build()
    early.sink("early", _stream(early, "screen"))
    with pytest.raises(BadInput, match="'early' takes 'screen'"):
        sink_of(early, stages_of(early))


def _stream(pipeline: Pipeline, name: str) -> Stream:
    return Stream((pipeline.steps[name].name,))


def test_the_first_stage_has_a_task_for_each_partition() -> None:
    graph = graph_of(payments.build(), stages_of(payments.build()), partitions=3)
    assert begin_with(graph, {"score": 2}) == {"screen": 3, "score": 2}
    with pytest.raises(BadInput, match="topic with 3 partitions"):
        begin_with(graph, {"screen": 2})
    with pytest.raises(BadInput, match="needs 5 task slots at once"):
        reserve(begin_with(graph, {"score": 2}), 4)


def left_by_a_run(folder: Path, score: int, mean_s: float, pause_s: float | None = None) -> Layout:
    """What a driver writes: the graph, the plan, and a line a second."""
    layout, now_s = Layout(folder), time.time()
    write_whole(layout.description, graph_of(payments.build(), stages_of(payments.build()), 1).to_json())
    running = {"screen": 1, "score": score}
    PlanFile(layout.plan).add(running)
    stages = {name: StageFigures(PER_S, PER_S * s, 2 * PER_S * s * s, PER_S * s) for name, s in SERVICE_S.items()}
    slow = {name: StageFigures(PER_S, PER_S * 9.0) for name in SERVICE_S}
    for second in range(SECONDS):
        line = {
            "at_s": now_s - SECONDS + second,
            "span_s": 1.0,
            "came": PER_S + (10 if second % 2 else -10),
            "out": PER_S,
            "running": running,
            "rescaling": False,
            "cold": second < 2,
            "pause_s": pause_s,
            "counted": {"screen": PER_S, "score": PER_S},
            "stages": as_document(slow if second < 2 else stages),
            "ages": [[mean_s, PER_S]],
        }
        append_line(layout.stages, json.dumps(line))
    return layout


def test_k_of_a_stage_is_planned_by_what_single_rows_took(tmp_path: Path) -> None:
    layout = left_by_a_run(tmp_path, score=1, mean_s=4.0)
    controller = Controller(layout, Control("drs-gigk", ("mean=1s",), budget=8, cooldown_s=0.0))
    seen, decision = controller.step(time.time())
    assert seen.operators["score"].service_per_s == pytest.approx(1 / SERVICE_S["score"])
    assert seen.operators["score"].service_scv == pytest.approx(1.0)
    assert seen.arrivals_per_s == pytest.approx(PER_S)
    assert decision.running["screen"] == 1, "it has one partition to read"
    assert 3 <= decision.running["score"] <= 7, "100 rows/s at 25 ms each are 2.5 tasks"
    assert PlanFile(layout.plan).read().of("score").processors == decision.running["score"]
    assert json.loads(layout.decisions.read_text())["rescales"][0]["operator"] == "score"


def test_a_restart_that_costs_more_than_it_brings_is_refused_with_its_measured_pause(tmp_path: Path) -> None:
    layout = left_by_a_run(tmp_path, score=6, mean_s=0.06, pause_s=900.0)
    controller = Controller(layout, Control("drs-gigk", ("mean=1s",), budget=8, cooldown_s=0.0))
    _, decision = controller.step(time.time())
    assert decision.running == {"screen": 1, "score": 6}
    (refusal,) = [one for one in decision.refusals if one.rule == "it pays"]
    assert "900 s pause" in refusal.why
    cheap = left_by_a_run(tmp_path / "cheap", score=6, mean_s=0.06, pause_s=1.5)
    _, decision = Controller(cheap, Control("drs-gigk", ("mean=1s",), budget=8, cooldown_s=0.0)).step(time.time())
    assert decision.running["score"] < 6


def test_the_mode_of_a_run_is_in_its_folder(tmp_path: Path) -> None:
    graph = read_graph(left_by_a_run(tmp_path, 1, 1.0))
    assert graph is not None
    assert graph.mode == "real-time"
    assert all(operator.batch is None for operator in graph.topology().operators)
