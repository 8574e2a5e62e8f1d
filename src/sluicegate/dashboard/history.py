"""The figures of every tick that plots need, as compact arrays: a day of a hundred operators in some 35 MB.

Arrays are allocated in chunks, so that nothing is copied when they grow, and the oldest chunk is dropped when there are
too many. Missing numbers are NaN inside, since arrays know no ``None``; they are returned as ``None``.

A long series is downsampled to the lowest and the highest value of each stretch of time, in the order they came. A mean
would hide a peak that broke the promise; the extremes keep it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]


def bucket_starts(at_s: Floats, buckets: int) -> Ints:
    """Index at which each of at most ``buckets`` equal stretches of time begins; those without a tick are left out.

    >>> bucket_starts(np.array([0.0, 1.0, 2.0, 3.0]), 2).tolist()
    [0, 2]
    """
    if len(at_s) == 0:
        return np.zeros(0, dtype=np.intp)
    edges = np.linspace(at_s[0], at_s[-1], buckets, endpoint=False)
    return np.unique(np.searchsorted(at_s, edges))


def extremes(values: Floats, starts: Ints) -> Ints:
    """Two indices for each stretch, of its lowest and highest value; its first index if it has no values.

    >>> values = np.array([1.0, 5.0, 2.0, np.nan, np.nan])
    >>> extremes(values, np.array([0, 3])).tolist()
    [0, 1, 3, 3]
    """
    if len(starts) == 0:
        return starts
    found = [_places_of(least(values, starts), values, starts) for least in (np.fmin.reduceat, np.fmax.reduceat)]
    return np.sort(np.stack(found, axis=1), axis=1).ravel()


def _places_of(wanted: Floats, values: Floats, starts: Ints) -> Ints:
    """In each stretch the first index with the wanted value, or its first index if none has it."""
    ends = np.append(starts[1:], len(values))
    equal = np.append(np.flatnonzero(values == np.repeat(wanted, ends - starts)), len(values))
    first = equal[np.searchsorted(equal, starts)]
    return np.where(first < ends, first, starts)


def spread_times(at_s: Floats, starts: Ints) -> Floats:
    """Two times for each stretch, a quarter and three quarters into it: one axis that all series share."""
    ends = np.append(at_s[starts[1:]], at_s[-1])
    first, width = at_s[starts], ends - at_s[starts]
    return np.stack([first + width / 4, first + 3 * width / 4], axis=1).ravel()


COLUMNS = (
    "arrivals_per_s",
    "throughput_per_s",
    "backlog_rows",
    "mean_s",
    "p50_s",
    "p95_s",
    "p99_s",
    "predicted_mean_s",
    "processors",
    "executors",
    "nodes",
    "busiest_cpu",
)
OPERATOR_COLUMNS = ("processors", "utilisation", "queue_rows")
_CHUNK_TICKS = 1024
_TOO_LARGE = 1e38
MOST_BYTES = 44_000_000


class Chunk:
    """1024 ticks; memory pages that were never written take no memory."""

    def __init__(self, operators: int) -> None:
        self.ticks = 0
        self.at_s = np.empty(_CHUNK_TICKS, np.float64)
        self.values = np.empty((_CHUNK_TICKS, len(COLUMNS)), np.float32)
        self.processors = np.empty((_CHUNK_TICKS, operators), np.uint16)
        self.utilisation = np.empty((_CHUNK_TICKS, operators), np.float16)
        self.queue_rows = np.empty((_CHUNK_TICKS, operators), np.float32)

    @property
    def full(self) -> bool:
        return self.ticks == _CHUNK_TICKS

    @property
    def bytes(self) -> int:
        arrays = (self.at_s, self.values, self.processors, self.utilisation, self.queue_rows)
        return sum(array.nbytes for array in arrays)


class History:
    """Every tick there is room for, oldest first."""

    def __init__(self, operators: Iterable[str], most_bytes: int = MOST_BYTES) -> None:
        self.operators = tuple(operators)
        self._chunks: list[Chunk] = []
        self._most_chunks = max(most_bytes // Chunk(len(self.operators)).bytes, 2)
        self.last_s = -math.inf

    def __len__(self) -> int:
        return sum(chunk.ticks for chunk in self._chunks)

    @property
    def first_s(self) -> float | None:
        return float(self._chunks[0].at_s[0]) if self._chunks else None

    def add(self, tick: Mapping[str, Any]) -> bool:
        """Add a tick; returns ``False`` for one that is no later than the last, which was read before."""
        at_s = number(tick.get("at_s"))
        if not at_s > self.last_s:
            return False
        chunk, row = self._room()
        chunk.at_s[row] = self.last_s = at_s
        chunk.values[row] = _values(tick)
        running, operators = _mapping(tick.get("running")), _mapping(tick.get("operators"))
        chunk.processors[row] = [min(max(_count(running.get(name)), 0), 65_535) for name in self.operators]
        told = [_mapping(operators.get(name)) for name in self.operators]
        chunk.utilisation[row] = [number(one.get("utilisation")) for one in told]
        chunk.queue_rows[row] = [number(one.get("queue_rows")) for one in told]
        chunk.ticks += 1
        return True

    def between(self, from_s: float, to_s: float) -> Window:
        """The ticks between two times."""
        return Window(self.operators, [cut for chunk in self._chunks if (cut := _cut(chunk, from_s, to_s))])

    def _room(self) -> tuple[Chunk, int]:
        if not self._chunks or self._chunks[-1].full:
            self._chunks.append(Chunk(len(self.operators)))
            del self._chunks[: -self._most_chunks]
        return self._chunks[-1], self._chunks[-1].ticks


class Window:
    """A stretch of the history; arrays are concatenated on demand."""

    def __init__(self, operators: tuple[str, ...], cuts: list[tuple[Chunk, slice]]) -> None:
        self.operators, self._cuts = operators, cuts
        self.at_s: Floats = self._joined(lambda chunk, rows: chunk.at_s[rows], np.float64)

    def column(self, name: str) -> Floats:
        place = COLUMNS.index(name)
        return self._joined(lambda chunk, rows: chunk.values[rows, place], np.float32)

    def of_operator(self, name: str, what: str) -> Floats:
        place = self.operators.index(name)
        return self._joined(lambda chunk, rows: getattr(chunk, what)[rows, place].astype(np.float32), np.float32)

    def processors_at(self, places: NDArray[np.intp]) -> NDArray[np.uint16]:
        """k of every operator at single ticks of the window, without concatenating the whole window."""
        found = np.empty((len(places), len(self.operators)), np.uint16)
        begin = 0
        for chunk, rows in self._cuts:
            here = (places >= begin) & (places < begin + rows.stop - rows.start)
            found[here] = chunk.processors[rows][places[here] - begin]
            begin += rows.stop - rows.start
        return found

    def _joined(self, part: Any, kind: type[np.floating]) -> Floats:
        return np.concatenate([part(*cut) for cut in self._cuts]) if self._cuts else np.empty(0, kind)


def _cut(chunk: Chunk, from_s: float, to_s: float) -> tuple[Chunk, slice] | None:
    told = chunk.at_s[: chunk.ticks]
    begin, end = int(np.searchsorted(told, from_s, "left")), int(np.searchsorted(told, to_s, "right"))
    return (chunk, slice(begin, end)) if begin < end else None


def _values(tick: Mapping[str, Any]) -> list[float]:
    sojourn, nodes = _mapping(tick.get("sojourn")), tick.get("nodes") or []
    loads = [number(_mapping(node).get("cpu")) for node in nodes]
    derived = {
        "processors": float(sum(_count(k) for k in _mapping(tick.get("running")).values())),
        "nodes": float(len(nodes)) if nodes else math.nan,
        "busiest_cpu": max((load for load in loads if not math.isnan(load)), default=math.nan),
    }
    told = {**tick, **sojourn}
    return [derived[name] if name in derived else number(told.get(name)) for name in COLUMNS]


def number(value: object) -> float:
    """A number unchanged; NaN for anything else, and for numbers too large for the arrays."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _TOO_LARGE:
        return float(value)
    return math.nan


def _count(value: object) -> int:
    told = number(value)
    return 0 if math.isnan(told) else int(told)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
