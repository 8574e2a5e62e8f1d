"""Compares the log of an application whose counts or results grow with the right answer.

A stateful operator in update mode writes the new count of every key in a batch. Counts only grow, so whatever the
batches were, the largest count of a key is its last, and a count that occurs twice was published twice.

In a log of growing results each row has a key, the number of inputs so far, and the result. The number only grows, so
the row with the largest is the last and must be right; the rows before it depend on batch boundaries, but none may
occur twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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


Grown = tuple[object, int, object]
"""Key, number of inputs so far, result."""


def last_of(told: Iterable[Grown]) -> dict[object, tuple[int, object]]:
    """
    >>> last_of([("a", 1, "x"), ("a", 3, "z"), ("a", 2, "y")])
    {'a': (3, 'z')}
    """
    last: dict[object, tuple[int, object]] = {}
    for key, grown, result in told:
        if key not in last or grown > last[key][0]:
            last[key] = grown, result
    return last


def judged_results(wanted: Mapping[object, tuple[int, object]], told: list[Grown]) -> Answer:
    """Check that the last result of every key is as ``wanted``.

    >>> judged_results({"a": (3, "z")}, [("a", 1, "x"), ("a", 3, "w")]).note
    "'a': 'w' instead of 'z'"
    >>> judged_results({"a": (3, "z")}, [("a", 3, "z"), ("a", 3, "z")]).note
    "'a' at 3 was published twice"
    """
    last = last_of(told)
    answer = compare(
        {key: grown for key, (grown, _) in wanted.items()}, {key: grown for key, (grown, _) in last.items()}, len(told)
    )
    wrong = [f"{key!r}: {last[key][1]!r} instead of {wanted[key][1]!r}" for key in last if last[key] != wanted.get(key)]
    twice = [f"{key!r} at {grown} was published twice" for (key, grown), n in _tellings(told).items() if n > 1]
    notes = [answer.note] if answer.note else [*wrong, *twice]
    return replace(answer, exact=False, note=notes[0]) if notes else answer


def _tellings(told: Iterable[Grown]) -> Counter[tuple[object, int]]:
    return Counter((key, grown) for key, grown, _ in told)
