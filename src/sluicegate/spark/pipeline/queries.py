"""Builds Spark queries from groups of operators: derives schemas along the graph, binds queries to edges."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StructField, StructType, VarcharType

from sluicegate.errors import BadInput, SluicegateError
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.act.group_loads import GroupLoads
from sluicegate.spark.edges.backlog import Backlog
from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import state_partitions
from sluicegate.spark.edges.pace import Pace
from sluicegate.spark.edges.planner import EdgePlanner
from sluicegate.spark.kafka.connector import with_connector
from sluicegate.spark.kafka.edge import KafkaEdge
from sluicegate.spark.kafka.records import PIECES, check_columns, received
from sluicegate.spark.pipeline.batch_writer import BatchWriter
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import OUTPUT, Step
from sluicegate.spark.pipeline.event_time import (
    EdgeNode,
    QueryWatermark,
    event_times,
    is_defined_twice,
    is_in,
    marked,
    without_replaced,
)
from sluicegate.spark.pipeline.foreign import ForeignSource
from sluicegate.spark.pipeline.fusion import Group
from sluicegate.spark.pipeline.planned_stream import read_by
from sluicegate.spark.pipeline.row_functions import DEAD_LETTERS, DEAD_SCHEMA, ROWS, RowsOperator
from sluicegate.spark.pipeline.storable import check_storable

_WAIT_S = 0.2
"""How long a source blocks when it has no new offsets; a stop may have to wait for this long."""
_SHUFFLES = ("Repartition", "Aggregate", "Deduplicate", "Join", "Sort")
"""Plan nodes that shuffle: after one, the number of tasks is no longer that of the source."""
_STARTING = threading.Lock()
"""Queries start one at a time: a start reads the number of key groups from a setting of the session."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """Context that all queries of a pipeline share."""

    pipeline: Pipeline
    groups: tuple[Group, ...]
    spark: SparkSession
    layout: Layout


@dataclass(frozen=True, slots=True)
class Prepared:
    """A group whose stream is built, ready to start."""

    group: Group
    stream: DataFrame
    writer: BatchWriter
    planners: tuple[EdgePlanner, ...]

    @property
    def key_groups(self) -> int:
        """Key groups that the state is in now, which may differ from the declared number."""
        return self.group.key_groups if self.writer.groups is None else self.writer.groups.number


def prepare(pipeline: Pipeline, groups: tuple[Group, ...], spark: SparkSession, layout: Layout) -> list[Prepared]:
    """Build every group's stream, upstream first, and create the edges they write to."""
    schemas = {name: _schema(name, s.schema) for name, s in pipeline.sources.items() if s.stream is None}
    schemas |= {name: _schema(name, ddl) for name, ddl in pipeline.loops.items()}
    for name, source in pipeline.sources.items():
        if source.stream is None:
            check_storable(spark, f"source {name!r}", schemas[name])
            schemas[name] = _created(FolderEdge(layout.edge(name)), schemas[name])
    prepared = []
    for group in groups:
        stream, planners, nodes = _stream(Wiring(pipeline, groups, spark, layout), group, schemas)
        written = _written(group, stream.schema)
        check_storable(spark, f"operator {group.last.name!r}", written)
        for name in group.last.streams:
            schemas[name] = written if name != group.last.dead_letters else _schema(name, DEAD_SCHEMA)
            if name in pipeline.topics:
                check_columns(group.last.name, written)
            schemas[name] = _created(_edge(pipeline, layout, name), schemas[name])
        writer = _writer(pipeline, group, layout, planners)
        if is_in(stream):
            writer.watermark = QueryWatermark(spark, nodes)
            timed = set(writer.writes) - ({DEAD_LETTERS} if writer.skips else set())
            writer.timed = frozenset(timed if event_times(written) else ())
            for planner in planners:
                planner.owes = writer.another_is_due
        if group.first.source is not None:
            writer.foreign = _foreign(Wiring(pipeline, groups, spark, layout), group, stream)
        prepared.append(Prepared(group, stream, writer, planners))
    _check_loops(pipeline, schemas)
    return prepared


def _created(edge: DurableEdge, schema: StructType) -> StructType:
    """Create an edge; returns its schema, nullable wherever rows that are on it already may have nulls."""
    edge.create(schema.json())
    nullable = {field["name"]: field["nullable"] for field in json.loads(edge.schema_json)["fields"]}
    fields = [StructField(f.name, f.dataType, f.nullable or nullable[f.name], f.metadata) for f in schema.fields]
    return StructType(fields)


def _edge(pipeline: Pipeline, layout: Layout, stream: str) -> DurableEdge:
    """The edge of a stream: files, or the Kafka topic that was declared for it."""
    topic = pipeline.topics.get(stream)
    return FolderEdge(layout.edge(stream)) if topic is None else KafkaEdge(layout.edge(stream), topic)


def start_query(spark: SparkSession, one: Prepared, name: str) -> StreamingQuery:
    """Start one query in a FAIR pool of its own, with one state partition per key group."""
    with _STARTING:
        one.writer.another_after = None  # after a restart Spark no longer runs the batch it still owed
        if one.writer.watermark is not None:
            one.writer.watermark.query = name
        try:
            query = _start_query(spark, one, name)
            if one.writer.foreign is not None:
                one.writer.foreign.attach(spark, query)
            return query
        except PySparkException as problem:
            undeclared = not one.group.stateful and "OUTPUT_MODE" in str(problem)
            hint = "; an operator that keeps state is declared with stateful=True" if undeclared else ""
            raise BadInput(f"operator {one.group.name!r} does not start: {_first_line(problem)}{hint}") from problem


def _start_query(spark: SparkSession, one: Prepared, name: str) -> StreamingQuery:
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", one.group.name)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(one.key_groups))
    try:
        return (
            one.stream.writeStream.queryName(name)
            .outputMode(one.group.mode)
            .option("checkpointLocation", str(one.writer.checkpoint))
            .trigger(processingTime="0 seconds")
            .foreachBatch(one.writer)
            .start()
        )
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before or "200")
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", "default")


def _schema(name: str, ddl: str) -> StructType:
    try:
        parsed = StructType.fromDDL(ddl)
    except Exception as problem:
        raise BadInput(
            f"schema of {name!r} is {ddl!r}: give columns and types such as 'text string, at timestamp'"
        ) from problem
    if not isinstance(parsed, StructType):
        raise BadInput(f"schema of {name!r} is {ddl!r}: name its columns, such as 'text string'")
    if _has_length(parsed):  # Spark refuses such a schema for a stream
        raise BadInput(f"schema of {name!r} is {ddl!r}: give string in place of char and varchar")
    return parsed


def _has_length(kind: DataType) -> bool:
    """Whether a type is, or holds, strings of a limited length."""
    if isinstance(kind, StructType):
        return any(_has_length(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_length(kind.elementType)
    if isinstance(kind, MapType):
        return _has_length(kind.keyType) or _has_length(kind.valueType)
    return isinstance(kind, CharType | VarcharType)


def _stream(
    wiring: Wiring, group: Group, schemas: Mapping[str, StructType]
) -> tuple[DataFrame, tuple[EdgePlanner, ...], tuple[EdgeNode, ...]]:
    first = group.first
    pace = Pace()
    _check_unions(wiring.pipeline, first, schemas)
    read = [[_read(wiring, name, group, schemas[name], pace) for name in union] for union in first.reads]
    nodes = tuple(node for union in read for _, _, found in union for node in found)
    unions = [reduce(DataFrame.unionByName, (stream for _, stream, _ in union)) for union in read]
    if first.source is not None:
        stream = _built(first.name, lambda: with_connector(wiring.spark, first.function))
    else:
        stream = without_replaced(_built(first.name, lambda: _called(first, *unions)), nodes)
    for step in group.steps[1:]:
        stream = without_replaced(_next(step, stream), nodes)
    if is_defined_twice(stream):
        raise BadInput(
            f"operator {group.name!r} defines a watermark on a stream that has one, which Spark refuses in one query: "
            "call withWatermark once, or keep the operators apart with fuse=False"
        )
    return stream, tuple(planner for union in read for planner, _, _ in union), nodes


def _foreign(wiring: Wiring, group: Group, stream: DataFrame) -> ForeignSource:
    plan: Any = stream._jdf.queryExecution().analyzed()
    return ForeignSource(
        operator=group.name,
        checkpoint=wiring.layout.checkpoint(group.name),
        plan=PlanFile(wiring.layout.plan),
        log=wiring.layout.source(group.name),
        ahead=_ahead(wiring, group),
        spreads=any(node in plan.toString() for node in _SHUFFLES),
    )


def _next(step: Step, stream: DataFrame) -> DataFrame:
    return _built(step.name, lambda: _called(step, stream))


def _called(step: Step, *streams: DataFrame) -> DataFrame:
    """Call a step's function; with dead letters, the result also has the rows that the function failed on."""
    if step.dead_letters is not None and isinstance(step.function, RowsOperator):
        (stream,) = streams
        return step.function.with_dead_letters(stream, step.name)
    return step.function(*streams)


def _built(name: str, build: Callable[[], object]) -> DataFrame:
    """Build an operator's stream; an error of its function becomes a ``BadInput`` of one line."""
    try:
        result = build()
    except SluicegateError:
        raise
    except Exception as problem:
        raise BadInput(
            f"operator {name!r} cannot be built: {type(problem).__name__}: {_first_line(problem)}"
        ) from problem
    if not isinstance(result, DataFrame) or not result.isStreaming:
        raise BadInput(f"operator {name!r} returned {_instead(result)}")
    return result


def _instead(result: object) -> str:
    """Describe a result that is not a streaming DataFrame, and what to return instead."""
    if isinstance(result, DataFrame):
        return "a DataFrame that is no stream: return one made from the streams it reads"
    kind = type(result)
    if kind.__name__ == "DataFrame":
        return (
            f"a {kind.__module__.partition('.')[0]} DataFrame: return a Spark one, made from the streams it reads; for "
            "pandas code use mapInPandas, applyInPandas or transformWithStateInPandas"
        )
    return f"{kind.__name__}: return a Spark DataFrame made from the streams it reads"


def _first_line(problem: Exception) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), "no reason given")[:300]


def _read(
    wiring: Wiring, name: str, group: Group, schema: StructType, pace: Pace
) -> tuple[EdgePlanner, DataFrame, tuple[EdgeNode, ...]]:
    layout, edge = wiring.layout, wiring.pipeline.closed.get(name, name)
    topic = wiring.pipeline.topics.get(edge)
    planner = EdgePlanner(
        name=f"{group.name}:{name}:{uuid.uuid4().hex}",
        edge=_edge(wiring.pipeline, layout, edge),
        operator=group.name,
        plan=PlanFile(layout.plan),
        hold=layout.hold,
        wait_s=_WAIT_S,
        ahead=_ahead(wiring, group),
        pace=pace,
    )
    reader = read_by(wiring.spark, planner)
    stream = reader.schema(schema).load() if topic is None else received(reader.schema(PIECES).load(), topic, schema)
    return planner, *marked(stream, edge, schema)


def _ahead(wiring: Wiring, group: Group) -> tuple[Backlog, ...]:
    """Backlogs on the edges that a group writes, for back-pressure.

    Loops are left out: an operator that waits for itself would wait forever.
    """
    found = []
    for stream in group.last.streams:
        readers = [other.name for other in wiring.groups if stream in other.first.inputs]
        if readers and stream not in wiring.pipeline.closed.values():
            checkpoints = tuple(wiring.layout.checkpoint(name) for name in readers)
            found.append(Backlog(FolderEdge(wiring.layout.edge(stream)), checkpoints))
    return tuple(found)


def _written(group: Group, schema: StructType) -> StructType:
    if group.last.dead_letters is not None:
        left_out = {OUTPUT, *_schema(group.name, DEAD_SCHEMA).names}
        return StructType([field for field in schema.fields if field.name not in left_out])
    if not group.last.outputs:
        return schema
    if OUTPUT not in schema.names:
        raise BadInput(f"operator {group.last.name!r} names outputs, but its result has no column {OUTPUT!r}")
    return StructType([field for field in schema.fields if field.name != OUTPUT])


def _writer(pipeline: Pipeline, group: Group, layout: Layout, planners: tuple[EdgePlanner, ...]) -> BatchWriter:
    step = group.last
    outputs = dict(zip(_outputs(step), step.streams, strict=True))
    names = {stream: output for output, stream in outputs.items()}
    sinks = tuple((names[s.stream], s.write) for s in pipeline.sinks.values() if s.stream in names and s.write)
    reads = [pipeline.closed.get(name, name) for name in group.first.inputs]
    checkpoint = layout.checkpoint(group.name)
    return BatchWriter(
        operator=group.name,
        checkpoint=checkpoint,
        plan=PlanFile(layout.plan),
        reads={name: _edge(pipeline, layout, name) for name in reads},
        writes={output: _edge(pipeline, layout, stream) for output, stream in outputs.items()},
        planners=planners,
        groups=GroupLoads(state_partitions(checkpoint) or group.key_groups) if group.stateful else None,
        sinks=sinks,
        passing=not any(sink.stream in names and sink.keep_s for sink in pipeline.sinks.values()),
        skips=step.dead_letters is not None,
        loops=frozenset(output for output, stream in outputs.items() if stream in pipeline.closed.values()),
    )


def _outputs(step: Step) -> tuple[str, ...]:
    """Values of the column ``output``, in the order of the step's streams."""
    return (ROWS, DEAD_LETTERS) if step.dead_letters is not None else step.outputs or ("",)


def _check_unions(pipeline: Pipeline, step: Step, schemas: Mapping[str, StructType]) -> None:
    """Refuse a union of a loop and a stream with a watermark: looped rows may come at any time, and would be late."""
    for union in step.reads:
        timed = next((name for name in union if event_times(schemas[name])), None)
        loop = next((name for name in union if name in pipeline.loops), None)
        if timed is not None and loop is not None:
            raise BadInput(
                f"operator {step.name!r} reads {timed!r}, which has a watermark, together with the loop {loop!r}: "
                "rows that come back would be dropped as late; call withWatermark behind the loop"
            )


def _check_loops(pipeline: Pipeline, schemas: Mapping[str, StructType]) -> None:
    for loop, origin in pipeline.closed.items():
        declared, written = (schemas[name].simpleString() for name in (loop, origin))
        if declared != written:
            raise BadInput(f"loop {loop!r} is declared {declared}, but {origin!r} writes {written}: make them equal")
        fields = zip(schemas[loop].fields, schemas[origin].fields, strict=True)
        strict = next((field.name for field, back in fields if back.nullable and not field.nullable), None)
        if strict is not None:
            raise BadInput(
                f"loop {loop!r}: column {strict!r} is NOT NULL, but {origin!r} may write nulls: drop NOT NULL"
            )
