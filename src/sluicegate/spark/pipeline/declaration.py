"""A pipeline as its author writes it: sources, operators (functions from DataFrame to DataFrame), sinks.

    pipeline = Pipeline("word_count")
    lines = pipeline.source("lines", "text string")
    words = pipeline.operator("split", split_words, lines)
    counts = pipeline.operator("count", count_words, words, stateful=True)
    pipeline.sink("counts", counts)

Two operators that read one stream are a split; an operator that reads two streams joins them; ``a | b`` is their union;
an operator may name several ``outputs`` (a column ``output`` of its result says which row goes where); a ``loop`` is a
stream that is read before it is written. Nothing runs here: see ``sluicegate.spark.pipeline.runtime``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession

from sluicegate.errors import BadInput
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.pipeline.argument_checks import (
    check_dead_letters,
    check_function,
    check_name,
    check_outputs,
    check_retry,
    check_schema,
    keep_seconds,
    only_stream,
)
from sluicegate.spark.pipeline.elements import Function, Outputs, Sink, Source, Step, Stream, Write, check_stream
from sluicegate.spark.pipeline.row_functions import DEAD_LETTERS, dead_letters_of

_MODES = ("append", "update", "complete")


@dataclass(slots=True)
class Pipeline:
    """Declares sources, operators, loops, edges and sinks; see the module docstring for an example."""

    name: str
    sources: dict[str, Source] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    loops: dict[str, str] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    topics: dict[str, KafkaTopic] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("pipeline", self.name)

    def source(self, name: str, schema: str = "", stream: Callable[[SparkSession], DataFrame] | None = None) -> Stream:
        """Add rows from outside, with ``schema`` (DDL such as "text string, at timestamp") or a Spark stream."""
        self._check_new("source", name)
        check_schema("source", name, schema)
        if bool(schema) == (stream is not None):
            raise BadInput(f"source {name!r}: give either a schema, or a stream that has one")
        if stream is not None:
            check_function("source", name, stream)
        self.sources[name] = Source(name, schema, stream)
        if stream is not None:
            self.steps[name] = Step(name, stream, (), source=name)
        return Stream((name,))

    def operator(
        self,
        name: str,
        function: Function,
        *reads: Stream,
        stateful: bool = False,
        mode: str | None = None,
        fuse: bool = True,
        key_groups: int = 8,
        retry_for_s: float | None = None,
        dead_letters: bool = False,
    ) -> Stream:
        """Add an operator: a function that takes one DataFrame per stream it reads and returns a DataFrame.

        ``stateful`` ones (aggregations, deduplication, stream joins, transformWithState) keep their state in
        ``key_groups`` partitions, the upper bound of k. ``mode`` is Spark's output mode; default "update" for stateful
        ones, else "append". ``fuse=False`` keeps the operator in a query of its own. ``retry_for_s`` limits how long it
        is retried when it fails (say, a service it calls is down); the default is that of ``start``: no limit.

        ``dead_letters=True``: rows that ``function``, made by ``by_row`` or ``in_pandas``, raises an error for are
        skipped, and kept with the reason in the stream NAME.dead_letters (``pipeline.dead_letters(NAME)``).
        """
        if dead_letters:
            check_dead_letters(name, function, reads, stateful)
        self._add(name, function, reads, (), stateful, mode, fuse, key_groups, retry_for_s)
        if dead_letters:
            self.steps[name] = replace(self.steps[name], dead_letters=dead_letters_of(name))
        return Stream((name,))

    def dead_letters(self, operator: str) -> Stream:
        """The stream of rows that an operator failed on; kept forever, or as long as its sink says."""
        step = self.steps.get(operator)
        if step is None or step.dead_letters is None:
            raise BadInput(f"operator {operator!r} has no dead letters: declare it with dead_letters=True")
        return Stream((step.dead_letters,))

    def splitter(
        self,
        name: str,
        function: Function,
        *reads: Stream,
        outputs: Sequence[str],
        stateful: bool = False,
        mode: str | None = None,
        key_groups: int = 8,
        retry_for_s: float | None = None,
    ) -> Outputs:
        """Add an operator with several ``outputs``; the column ``output`` of its result says where each row goes."""
        check_outputs(name, outputs)
        for output in outputs:
            if output == DEAD_LETTERS:
                raise BadInput(f"operator {name!r}: an output {output!r} would be taken for skipped rows: rename it")
        self._add(name, function, reads, tuple(outputs), stateful, mode, False, key_groups, retry_for_s)
        return Outputs(name, tuple(outputs))

    def loop(self, name: str, schema: str) -> Stream:
        """Add a stream that is read before it is written: close it with ``close``."""
        self._check_new("loop", name)
        check_schema("loop", name, schema)
        if not schema:
            raise BadInput(f"loop {name!r} has no schema: give columns and types such as 'text string, at timestamp'")
        self.loops[name] = schema
        return Stream((name,))

    def close(self, loop: Stream, stream: Stream) -> None:
        """Close a loop: rows of ``stream`` are fed back as ``loop``."""
        name, origin = only_stream(loop, "close"), only_stream(stream, "close")
        if name not in self.loops:
            raise BadInput(f"{name!r} is no loop: make it with pipeline.loop")
        if name in self.closed:
            raise BadInput(f"loop {name!r} is closed twice: give an operator that reads both streams, and close by it")
        self.closed[name] = origin

    def edge(
        self,
        stream: Stream,
        kafka: str,
        topic: str | None = None,
        partitions: int = 4,
        settings: Mapping[str, str] | None = None,
    ) -> Stream:
        """Pass a stream through a Kafka topic instead of files; its writer and readers then run as separate queries.

        ``kafka`` are the broker addresses ("host:9092"). ``topic`` defaults to PIPELINE.STREAM, and is created with
        ``partitions`` if the broker does not have it. Rows are JSON records that other programs may read. Delivery is
        exactly once within the pipeline, at least once for other readers of the topic. ``settings`` are passed to the
        Kafka clients (librdkafka names such as security.protocol).
        """
        origin = only_stream(stream, "edge")
        step = self.steps.get(origin)
        if step is None or step.outputs or origin in self.sources:
            raise BadInput(f"edge of {origin!r} through Kafka: give the stream of an operator with one output")
        if origin in self.topics:
            raise BadInput(f"edge of {origin!r} is declared twice: leave one of the two out")
        if settings is not None and not isinstance(settings, Mapping):
            raise BadInput(f"edge of {origin!r}: settings is {settings!r}: give a mapping of Kafka's names to values")
        known = tuple(sorted((settings or {}).items()))
        self.topics[origin] = KafkaTopic(kafka, topic or f"{self.name}.{origin}", partitions, known)
        return stream

    def sink(self, name: str, stream: Stream, write: Write | None = None, keep: bool | str | timedelta = True) -> None:
        """Add an output of a stream: its rows stay in the pipeline's folder, go to ``write``, or both.

        ``write(batch, number)`` is called at least once for each batch with rows: after a crash or an error, again with
        the same number, also if there are no rows then, so it should replace what it wrote under that number. ``keep``
        is how long rows stay in the folder: ``True`` forever, "7d" or a ``timedelta`` that long, ``False`` only until
        ``write`` has them and the batch is committed. If a stream has several sinks, the longest ``keep`` applies.
        """
        check_name("sink", name)
        if name in self.sinks:
            raise BadInput(f"sink {name!r} is there twice: rename one of the two")
        origin = only_stream(stream, f"sink {name!r}")
        if origin in self.loops or origin not in self._known():
            raise BadInput(f"sink {name!r} keeps {origin!r}, which no operator of this pipeline writes")
        if write is not None and origin not in {s for step in self.steps.values() for s in step.streams}:
            raise BadInput(f"sink {name!r} writes source {origin!r}: let it keep an operator's stream")
        if write is not None and not callable(write):
            raise BadInput(f"sink {name!r}: {write!r} is no function: give write=function(batch, number)")
        self.sinks[name] = Sink(name, origin, write, keep_seconds(name, keep, write is not None))

    def check(self) -> None:
        """Raise ``BadInput`` if the pipeline cannot run; the text says what to change."""
        if not self.sources:
            raise BadInput(f"pipeline {self.name!r} has no source: add one with pipeline.source")
        if all(step.source for step in self.steps.values()):
            raise BadInput(f"pipeline {self.name!r} has no operator: add one with pipeline.operator")
        for name in self.loops:
            if name not in self.closed:
                raise BadInput(f"loop {name!r} is never closed: call pipeline.close(loop, stream)")
        written = {stream for step in self.steps.values() for stream in step.streams}
        for name, origin in self.closed.items():
            if origin not in written:
                raise BadInput(f"loop {name!r} is closed by {origin!r}, which no operator writes")
        read = {name for step in self.steps.values() for name in step.inputs}
        for name in (*self.sources, *self.loops):
            if name not in read:
                raise BadInput(f"nothing reads {name!r}: add an operator that does, or remove it")
        for name in self._unfed():
            raise BadInput(f"no row of a source reaches operator {name!r}: let it, or its loop, read one that does")
        kept = {sink.stream for sink in self.sinks.values()} | set(self.closed.values())
        for stream in sorted(kept & set(self.topics)):
            raise BadInput(
                f"stream {stream!r} passes through Kafka and has a sink or closes a loop: add an operator behind it, "
                "and let the sink or loop take that one's stream"
            )
        dead = {step.dead_letters for step in self.steps.values() if step.dead_letters is not None}
        for name in sorted(step.name for step in self.steps.values() if step.dead_letters and step.name in self.topics):
            raise BadInput(
                f"operator {name!r} has dead letters and passes its stream through Kafka: add an operator behind it, "
                "and let that one's stream pass"
            )
        for stream in sorted(written - read - kept - dead):
            raise BadInput(f"nothing reads {stream!r}: add pipeline.sink(..., {stream!r}) or an operator that reads it")

    def _add(
        self,
        name: str,
        function: Function,
        reads: tuple[Stream, ...],
        outputs: tuple[str, ...],
        stateful: bool,
        mode: str | None,
        fuse: bool,
        key_groups: int,
        retry_for_s: float | None,
    ) -> None:
        self._check_new("operator", name)
        if not reads:
            raise BadInput(f"operator {name!r} reads nothing: name the stream it reads")
        for read in reads:
            check_stream(f"operator {name!r}", read)
        if not isinstance(key_groups, int) or key_groups < 1:
            raise BadInput(f"operator {name!r}: key_groups is {key_groups!r}, give a whole number, at least 1")
        for what, flag in (("stateful", stateful), ("fuse", fuse)):
            if not isinstance(flag, bool):
                raise BadInput(f"operator {name!r}: {what} is {flag!r}, give True or False")
        check_function("operator", name, function)
        check_retry("operator", name, retry_for_s)
        if mode is not None and mode not in _MODES:
            raise BadInput(f"operator {name!r}: mode is {mode!r}, give one of {', '.join(_MODES)}")
        known = self._known()
        for stream in (one for union in reads for one in union.names):
            if stream not in known:
                raise BadInput(
                    f"operator {name!r} reads {stream!r}, which is not there (yet): {', '.join(sorted(known))}"
                )
        used = mode or ("update" if stateful else "append")
        unions = tuple(union.names for union in reads)
        self.steps[name] = Step(
            name, function, unions, outputs, stateful, used, fuse, key_groups, retry_for_s=retry_for_s
        )

    def _unfed(self) -> list[str]:
        """The operators of loops that no source feeds."""
        fed, before = set(self.sources), 0
        while len(fed) > before:
            before = len(fed)
            for step in self.steps.values():
                if not fed.isdisjoint(self.closed.get(name, name) for name in step.inputs):
                    fed.update(step.streams)
        return [step.name for step in self.steps.values() if fed.isdisjoint(step.streams)]

    def _known(self) -> set[str]:
        """Names of all streams declared so far."""
        return {*self.sources, *self.loops, *(s for step in self.steps.values() for s in step.streams)}

    def _check_new(self, what: str, name: str) -> None:
        check_name(what, name)
        if name in self.sources or name in self.steps or name in self.loops:
            raise BadInput(f"{what} {name!r}: that name is taken, choose another")
