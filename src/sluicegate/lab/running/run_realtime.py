"""Runs an application in real-time mode under the control loop, from the first record to the checked answer.

A source declared by its columns becomes a topic of JSON records that is fed here, and the sink a topic that is read
back at the end. Sources and sinks that are Kafka topics already are used as is; such sources are fed from outside.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluicegate.config.typed import goal_from
from sluicegate.control.planning import proposal_at
from sluicegate.control.settings import policy_for
from sluicegate.domain import Limits
from sluicegate.domain.births import kept_share, quantile_s
from sluicegate.errors import BadInput, StillWaiting
from sluicegate.lab.running.app import Answer, App
from sluicegate.lab.running.bound import bound_by
from sluicegate.lab.running.feeding import Feeder
from sluicegate.lab.running.load import Load
from sluicegate.lab.running.outcome import Outcome, Tick, decisions_in, published_ages, slot_seconds
from sluicegate.lab.running.run_app import Surroundings, watch
from sluicegate.policy.demand import situation_at
from sluicegate.runlog.batch_log import Tail, records_of
from sluicegate.spark.controller import Control
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.connector import add_connector
from sluicegate.spark.kafka.edge import make_topic
from sluicegate.spark.kafka.records import JSON_OPTIONS
from sluicegate.spark.kafka.sink import topic_and_key
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.realtime.program import Program, declared, topic_of
from sluicegate.spark.realtime.running import RealTimeRunning
from sluicegate.spark.realtime.stages import graph_of, sink_of, stages_of
from sluicegate.spark.realtime.topics import TopicFeed, partitions_of
from sluicegate.spark.supervisor import Supervisor

POLICY = "drs-gigk"
"""The default policy: stages of long-lived tasks match the multi-server queues of DRS's model."""
FEED_S = 0.01
_WARM_S = 60.0
"""Deadline for the first rows, during which Spark compiles."""
_WARM_ROWS = 200
_FIRST_LOOK_S = 60.0
_FINISH_S = 180.0


@dataclass(frozen=True, slots=True)
class Kafka:
    """The broker on which topics are created for sources and sinks declared by their columns, and their partitions."""

    servers: str | None = None
    partitions: int = 1


@dataclass(frozen=True, slots=True)
class _Ends:
    """The program with its source and sink topics; ``feed`` is set if the source is fed here."""

    program: Program
    source: KafkaTopic
    partitions: int
    feed: TopicFeed | None


def run_realtime(
    app: App,
    spark: SparkSession,
    folder: Path,
    load: Load,
    seconds: float,
    control: Control,
    around: Surroundings | None = None,
    processors: Mapping[str, int] | None = None,
    kafka: Kafka | None = None,
) -> Outcome:
    """Run ``app`` under ``control``, fed with ``load`` for ``seconds`` or from outside; then check the answer."""
    around = around or Surroundings()
    with app.brought_up() as ready:
        pipeline = ready.build()
        ends = _ends(pipeline, spark, kafka or Kafka(), folder)
        graph = graph_of(pipeline, ends.program.steps, ends.partitions)
        slots = control.budget or spark.sparkContext.defaultParallelism
        control = replace(control, budget=slots)
        feeds = {next(iter(pipeline.sources)): ends.feed} if ends.feed else {}
        with RealTimeRunning(spark, ends.program, folder, graph, ends.source, processors or {}, slots) as running:
            _warm_up(ready, pipeline, ends.feed, running)
            with (
                Supervisor(running.layout, control) as supervisor,
                around.beside(folder) if around.beside else nullcontext(),
            ):
                running.also_check.append(supervisor.check)
                supervisor.wait_for_a_look(_FIRST_LOOK_S, around.leave)
                began_s = time.time()
                feeder = Feeder(ready, feeds, load, seconds, FEED_S) if feeds and ready.rows else None
                ticks, interrupted = watch(running, feeder, seconds, around, partial(_finish, running, ends.feed))
        fed = {name: feed.rows for name, feed in feeds.items()}
        answer = _answer(ready, pipeline, ends, spark, fed, running)
        peak_per_s = feeder.peak_per_s if feeder else max((t["arrivals_per_s"] or 0.0 for t in ticks), default=0.0)
        found = _outcome(ready, running, control, fed, answer, began_s, peak_per_s, ticks)
        return replace(found, interrupted=interrupted)


def _ends(pipeline: Pipeline, spark: SparkSession, kafka: Kafka, folder: Path) -> _Ends:
    """Resolve source and sink topics, creating missing ones; an error without a broker to create them on."""
    steps = stages_of(pipeline)
    sink, name = sink_of(pipeline, steps), next(iter(pipeline.sources))
    source, written = pipeline.sources[name], topic_and_key(sink.write)
    if sink.write is not None and written is None:
        raise BadInput(
            f"sink {sink.name!r} writes by a function: in real-time mode give write=kafka_sink(...), or none"
        )
    if (source.stream is None or written is None) and kafka.servers is None:
        which = f"source {name!r}" if source.stream is None else f"sink {sink.name!r}"
        raise BadInput(f"{which} is no Kafka topic: give --kafka HOST:PORT, and real-time mode makes one there")
    add_connector(spark)
    mark = re.sub(r"[^A-Za-z0-9._-]", "_", folder.absolute().name)
    topic, key = written or (KafkaTopic(kafka.servers or "", f"{mark}.{sink.name}", kafka.partitions), None)
    if written is None:
        make_topic(topic)
    if source.stream is not None:
        found = topic_of(spark, source.stream(spark), name)
        return _Ends(Program(pipeline.name, steps, source.stream, topic, key), found, partitions_of(found), None)
    fed = KafkaTopic(kafka.servers or "", f"{mark}.{name}", kafka.partitions)
    feed = TopicFeed(fed)
    stream = partial(declared, source=source, topic=fed)
    return _Ends(Program(pipeline.name, steps, stream, topic, key), fed, partitions_of(fed), feed)


def _warm_up(app: App, pipeline: Pipeline, feed: TopicFeed | None, running: RealTimeRunning) -> None:
    """Pass the first rows through every stage, so that measured latency excludes Spark compiling."""
    if feed is None or app.rows is None:
        return
    source = next(iter(pipeline.sources))
    feed.append(app.rows(source, feed.rows, _WARM_ROWS))
    feed.flush()
    running.drain(_WARM_S)
    running.is_warm()


def _finish(running: RealTimeRunning, feed: TopicFeed | None) -> None:
    if feed is None:
        return  # fed from outside: it stops between two batches and resumes at the next start
    feed.flush()
    try:
        running.drain(_FINISH_S)
    except StillWaiting as problem:
        running.restarts.append(f"{problem}; they are kept, and processed at the next start in this folder")


def _answer(
    app: App, pipeline: Pipeline, ends: _Ends, spark: SparkSession, fed: Mapping[str, int], running: RealTimeRunning
) -> Answer | None:
    """Compare the sink's topic with the right answer, if the application has one and its rows were fed here."""
    if app.check is None or ends.feed is None:
        return None
    sink = sink_of(pipeline, ends.program.steps)
    return app.check(fed, {sink.name: read_back(spark, ends.program, running.running)})


def read_back(spark: SparkSession, program: Program, processors: Mapping[str, int]) -> DataFrame:
    """All rows of the sink's topic, with the schema of the last operator."""
    schema = program.rows(spark, processors).drop("_sluicegate").schema
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", program.sink.servers)
    raw = reader.option("subscribe", program.sink.topic).option("startingOffsets", "earliest").load()
    return raw.select(F.from_json(F.col("value").cast("string"), schema, JSON_OPTIONS).alias("row")).select("row.*")


def _outcome(
    app: App,
    running: RealTimeRunning,
    control: Control,
    fed: Mapping[str, int],
    answer: Answer | None,
    began_s: float,
    peak_per_s: float,
    ticks: list[Tick],
) -> Outcome:
    """Build the outcome from the logs, as for a pipeline of batches."""
    goal, layout = goal_from(list(control.slo)), running.layout
    records = [r for r in records_of(Tail(layout.batches(running.names[-1])).lines()) if r.published_s >= began_s]
    ages = [age for record in records for age in record.born.ages_s(record.published_s)]
    weight, took_s, kept = sum(w for _, w in ages), time.time() - began_s, kept_share(published_ages(records), goal)
    return Outcome(
        app=app.name,
        policy=control.policy,
        goal=goal,
        rows_in=sum(fed.values()) or sum(record.rows for record in records),
        answer=answer,
        kept_share=kept,
        slot_seconds=slot_seconds(ticks, took_s),
        static_peak=_static_peak(running, control, ticks, peak_per_s),
        seconds=took_s,
        mean_s=sum(age * w for age, w in ages) / weight if weight else None,
        p95_s=quantile_s(ages, 0.95),
        decisions=tuple(d for d in decisions_in(layout) if d["at_s"] >= began_s),
        ticks=tuple(ticks),
        why_grouped=tuple(f"{name}: a stage of the real-time query" for name in running.names),
        restarts=tuple(running.restarts),
        began_s=began_s,
        bound=bound_by(kept, goal, ticks, running.graph, control),
    )


def _static_peak(running: RealTimeRunning, control: Control, ticks: list[Tick], peak_per_s: float) -> int | None:
    """Processors that ``POLICY`` allocates for the peak, with the service rates measured in this run."""
    if not ticks or peak_per_s <= 0:
        return None
    told, topology = ticks[-1]["operators"], running.graph.topology()
    operators = tuple(
        o.with_figures(told[o.name]["service_per_s"], o.arrival_scv, o.service_scv, None) for o in topology.operators
    )
    first = running.graph.nodes[0]
    fixed = {first.name: first.key_groups}
    limits = Limits(budget=control.budget, most_of=fixed, least_of=fixed)
    situation = situation_at(topology.with_operators(operators), peak_per_s, goal_from(list(control.slo)), limits)
    return sum(proposal_at(policy_for(POLICY, control.timing), situation).processors.values()) or None
