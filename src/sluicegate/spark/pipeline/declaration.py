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

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from sluicegate.domain import SINK, SOURCE
from sluicegate.errors import BadInput

_MODES = ("append", "update", "complete")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
OUTPUT = "output"
"""The column that says which of several outputs a row goes to."""

Function = Callable[..., DataFrame]


@dataclass(frozen=True, slots=True)
class Stream:
    """A named flow of rows. ``a | b`` reads both as one."""

    names: tuple[str, ...]

    def __or__(self, other: Stream) -> Stream:
        return Stream((*self.names, *other.names))


@dataclass(frozen=True, slots=True)
class Outputs:
    """The streams of an operator that names its outputs: ``detect["found"]``."""

    operator: str
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Stream:
        if name not in self.names:
            raise BadInput(f"operator {self.operator!r} has no output {name!r}: it names {', '.join(self.names)}")
        return Stream((f"{self.operator}.{name}",))


@dataclass(frozen=True, slots=True)
class Source:
    """Rows from outside: fed by a program (``Feed``), or by any streaming DataFrame of Spark."""

    name: str
    schema: str
    stream: Callable[[SparkSession], DataFrame] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operator as declared. ``reads`` has one entry per argument of ``function``, each one stream or a union."""

    name: str
    function: Function
    reads: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...] = ()
    stateful: bool = False
    mode: str = "append"
    fuse: bool = True
    key_groups: int = 8
    source: str | None = None
    """Set where ``function`` takes the session and gives the stream of that source of Spark's own."""
    retry_for_s: float | None = None
    """How long it is tried again when it fails; where not given, as long as the pipeline says."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams it writes."""
        return tuple(f"{self.name}.{output}" for output in self.outputs) or (self.name,)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for union in self.reads for name in union))


Write = Callable[[DataFrame, int], None]


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a stream leaves: its edge is kept for good, and ``write`` is called with each batch where given."""

    name: str
    stream: str
    write: Write | None = None


@dataclass(slots=True)
class Pipeline:
    """See the file's docstring."""

    name: str
    sources: dict[str, Source] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    loops: dict[str, str] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_name("pipeline", self.name)

    def source(self, name: str, schema: str = "", stream: Callable[[SparkSession], DataFrame] | None = None) -> Stream:
        """Rows from outside, with ``schema`` (a DDL string such as "text string, at timestamp") or a Spark stream."""
        self._check_new("source", name)
        if bool(schema) == (stream is not None):
            raise BadInput(f"source {name!r}: give either a schema, or a stream that has one")
        if stream is not None:
            _check_function("source", name, stream)
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
    ) -> Stream:
        """A function from DataFrame to DataFrame, one argument a stream it reads.

        ``stateful`` ones (aggregations, deduplication, stream joins, transformWithState) keep their state in
        ``key_groups`` parts, which bounds k. ``mode`` is Spark's output mode: "update" for stateful ones, else
        "append". ``fuse=False`` keeps the operator in a query of its own. ``retry_for_s`` is how long it is tried again
        when it fails (a service that it calls is down, say); where not given, as long as ``start`` says: for ever.
        """
        self._add(name, function, reads, (), stateful, mode, fuse, key_groups, retry_for_s)
        return Stream((name,))

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
        """An operator whose result has a column ``output`` that names, row by row, which of ``outputs`` it goes to."""
        if len(set(outputs)) != len(outputs) or len(outputs) < 1:
            raise BadInput(f"operator {name!r}: name its outputs, each once")
        for output in outputs:
            _check_name("output", output)
        self._add(name, function, reads, tuple(outputs), stateful, mode, False, key_groups, retry_for_s)
        return Outputs(name, tuple(outputs))

    def loop(self, name: str, schema: str) -> Stream:
        """A stream that is read before it is written: close it with ``close``."""
        self._check_new("loop", name)
        self.loops[name] = schema
        return Stream((name,))

    def close(self, loop: Stream, stream: Stream) -> None:
        """Rows of ``stream`` are what ``loop`` carries back."""
        name, origin = _only(loop, "close"), _only(stream, "close")
        if name not in self.loops:
            raise BadInput(f"{name!r} is no loop: make it with pipeline.loop")
        if name in self.closed:
            raise BadInput(f"loop {name!r} is closed twice: give an operator that reads both streams, and close by it")
        self.closed[name] = origin

    def sink(self, name: str, stream: Stream, write: Write | None = None) -> None:
        """Keep a stream's rows for good; ``write(batch, number)`` is called for each batch, again after a crash."""
        _check_name("sink", name)
        if name in self.sinks:
            raise BadInput(f"sink {name!r} is there twice: rename one of the two")
        origin = _only(stream, f"sink {name!r}")
        if origin in self.loops or origin not in self._known():
            raise BadInput(f"sink {name!r} keeps {origin!r}, which no operator of this pipeline writes")
        if write is not None and origin not in {s for step in self.steps.values() for s in step.streams}:
            raise BadInput(f"sink {name!r} writes source {origin!r}: let it keep an operator's stream")
        self.sinks[name] = Sink(name, origin, write)

    def check(self) -> None:
        """Refuse what cannot run, with what to do."""
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
        kept = {sink.stream for sink in self.sinks.values()} | set(self.closed.values())
        for stream in sorted(written - read - kept):
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
        if key_groups < 1:
            raise BadInput(f"operator {name!r}: key_groups is {key_groups}, give at least 1")
        _check_function("operator", name, function)
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

    def _known(self) -> set[str]:
        """All streams there are so far."""
        return {*self.sources, *self.loops, *(s for step in self.steps.values() for s in step.streams)}

    def _check_new(self, what: str, name: str) -> None:
        _check_name(what, name)
        if name in self.sources or name in self.steps or name in self.loops:
            raise BadInput(f"{what} {name!r}: that name is taken, choose another")


def _only(stream: Stream, what: str) -> str:
    if len(stream.names) != 1:
        raise BadInput(f"{what} takes one stream, got the union of {', '.join(stream.names)}: add an operator for it")
    return stream.names[0]


def _check_function(what: str, name: str, function: object) -> None:
    if not callable(function):
        raise BadInput(f"{what} {name!r}: {function!r} is no function that gives a DataFrame")
    if name in (SOURCE, SINK):
        raise BadInput(f"{what} name {name!r} means the outside world: choose another")


def check_retry(what: str, name: str, retry_for_s: float | None) -> None:
    """A limit is a number of seconds, 0 for none at all."""
    if retry_for_s is not None and not retry_for_s >= 0:
        raise BadInput(f"{what} {name!r}: retry_for_s is {retry_for_s!r}, give seconds, 0 or more; None is for ever")


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadInput(f"{what} name {name!r}: use letters, digits, _ and -, a letter first")
