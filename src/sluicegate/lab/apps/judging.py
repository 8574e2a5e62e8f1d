"""Compares the log of a counting application with the right answer.

A stateful operator in update mode writes the new count of every key in a batch. Counts only grow, so whatever the
batches were, the largest count of a key is its last, and a count that occurs twice was published twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.running.app import Answer, compare
from sluicegate.lab.running.given import Records, T

_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class Told:
    """The log of one key: its largest count, the number of rows, and the number of distinct counts."""

    last: int
    times: int
    different: int


def first_of(records: Records[T], total: int) -> Iterator[T]:
    """The first ``total`` records, generated in chunks.

    >>> list(first_of(lambda first, count: list(range(first, first + count)), 3))
    [0, 1, 2]
    """
    for start in range(0, total, _AT_ONCE):
        yield from records(start, min(_AT_ONCE, total - start))


def told_in(log: DataFrame, count: str, *key: str) -> dict[object, Told]:
    """The log by key: a value if the key is one column, else a tuple."""
    told = (F.max(count).alias("last"), F.count("*").alias("times"), F.count_distinct(count).alias("different"))
    return {
        row[key[0]] if len(key) == 1 else tuple(row[column] for column in key): Told(
            int(row["last"]), int(row["times"]), int(row["different"])
        )
        for row in log.groupBy(*key).agg(*told).collect()
    }


def judged(expected: Mapping[object, int], told: Mapping[object, Told]) -> Answer:
    """
    >>> judged({"a": 2}, {"a": Told(last=2, times=2, different=2)}).exact
    True
    >>> judged({"a": 2}, {"a": Told(last=2, times=2, different=1)}).note
    "'a': 1 of its counts were published twice"
    """
    rows_out = sum(one.times for one in told.values())
    answer = compare(expected, {key: one.last for key, one in told.items()}, rows_out)
    return twice(answer, told)


def twice(answer: Answer, told: Mapping[object, Told]) -> Answer:
    """The answer, marked as not exact if the log has any count of a key more than once."""
    again = {key: one.times - one.different for key, one in told.items() if one.times > one.different}
    for key, times in again.items():
        note = answer.note or f"{key!r}: {times} of its counts were published twice"
        duplicated, wrong_keys = answer.duplicated + sum(again.values()), answer.wrong_keys + len(again)
        return replace(answer, exact=False, duplicated=duplicated, note=note, wrong_keys=wrong_keys)
    return answer
