"""Estimates when the rows of a batch arrived, so that latency is measured without reading the rows.

Kafka: the driver polls the broker for the end offset of every partition once a second; if it cannot, progress reports
give it once per batch. These points form a curve from offset to time for each partition, on which the arrival time of a
row is interpolated. Assumed: rows of a partition arrived evenly between two points, and every offset is a row
(compacted and transactional topics have fewer rows than offsets).

Files: Spark's log of the source lists the files of every batch with their modification times. Assumed: a row arrived
when its file was last modified, and all files have equally many rows.

Spark's rate source: its offsets are whole seconds since its start, and it releases the rows of a second at its end.
The start is known from all polls so far: a second had passed when a poll saw it, and not at the poll before.

Other sources: a batch takes what arrived since the previous batch polled the source. Assumed: rows arrived evenly in
that time, and the batch took all of them (a read limit that leaves a backlog makes the estimate too low). If the query
was idle, rows arrived just before the batch started or, with a trigger interval, since its last trigger.

A row's latency ends when the sink has its batch, before Spark commits the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluicegate.domain.births import Births
from sluicegate.spark.kafka.curve import Line, OffsetCurve

_POINTS = 12
"""Points that represent the rows of one stretch of time: a p95 is accurate to a twelfth of the stretch."""
_RATE_SOURCE = "RateStream"
"""How the rate source is called: RateStreamV2[rowsPerSecond=5] by Spark, RateStream rowsPerSecond=5 in a record."""
_IDLE_S = 0.25
"""A longer pause between two batches means that the query was idle, waiting for rows."""
_POLL_S = 0.05
"""An idle query without a trigger interval asks its sources this often at least (Spark's polling delay is 10 ms)."""

ASSUMED = {
    "kafka": "rows of a partition arrived evenly between two polls of the broker (1 s), or, if it cannot be polled, "
    "between two progress reports; every offset is a row",
    "files": "a row arrived when its file was last modified; files have equally many rows",
    "rate": "rows of Spark's rate source arrived evenly in the seconds that its offsets name",
    "other": "rows arrived evenly since the batch before looked, and each batch took all that was there",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """``rows`` that arrived evenly between two moments, in seconds since the epoch.

    ``sampled`` if the load of their source is also measured outside batches: by end offsets, or by listing files.
    """

    from_s: float
    to_s: float
    rows: float
    sampled: bool = False

    def rows_after(self, moment_s: float) -> float:
        """
        >>> Stretch(0.0, 10.0, 100.0).rows_after(7.5), Stretch(3.0, 3.0, 5.0).rows_after(2.0)
        (25.0, 5.0)
        """
        if self.to_s <= self.from_s:
            return self.rows if self.to_s >= moment_s else 0.0
        late_s = self.to_s - max(moment_s, self.from_s)
        return self.rows * max(late_s, 0.0) / (self.to_s - self.from_s)


@dataclass(slots=True)
class ArrivalCurve:
    """Arrival times of the rows of one query, whose batches must be given in order."""

    curve: OffsetCurve = field(default_factory=OffsetCurve)
    """Offsets of Kafka's partitions against time."""
    reports: bool = True
    """Whether the curve is built from progress reports; else from polling the broker."""
    rate_began_s: tuple[float, float] | None = None
    """Bounds of the time at which Spark's rate source counts from zero."""
    first_s: float | None = None
    looked_s: float | None = None
    ended_s: float | None = None

    def of(self, batch: Mapping[str, Any]) -> list[Stretch]:
        """When the rows of one batch arrived; ``batch`` is its line in the log.

        >>> def kafka(at, start, end, latest):
        ...     source = {"name": "t", "kafka": True, "rows": end - start, "start": start, "end": end, "latest": latest}
        ...     return {"started_s": at, "duration_s": 1.0, "rows": end - start, "trigger_s": 0.0, "sources": [source]}
        >>> arrivals = ArrivalCurve()
        >>> _ = arrivals.of(kafka(10.0, 0, 100, 100))
        >>> arrivals.of(kafka(12.0, 100, 150, 300))
        [Stretch(from_s=10.0, to_s=10.5, rows=50.0, sampled=True)]
        """
        found: list[Stretch] = []
        known, self.first_s = 0, float(batch["started_s"]) if self.first_s is None else self.first_s
        for source in batch["sources"]:
            if source["kafka"] and source.get("latest"):
                found += self._by_offsets(source, float(batch["started_s"]))
                known += int(source["rows"])
            elif source.get("files") and source["rows"]:
                found += self._by_files(source)
                known += int(source["rows"])
            elif source["rows"] and _counts_seconds(source):
                found.append(self._by_seconds(source, batch))
                known += int(source["rows"])
        rest = int(batch["rows"]) - known
        if rest > 0:
            found.append(Stretch(self.since_s(batch), float(batch["started_s"]), rest))
        self.looked_s = float(batch["started_s"])
        self.ended_s = self.looked_s + float(batch["duration_s"])
        return found

    def since_s(self, batch: Mapping[str, Any]) -> float:
        started_s, every_s = float(batch["started_s"]), batch.get("trigger_s")
        if self.looked_s is None or self.ended_s is None:
            return started_s
        if started_s - self.ended_s <= _IDLE_S:
            return self.looked_s
        return max(self.looked_s, started_s - float(every_s)) if every_s else max(self.looked_s, started_s - _IDLE_S)

    def _by_files(self, source: Mapping[str, Any]) -> list[Stretch]:
        """Files older than the first report count as arrived at the first report, as with offsets."""
        assert self.first_s is not None
        each = int(source["rows"]) / sum(count for _, count in source["files"])
        came = [(max(float(at_s), self.first_s), count) for at_s, count in source["files"]]
        return [Stretch(at_s, at_s, each * count, sampled=True) for at_s, count in came]

    def _by_seconds(self, source: Mapping[str, Any], batch: Mapping[str, Any]) -> Stretch:
        """The seconds between two offsets of the rate source.

        >>> source = {"name": "RateStream rowsPerSecond=10", "start": 3, "end": 5, "rows": 20}
        >>> arrivals = ArrivalCurve()
        >>> for at_s, end in ((104.9, 4), (105.1, 5)):  # so it began at 100 or a little later
        ...     found = arrivals._by_seconds({**source, "end": end}, {"started_s": at_s})
        >>> round(found.from_s, 2), round(found.to_s, 2)
        (103.0, 105.0)
        """
        at_s, end = float(batch["started_s"]), float(source["end"])
        low_s, high_s = max(at_s - 1.0, self._asked_s(batch)) - end, at_s - end
        if self.rate_began_s is not None and low_s <= self.rate_began_s[1] and high_s >= self.rate_began_s[0]:
            low_s, high_s = max(low_s, self.rate_began_s[0]), min(high_s, self.rate_began_s[1])
        self.rate_began_s = (low_s, high_s)  # without overlap the clock was set: the latest poll counts alone
        began_s = (low_s + high_s) / 2
        return Stretch(began_s + float(source["start"] or 0), began_s + end, int(source["rows"]))

    def _asked_s(self, batch: Mapping[str, Any]) -> float:
        """When the source was asked before this batch, at the earliest, and did not have the batch's last rows yet."""
        started_s = float(batch["started_s"])
        if self.looked_s is None or self.ended_s is None:
            return started_s - 1.0
        if started_s - self.ended_s <= _IDLE_S:
            return self.looked_s
        return max(self.looked_s, started_s - (float(batch.get("trigger_s") or 0.0) or _POLL_S))

    def _by_offsets(self, source: Mapping[str, Any], at_s: float) -> list[Stretch]:
        if self.reports:
            self.curve.add(at_s, by_partition(source["latest"]))
        start, end = by_partition(source["start"]), by_partition(source["end"])
        taken = {key: (start.get(key, 0), until) for key, until in end.items() if until > start.get(key, 0)}
        offsets, rows = sum(until - first for first, until in taken.values()), int(source["rows"])
        if offsets <= 0 or rows <= 0:
            return []
        return [
            Stretch(from_s, to_s, n * rows / offsets, sampled=True)
            for key, (first, until) in taken.items()
            for from_s, to_s, n in self.curve.lines.get(key, Line()).stretches(first, until, at_s)
        ]


def _counts_seconds(source: Mapping[str, Any]) -> bool:
    """Whether a source is Spark's rate source with its offsets recorded."""
    return str(source["name"]).startswith(_RATE_SOURCE) and isinstance(source.get("end"), int | float)


def by_partition(offset: Any) -> dict[str, int]:
    """Flatten the offsets of a progress report to "topic/partition" keys.

    >>> by_partition({"t": {"0": 5, "1": 7}}), by_partition(3), by_partition(None)
    ({'t/0': 5, 't/1': 7}, {'': 3}, {})
    """
    if isinstance(offset, Mapping):
        return {f"{t}/{p}": int(n) for t, parts in offset.items() for p, n in dict(parts).items()}
    return {"": int(offset)} if isinstance(offset, int | float) else {}


def offsets_in(offset: Any) -> float:
    """The sum of the offsets over all partitions of all topics, whatever the nesting.

    >>> offsets_in({"t": {"0": 5, "1": 7}}), offsets_in(None), offsets_in(3)
    (12.0, 0.0, 3.0)
    """
    if isinstance(offset, Mapping):
        return sum(offsets_in(inner) for inner in offset.values())
    return float(offset) if isinstance(offset, int | float) else 0.0


def behind(batch: Mapping[str, Any]) -> float | None:
    """Rows in the topics that the batch did not read; ``None`` if no source reports it."""
    known = [source for source in batch["sources"] if source["kafka"] and source.get("latest")]
    return sum(max(offsets_in(s["latest"]) - offsets_in(s["end"]), 0.0) for s in known) if known else None


def births(stretches: Iterable[Stretch]) -> Births:
    """Convert stretches to the histogram that a pipeline's rows carry.

    >>> births([Stretch(0.0, 12.0, 12.0)]).mean_s
    6.0
    """
    points = []
    for one in stretches:
        step_s = (one.to_s - one.from_s) / _POINTS
        points += [(one.from_s + (i + 0.5) * step_s, one.rows / _POINTS) for i in range(_POINTS)]
    return Births.of(points)
