"""Sliding windows by event time: on Spark with a watermark, and in plain Python to check it.

A watermark deletes the state of windows that are over. It is exact here because no row is later than the watermark
allows: the watermark of a batch is the latest time in the batches before it less ``late_s``, and a row is at most
``late_s`` older than any row before it. The caller's rows must satisfy that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.running.given import Records, T


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of ``length_s``, one every ``step_s``, over rows that are at most ``late_s`` out of order."""

    length_s: int
    step_s: int
    late_s: int

    def counts(self, rows: DataFrame, key: str) -> DataFrame:
        """Count rows with ``at_s`` and ``key`` to (``from_s``, ``key``, ``times``), one row per changed count."""
        timed = rows.withColumn("at", F.timestamp_seconds("at_s")).withWatermark("at", f"{self.late_s} seconds")
        window = F.window("at", f"{self.length_s} seconds", f"{self.step_s} seconds")
        counted = timed.groupBy(window, key).agg(F.count("*").alias("times"))
        return counted.select(F.unix_timestamp("window.start").alias("from_s"), key, "times")

    def starts_of(self, at_s: int) -> range:
        """The starts of all windows that contain ``at_s``.

        >>> list(Sliding(length_s=60, step_s=20, late_s=0).starts_of(100))
        [60, 80, 100]
        """
        last = at_s - at_s % self.step_s
        return range(last - self.length_s + self.step_s, last + 1, self.step_s)


def later_each_round(events: Sequence[tuple[int, T]]) -> Records[tuple[int, T]]:
    """Repeat the events in order of time; each round is shifted by the duration of the first.

    >>> later_each_round([(101, "b"), (100, "a")])(1, 3)
    [(101, 'b'), (102, 'a'), (103, 'b')]
    """
    ordered = sorted(events, key=lambda event: event[0])
    lasts_s = ordered[-1][0] - ordered[0][0] + 1

    def records(first: int, count: int) -> list[tuple[int, T]]:
        rounds = (divmod(at, len(ordered)) for at in range(first, first + count))
        return [(ordered[n][0] + passed * lasts_s, ordered[n][1]) for passed, n in rounds]

    return records
