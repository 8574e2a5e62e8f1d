"""When the rows of a batch arrived, from progress reports alone; with that, latency needs no look at the rows.

Kafka: every report has the end of the topic at that moment. These points are a curve from offsets to time; a row's
place on it is when it arrived. Assumed: rows came evenly between two reports, and partitions are read evenly.

Other sources: a batch takes what came since the one before looked. Assumed: rows came evenly in that time, and the
batch took all that was there (a read limit that leaves rows waiting makes the estimate too low). A query without an
interval that was idle found its rows at once; one with an interval found what came since its last trigger.

A row's latency ends when the sink has its batch, before Spark's own commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sluicegate.domain.births import Births

_POINTS = 12
"""Points that stand for the rows of a stretch of time: a p95 is right within a twelfth of it."""
_IDLE_S = 0.25
"""A pause between two batches that is longer than this was a wait for rows."""
_REMEMBERED = 500

ASSUMED = {
    "kafka": "rows arrived evenly between two progress reports; partitions are read evenly",
    "other": "rows arrived evenly since the batch before looked, and each batch took all that was there",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """``rows`` that arrived evenly between two moments, in seconds since the epoch."""

    from_s: float
    to_s: float
    rows: float

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
    """Of one query; takes its batches in order."""

    curves: dict[str, deque[tuple[float, float]]] = field(default_factory=dict)
    looked_s: float | None = None
    ended_s: float | None = None

    def of(self, batch: Mapping[str, Any]) -> list[Stretch]:
        """When the rows of one batch arrived, as its line in the log has it.

        >>> def kafka(at, start, end, latest):
        ...     source = {"name": "t", "kafka": True, "rows": end - start, "start": start, "end": end, "latest": latest}
        ...     return {"started_s": at, "duration_s": 1.0, "rows": end - start, "trigger_s": 0.0, "sources": [source]}
        >>> arrivals = ArrivalCurve()
        >>> _ = arrivals.of(kafka(10.0, 0, 100, 100))
        >>> arrivals.of(kafka(12.0, 100, 150, 300))
        [Stretch(from_s=10.0, to_s=10.5, rows=50)]
        """
        found: list[Stretch] = []
        known = 0
        for source in batch["sources"]:
            if source["kafka"] and source.get("latest"):
                found += self._by_offsets(source, float(batch["started_s"]))
                known += int(source["rows"])
        rest = int(batch["rows"]) - known
        if rest > 0:
            found.append(Stretch(self._since_s(batch), float(batch["started_s"]), rest))
        self.looked_s = float(batch["started_s"])
        self.ended_s = self.looked_s + float(batch["duration_s"])
        return found

    def _since_s(self, batch: Mapping[str, Any]) -> float:
        started_s, every_s = float(batch["started_s"]), batch.get("trigger_s")
        if self.looked_s is None or self.ended_s is None:
            return started_s
        if started_s - self.ended_s <= _IDLE_S:
            return self.looked_s
        return max(self.looked_s, started_s - float(every_s)) if every_s else max(self.looked_s, started_s - _IDLE_S)

    def _by_offsets(self, source: Mapping[str, Any], at_s: float) -> list[Stretch]:
        curve = self.curves.setdefault(source["name"], deque(maxlen=_REMEMBERED))
        latest = offsets_in(source["latest"])
        if not curve or latest > curve[-1][1]:
            curve.append((at_s, latest))
        start, end = offsets_in(source["start"]), offsets_in(source["end"])
        rows = int(source["rows"])
        if end <= start or rows <= 0:
            return []
        each = rows / (end - start)
        points = [(at_s, curve[0][1]), *curve] if len(curve) == 1 else list(curve)
        stretches = []
        if start < points[0][1]:  # older than the first report: not known, taken for new then
            stretches.append(Stretch(points[0][0], points[0][0], each * (min(end, points[0][1]) - start)))
        for (t0, o0), (t1, o1) in pairwise(points):
            low, high = max(start, o0), min(end, o1)
            if high > low:
                pace_s = (t1 - t0) / (o1 - o0)
                stretches.append(
                    Stretch(t0 + (low - o0) * pace_s, t0 + (high - o0) * pace_s, round(each * (high - low)))
                )
        return stretches


def offsets_in(offset: Any) -> float:
    """All partitions of all topics added up, however the report nests them.

    >>> offsets_in({"t": {"0": 5, "1": 7}}), offsets_in(None), offsets_in(3)
    (12.0, 0.0, 3.0)
    """
    if isinstance(offset, Mapping):
        return sum(offsets_in(inner) for inner in offset.values())
    return float(offset) if isinstance(offset, int | float) else 0.0


def behind(batch: Mapping[str, Any]) -> float | None:
    """Rows in the topics that the batch has not taken; ``None`` where no source says."""
    known = [source for source in batch["sources"] if source["kafka"] and source.get("latest")]
    return sum(max(offsets_in(s["latest"]) - offsets_in(s["end"]), 0.0) for s in known) if known else None


def births(stretches: Iterable[Stretch]) -> Births:
    """As the histogram that a pipeline's rows carry.

    >>> births([Stretch(0.0, 12.0, 12.0)]).mean_s
    6.0
    """
    points = []
    for one in stretches:
        step_s = (one.to_s - one.from_s) / _POINTS
        points += [(one.from_s + (i + 0.5) * step_s, one.rows / _POINTS) for i in range(_POINTS)]
    return Births.of(points)
