from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path

import pytest

from sluicegate.errors import EnvironmentLacks
from sluicegate.lab.apps import dataflows
from sluicegate.lab.apps.five_tasks import (
    LINE_BYTES,
    PLACES,
    TASKS,
    TaskSurroundings,
    answers,
    line,
    message_text,
    polygon,
    viete,
)
from sluicegate.lab.apps.inputs.local_store import BLOB_BYTES, local_store, reading
from sluicegate.lab.reproduce.dataflows import micro
from sluicegate.model.traffic import visits
from sluicegate.spark.pipeline.graph import RunningGraph, fused

AT_ONCE = {"blob": 0.0, "table": 0.0}
NUMBERS = dataflows.numbers(0, 300)


@pytest.mark.parametrize("dataflow", dataflows.DATAFLOWS, ids=lambda dataflow: dataflow.name)
def test_a_dataflow_has_the_edges_of_the_paper_and_a_query_for_each_task(dataflow: dataflows.Dataflow) -> None:
    pipeline = dataflows.build(dataflow)
    topology = RunningGraph.of(pipeline, fused(pipeline, fuse=True)).topology()
    paper = micro()[dataflow.shape.__name__]
    made = {(edge.origin.removesuffix(":messages"), edge.target) for edge in topology.edges}
    assert made == {(edge.origin, edge.target) for edge in paper.edges}
    assert sorted(topology.names) == sorted(dataflows.COLUMNS)


@pytest.mark.parametrize("dataflow", dataflows.DATAFLOWS, ids=lambda dataflow: dataflow.name)
def test_the_paths_visit_every_task_as_often_as_the_traffic_equations_say(dataflow: dataflows.Dataflow) -> None:
    paper = micro()[dataflow.shape.__name__]
    # A row that goes two ways after a task has visited it once: count how the paths begin.
    begun = {path[: place + 1] for path in dataflow.paths for place in range(len(path))}
    ends = Counter(beginning[-1] for beginning in begun)
    assert [ends[name] for name in paper.names] == visits(paper).tolist()


def test_messages_have_ten_bytes_and_none_comes_twice() -> None:
    messages = dataflows.rows("messages", 0, 20_000).column("message").to_pylist()
    assert {len(str(message)) for message in messages} == {10}
    assert len(set(messages)) == 20_000


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize("task", dataflows.COLUMNS)
def test_a_task_answers_what_another_route_gives(task: str, waiting: bool, tmp_path: Path) -> None:
    some = NUMBERS[:40]
    with local_store(AT_ONCE) as port, TASKS[task](TaskSurroundings(port, str(tmp_path), waiting)) as answer:
        assert [answer(number) for number in some] == [answers(number)[task] for number in some]


def test_the_product_of_viete_is_the_polygon_to_the_last_place() -> None:
    assert viete(PLACES) == polygon(PLACES)
    assert f"3.{viete(8)}" == str(math.pi)[:10]


def test_neighbouring_rows_rarely_have_the_same_answers() -> None:
    for task in ("blob", "table", "pi", "parse", "batch"):
        assert len({answers(number)[task] for number in NUMBERS}) >= 16


def test_every_row_is_a_line_in_the_archive(tmp_path: Path) -> None:
    for part in (NUMBERS[:150], NUMBERS[150:]):  # two batches of one process
        with TASKS["batch"](TaskSurroundings(0, str(tmp_path))) as write:
            for number in part:
                write(number)
    (file,) = tmp_path.iterdir()
    assert file.read_bytes() == b"".join(map(line, NUMBERS))
    assert {len(line(number)) for number in NUMBERS} == {LINE_BYTES}


def test_a_message_has_the_size_that_is_told() -> None:
    assert round(len(message_text(7)) / 1000) == 27


def test_the_store_waits_before_it_answers_and_serves_several_at_once() -> None:
    with local_store({"blob": 0.1}) as port, reading(port) as one, reading(port) as other:
        began_s = time.monotonic()
        assert len(one("/blob/3")) == BLOB_BYTES
        assert time.monotonic() - began_s >= 0.1
        assert one("/blob/5") == other("/blob/5") != one("/blob/6")


def test_what_the_store_does_not_hold_is_refused() -> None:
    with local_store(AT_ONCE) as port, reading(port) as get, pytest.raises(EnvironmentLacks, match="holds no /table/x"):
        get("/table/x")


def test_a_store_that_is_gone_is_told_with_what_brings_one_up() -> None:
    with local_store(AT_ONCE) as port:
        pass
    with reading(port) as get, pytest.raises(EnvironmentLacks, match=f"{port}: `sluicegate run` brings one up"):
        get("/blob/1")


def test_an_application_knows_its_store_and_its_folder_within_its_block() -> None:
    with (
        dataflows.surroundings(waiting=False) as beside,
        TASKS["blob"](beside) as read,
        TASKS["batch"](beside) as write,
    ):
        assert (read(1), write(1)) == (answers(1)["blob"], answers(1)["batch"])
    with pytest.raises(EnvironmentLacks, match="`sluicegate run` makes one"), TASKS["batch"](beside):
        pass
