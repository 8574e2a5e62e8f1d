"""Maps offsets of a topic to arrival times, from samples of the latest offset of each partition.

Rows are assumed to arrive evenly between two samples. Rows before the first sample are at least as old as that sample,
and count as exactly that old; rows beyond the last sample arrived between it and now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain.births import Births

_MOST_POINTS = 1024
"""Most samples per partition; beyond, every second one of the older half is dropped. At half, arrival times of a long
backlog are coarser."""


@dataclass(slots=True)
class Line:
    """Samples of one partition: times and offsets, both increasing."""

    at_s: list[float] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)

    def add(self, at_s: float, offset: int) -> None:
        if self.offset and (offset < self.offset[-1] or at_s <= self.at_s[-1]):
            if offset < self.offset[-1]:  # the topic was recreated
                self.at_s, self.offset = [at_s], [offset]
            return
        if len(self.offset) > 1 and self.offset[-2] == offset:
            self.at_s[-1] = at_s  # no new rows: the first and last sample of a flat stretch are enough
            return
        self.at_s.append(at_s)
        self.offset.append(offset)
        if len(self.offset) > _MOST_POINTS:
            half = _MOST_POINTS // 2
            self.at_s[:half], self.offset[:half] = self.at_s[:half:2], self.offset[:half:2]

    def at(self, moment_s: float) -> float:
        """The interpolated end offset at a moment; before the first sample, that of the first sample.

        >>> Line([0.0, 10.0], [100, 200]).at(5.0), Line([0.0, 10.0], [100, 200]).at(-3.0)
        (150.0, 100.0)
        """
        i = bisect_right(self.at_s, moment_s)
        if i in (0, len(self.at_s)):
            return float(self.offset[min(i, len(self.at_s) - 1)])
        passed = (moment_s - self.at_s[i - 1]) / (self.at_s[i] - self.at_s[i - 1])
        return self.offset[i - 1] + (self.offset[i] - self.offset[i - 1]) * passed

    def births(self, first: int, end: int, now_s: float) -> list[tuple[float, float]]:
        """(arrival time, rows) points of the rows from ``first`` up to but not including ``end``."""
        return [((from_s + to_s) / 2, rows) for from_s, to_s, rows in self.stretches(first, end, now_s)]

    def stretches(self, first: int, end: int, now_s: float) -> list[tuple[float, float, float]]:
        """(from, to, rows) stretches of even arrivals for the rows from ``first`` up to but not including ``end``."""
        if not self.offset:
            return [(now_s, now_s, float(end - first))]
        found = []
        if first < self.offset[0]:
            found.append((self.at_s[0], self.at_s[0], float(min(end, self.offset[0]) - first)))
        for i in range(max(bisect_right(self.offset, first) - 1, 0), len(self.offset) - 1):
            low, high = max(first, self.offset[i]), min(end, self.offset[i + 1])
            if self.offset[i] >= end:
                break
            if high > low:
                each_s = (self.at_s[i + 1] - self.at_s[i]) / (self.offset[i + 1] - self.offset[i])
                since_s, before = self.at_s[i], self.offset[i]
                found.append((since_s + (low - before) * each_s, since_s + (high - before) * each_s, float(high - low)))
        if end > self.offset[-1]:
            found.append((self.at_s[-1], max(now_s, self.at_s[-1]), float(end - max(first, self.offset[-1]))))
        return found


@dataclass(slots=True)
class OffsetCurve:
    """The samples of all partitions of a query's topics.

    >>> curve = OffsetCurve()
    >>> curve.add(10.0, {"a": 100}); curve.add(12.0, {"a": 300})
    >>> curve.births({"a": (150, 250)}, now_s=13.0)
    Births(points=((11.0, 100.0),))
    """

    lines: dict[str, Line] = field(default_factory=dict)

    def add(self, at_s: float, offsets: Mapping[str, int]) -> None:
        """Add one sample; samples must be in order of time."""
        for key, offset in offsets.items():
            self.lines.setdefault(key, Line()).add(at_s, offset)

    def per_s(self, since_s: float, until_s: float) -> float:
        """Rows per second that arrived in the topics between two moments, whether read or not."""
        grew = sum(line.at(until_s) - line.at(since_s) for line in self.lines.values() if line.offset)
        return grew / (until_s - since_s)

    def births(self, ranges: Mapping[str, tuple[int, int]], now_s: float) -> Births:
        return Births.of(
            point
            for key, (first, end) in ranges.items()
            if end > first
            for point in self.lines.get(key, Line()).births(first, end, now_s)
        )
