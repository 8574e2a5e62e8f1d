"""Source, one operator, sink: the pipeline that an operator is measured in, and rows for it to work on.

Rows of a source are the application's own. What other operators give it is recorded first: everything before the
operator runs on a few hundred rows, and what reaches the operator is then fed over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from sluicegate.errors import BadInput
from sluicegate.lab.running.app import App
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.schema import schema_of
from sluicegate.spark.pipeline.declaration import Pipeline, Step, Stream
from sluicegate.spark.pipeline.runtime import start

_RECORDED_ROWS = 400
Rows = Callable[[int, int], pa.Table]


@dataclass(frozen=True, slots=True)
class Input:
    """One stream that the operator reads: ``rows(first, count)``, and its share of all rows that reach the operator."""

    schema: str
    rows: Rows
    share: float


@dataclass(frozen=True, slots=True)
class Bench:
    """The operator ready to be measured. ``inputs`` are by source of ``pipeline``."""

    pipeline: Pipeline
    operator: str
    inputs: Mapping[str, Input]
    recorded: bool


def the_step(app: App, operator: str) -> Step:
    """The operator as declared; a name that is not there is one line."""
    steps = app.build().steps
    known = [name for name, step in steps.items() if step.source is None]
    if operator not in known:
        raise BadInput(f"application {app.name!r} has no operator {operator!r}: it has {', '.join(known)}")
    if app.rows is None:
        raise BadInput(
            f"application {app.name!r} makes no rows of its own: let the file say app = App(..., rows=...), see "
            "docs/profile.md"
        )
    return steps[operator]


def bench_for(app: App, operator: str, spark: SparkSession, folder: Path) -> Bench:
    """``app`` is brought up already."""
    step, declared = the_step(app, operator), app.build()
    make = app.rows
    assert make is not None
    fed = {name for name in step.inputs if name in declared.sources and declared.sources[name].stream is None}
    recorded = _recorded(app, step, spark, folder) if set(step.inputs) - fed else {}
    total = sum(table.num_rows for _, table in recorded.values())
    inputs = {}
    for name in step.inputs:
        if name in fed:
            share = recorded[name][1].num_rows / total if recorded else 1 / len(step.inputs)
            inputs[_plain(name)] = Input(declared.sources[name].schema, _of_source(make, name), share)
        else:
            schema, table = recorded[name]
            inputs[_plain(name)] = Input(schema, _over_and_over(table), table.num_rows / total)
    return Bench(_pipeline(app, step, inputs), operator, inputs, bool(recorded))


def _pipeline(app: App, step: Step, inputs: Mapping[str, Input]) -> Pipeline:
    made = Pipeline(app.name)
    streams = {name: made.source(name, one.schema) for name, one in inputs.items()}
    reads = [_union([streams[_plain(name)] for name in union]) for union in step.reads]
    if step.outputs:
        out = made.splitter(
            step.name,
            step.function,
            *reads,
            outputs=step.outputs,
            stateful=step.stateful,
            mode=step.mode,
            key_groups=step.key_groups,
            retry_for_s=0.0,
        )
        for output in step.outputs:
            made.sink(f"out-{output}", out[output], keep="1min")
        return made
    stream = made.operator(
        step.name,
        step.function,
        *reads,
        stateful=step.stateful,
        mode=step.mode,
        fuse=False,
        key_groups=step.key_groups,
        retry_for_s=0.0,
    )
    made.sink("out", stream, keep="1min")
    return made


def _union(streams: list[Stream]) -> Stream:
    first, *rest = streams
    for one in rest:
        first = first | one
    return first


def _recorded(app: App, step: Step, spark: SparkSession, folder: Path) -> dict[str, tuple[str, pa.Table]]:
    """Schema and rows of every stream that the step reads, from a short run of what comes before it."""
    pipeline = app.build()
    origin = {name: pipeline.closed.get(name, name) for name in step.inputs}
    needed = _before(pipeline, set(origin.values()))
    pipeline.steps = {name: one for name, one in pipeline.steps.items() if name in needed}
    read = {name for one in pipeline.steps.values() for name in one.inputs}
    pipeline.sources = {n: s for n, s in pipeline.sources.items() if n in read}
    pipeline.loops = {n: s for n, s in pipeline.loops.items() if n in read}
    pipeline.closed = {n: s for n, s in pipeline.closed.items() if n in read}
    written = {stream for one in pipeline.steps.values() for stream in one.streams}
    pipeline.sinks = {}
    for number, stream in enumerate(sorted(written - (read - set(origin.values())))):
        pipeline.sink(f"recorded-{number}", Stream((stream,)))
    with start(pipeline, spark, folder, fuse=False, retry_for_s=0.0, when_stopped="raise") as running:
        for source in running.graph.sources:
            assert app.rows is not None
            running.feed(source).append(app.rows(source, 0, _RECORDED_ROWS))
        running.drain()
        found = {}
        for name, stream in origin.items():
            if stream in pipeline.sources:
                assert app.rows is not None
                table = app.rows(stream, 0, _RECORDED_ROWS)
            else:
                table = running.read(stream).toArrow()
            fields = schema_of(FolderEdge(running.layout.edge(stream))).fields
            ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in fields)
            found[name] = (ddl, table)
    if not any(table.num_rows for _, table in found.values()):
        raise BadInput(
            f"of {_RECORDED_ROWS} rows of {app.name!r} none reaches {step.name!r}: profile an operator before it, or "
            "let the application make rows that do"
        )
    return found


def _before(pipeline: Pipeline, streams: set[str]) -> set[str]:
    """The steps that write these streams, and all before them."""
    found: set[str] = set()
    while True:
        fresh = {name for name, one in pipeline.steps.items() if streams & set(one.streams)} - found
        if not fresh:
            return found
        found |= fresh
        read = {stream for name in fresh for stream in pipeline.steps[name].inputs}
        streams = {pipeline.closed.get(stream, stream) for stream in read}


def _of_source(make: Callable[[str, int, int], pa.Table], name: str) -> Rows:
    return lambda first, count: make(name, first, count)


def _over_and_over(table: pa.Table) -> Rows:
    def rows(first: int, count: int) -> pa.Table:
        at = [n % max(table.num_rows, 1) for n in range(first, first + count)]
        return table.take(at)

    return rows


def _plain(stream: str) -> str:
    """A stream's name as that of a source.

    >>> _plain("detect.found")
    'from-detect-found'
    """
    return f"from-{stream.replace('.', '-')}"
