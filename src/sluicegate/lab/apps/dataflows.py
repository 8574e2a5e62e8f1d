"""Linear, diamond and star: the micro dataflows of model-driven scheduling, of its five tasks (``five_tasks``).

    linear    messages - blob - table - pi - parse - batch                  5 tasks at the rate of the source
    diamond   messages to blob, table, parse and batch, all of them to pi   pi at 4 times the rate
    star      messages to blob and table, both to pi, pi to parse and batch the hub and what follows at twice the rate

Every operator is stateless, emits one row for each row, and has its own query and k. The output of an operator goes to
all its readers, and outputs of several operators are read as a union. So for a message linear emits one row and the
other two emit four: one for each path through the graph, with the answers of the tasks on that path.

The paper assigns the tasks to the vertices of the star at random; here as in ``lab.reproduce.dataflows``. Its sink
reads both ends of the star; here each end has its own sink. ``..._waiting`` are the same, with tasks that sleep instead
of computing. Message i is a formula of i.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.lab.apps.five_tasks import SCHEMA, STORE_WAITS_S, TaskSurroundings, answers, doing
from sluicegate.lab.apps.inputs.local_store import local_store
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream

Path = tuple[str, ...]
"""The tasks that a row passes, in order."""
Reading = Callable[[str, Stream], Stream]
"""Adds the operator of a task that reads a stream."""
COLUMNS = ("blob", "table", "pi", "parse", "batch")
EACH_ONCE: Mapping[str, str] = {name: name for name in COLUMNS}
"""The task of each operator, by the operator's column: here every task has one operator, named like it."""
TEXT = ("pi",)
"""Tasks whose answer is text; other answers are numbers."""
NOWHERE = TaskSurroundings(store_port=0, archive="nowhere")
_NUMBERS = 10**10


def linear(pipeline: Pipeline, messages: Stream, task: Reading) -> None:
    stream = messages
    for name in ("blob", "table", "pi", "parse", "batch"):
        stream = task(name, stream)
    pipeline.sink("done", stream)


def diamond(pipeline: Pipeline, messages: Stream, task: Reading) -> None:
    fan = task("blob", messages) | task("table", messages) | task("parse", messages) | task("batch", messages)
    pipeline.sink("done", task("pi", fan))


def star(pipeline: Pipeline, messages: Stream, task: Reading) -> None:
    hub = task("pi", task("blob", messages) | task("table", messages))
    pipeline.sink("parsed", task("parse", hub))
    pipeline.sink("batched", task("batch", hub))


@dataclass(frozen=True, slots=True)
class Dataflow:
    """A dataflow: ``paths`` from the source to a sink; with ``waiting`` tasks sleep instead of computing."""

    shape: Callable[[Pipeline, Stream, Reading], None]
    paths: tuple[Path, ...]
    about: str
    calm_per_s: float
    slo: str
    waiting: bool = False

    @property
    def name(self) -> str:
        return self.shape.__name__ + ("_waiting" if self.waiting else "")


def build(dataflow: Dataflow, beside: TaskSurroundings = NOWHERE) -> Pipeline:
    pipeline = Pipeline(dataflow.name)

    def task(name: str, stream: Stream) -> Stream:
        return pipeline.operator(name, doing(name, beside), stream, fuse=False)

    dataflow.shape(pipeline, pipeline.source("messages", SCHEMA), task)
    return pipeline


def numbers(first: int, count: int) -> list[int]:
    """The numbers in the messages: every number below 10^10 once before any repeats."""
    at = np.arange(first, first + count, dtype=np.int64)
    return ((at * 2654435761 + 12345) % _NUMBERS).tolist()


def rows(source: str, first: int, count: int, tasks: Mapping[str, str] = EACH_ONCE) -> pa.Table:
    """Messages of ten bytes, with empty answer columns."""
    ids = pa.array(np.arange(first, first + count, dtype=np.int64))
    messages = pa.array([f"{number:010d}" for number in numbers(first, count)], pa.string())
    empty = {name: pa.nulls(count, pa.string() if task in TEXT else pa.int64()) for name, task in tasks.items()}
    return pa.table({"id": ids, "message": messages, **empty})


def expected(total: int, paths: Sequence[Collection[str]], tasks: Mapping[str, str] = EACH_ONCE) -> Counter[object]:
    """The expected rows: per message one for each path, with the answers of the operators on that path only."""
    found: Counter[object] = Counter()
    for at, number in enumerate(numbers(0, total)):
        right = answers(number)
        found.update((at, *(right[task] if name in path else None for name, task in tasks.items())) for path in paths)
    return found


def check(
    fed: Mapping[str, int],
    sinks: Mapping[str, DataFrame],
    paths: Sequence[Collection[str]],
    tasks: Mapping[str, str] = EACH_ONCE,
) -> Answer:
    """Compare the rows of all sinks with the expected rows."""
    found: Counter[object] = Counter()
    for sink in sinks.values():
        found.update(tuple(row) for row in sink.select("id", *tasks).collect())
    return compare(expected(fed["messages"], paths, tasks), found, found.total())


@contextmanager
def surroundings(waiting: bool) -> Iterator[TaskSurroundings]:
    """A store to query and a folder to write to, within the block."""
    with TemporaryDirectory(prefix="sluicegate-archive-") as archive, local_store(STORE_WAITS_S) as port:
        yield TaskSurroundings(port, archive, waiting)


def application(
    build: Callable[[TaskSurroundings], Pipeline],
    paths: Sequence[Collection[str]],
    tasks: Mapping[str, str],
    *,
    name: str,
    about: str,
    paper: str,
    calm_per_s: float,
    slo: str,
    waiting: bool,
) -> App:
    """A dataflow of the five tasks; it is brought up with a store and a folder of its own."""

    def on(beside: TaskSurroundings) -> App:
        return App(
            name=name,
            about=about + (", none of which computes" if waiting else ""),
            paper=paper,
            build=partial(build, beside),
            rows=partial(rows, tasks=tasks),
            check=partial(check, paths=paths, tasks=tasks),
            calm_per_s=calm_per_s,
            slo=slo,
            beside=brought_up,
        )

    @contextmanager
    def brought_up() -> Iterator[App]:
        with surroundings(waiting) as beside:
            yield on(beside)

    return on(NOWHERE)


_LINEAR = (("blob", "table", "pi", "parse", "batch"),)
_DIAMOND = (("blob", "pi"), ("table", "pi"), ("parse", "pi"), ("batch", "pi"))
_STAR = (("blob", "pi", "parse"), ("blob", "pi", "batch"), ("table", "pi", "parse"), ("table", "pi", "batch"))
_ABOUT = {
    "linear": "five tasks in a row: blob, table, pi, XML parse, batch file write",
    "diamond": "four tasks side by side, then pi for what all of them give",
    "star": "blob and table into a hub (pi), which gives to XML parse and batch file write",
}

DATAFLOWS = (
    Dataflow(linear, _LINEAR, _ABOUT["linear"], calm_per_s=40.0, slo="mean=6s"),
    Dataflow(diamond, _DIAMOND, _ABOUT["diamond"], calm_per_s=20.0, slo="mean=6s"),
    Dataflow(star, _STAR, _ABOUT["star"], calm_per_s=25.0, slo="mean=6s"),
    Dataflow(linear, _LINEAR, _ABOUT["linear"], calm_per_s=100.0, slo="mean=6s", waiting=True),
    Dataflow(diamond, _DIAMOND, _ABOUT["diamond"], calm_per_s=80.0, slo="mean=6s", waiting=True),
    Dataflow(star, _STAR, _ABOUT["star"], calm_per_s=60.0, slo="mean=6s", waiting=True),
)
APPS = tuple(
    application(
        partial(build, dataflow),
        dataflow.paths,
        EACH_ONCE,
        name=dataflow.name,
        about=dataflow.about,
        paper=f"model-driven ({dataflow.shape.__name__})",
        calm_per_s=dataflow.calm_per_s,
        slo=dataflow.slo,
        waiting=dataflow.waiting,
    )
    for dataflow in DATAFLOWS
)
