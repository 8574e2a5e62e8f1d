"""The elements that a pipeline is declared of: streams, sources, operators, sinks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from sluicegate.errors import BadInput

OUTPUT = "output"
"""The column that says which of several outputs a row goes to."""

Function = Callable[..., DataFrame]


@dataclass(frozen=True, slots=True)
class Stream:
    """A named flow of rows. ``a | b`` reads both as one."""

    names: tuple[str, ...]

    def __or__(self, other: Stream) -> Stream:
        check_stream("|", other)
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
    """Rows from outside the pipeline: fed by a program (``Feed``), or read by any streaming DataFrame of Spark."""

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
    """Name of the native Spark source whose stream ``function`` returns, given the session; else ``None``."""
    retry_for_s: float | None = None
    """How long it is retried when it fails; ``None``: the pipeline's limit."""
    dead_letters: str | None = None
    """Stream of the rows that ``function`` failed on; ``None``: no rows are skipped."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams it writes."""
        dead = () if self.dead_letters is None else (self.dead_letters,)
        return (*(tuple(f"{self.name}.{output}" for output in self.outputs) or (self.name,)), *dead)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for union in self.reads for name in union))


Write = Callable[[DataFrame, int], None]


@dataclass(frozen=True, slots=True)
class Sink:
    """Output of a stream: its rows stay on disk for ``keep_s``, and ``write`` is called with each batch.

    ``keep_s`` is infinite if rows are kept forever, 0 if they are deleted once written and committed.
    """

    name: str
    stream: str
    write: Write | None = None
    keep_s: float = math.inf


def check_stream(what: str, stream: object) -> None:
    if isinstance(stream, Outputs):
        one = f"{stream.operator}[{stream.names[0]!r}]"
        raise BadInput(f"{what} takes a stream, got all outputs of {stream.operator!r}: name one, such as {one}")
    if not isinstance(stream, Stream):
        raise BadInput(f"{what} takes a stream, got {stream!r}: give what source, operator or loop returned")
