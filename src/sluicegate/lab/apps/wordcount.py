"""Word count: splits lines into words and counts them.

The words of line i come from a fixed vocabulary by a formula of i, with some words far more frequent than others.
``wordcount_prose`` has lines and a vocabulary of the size of a book's (``lab.apps.inputs.texts``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs import texts
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.lab.running.given import Records, cycled, lines_in
from sluicegate.spark.pipeline.declaration import Pipeline

_WORDS_A_LINE = 4
_VOCABULARY = 400
_AT_ONCE = 100_000


def split(lines: DataFrame) -> DataFrame:
    return lines.select(F.explode(F.split("text", " ")).alias("word"))


def count(words: DataFrame) -> DataFrame:
    return words.groupBy("word").count()


def build(name: str = "wordcount", key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline(name)
    lines = pipeline.source("lines", "text string")
    words = pipeline.operator("split", split, lines)
    counts = pipeline.operator("count", count, words, stateful=True, key_groups=key_groups)
    pipeline.sink("counts", counts)
    return pipeline


def words_of(first: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The word numbers of ``count`` lines, one row per line; small numbers are more frequent."""
    at = np.arange(first * _WORDS_A_LINE, (first + count) * _WORDS_A_LINE, dtype=np.int64)
    mixed = (at * 2654435761 + 12345) % 1_000_003
    return (mixed * mixed // 1_000_003 * _VOCABULARY // 1_000_003).reshape(count, _WORDS_A_LINE)


def generated(first: int, count: int) -> list[str]:
    return [" ".join(f"w{n}" for n in line) for line in words_of(first, count).tolist()]


def rows(source: str, first: int, count: int, lines: Records[str] = generated) -> pa.Table:
    return pa.table({"text": lines(first, count)})


def texts_counted(lines: Records[str], total: int) -> Counter[object]:
    """How often each word is in the first ``total`` lines."""
    counts: Counter[object] = Counter()
    for start in range(0, total, _AT_ONCE):
        for line in lines(start, min(_AT_ONCE, total - start)):
            counts.update(line.split(" "))
    return counts


def numbers_counted(total: int) -> Counter[object]:
    """The same of generated lines, without their texts: an hour at full load has a billion of them.

    >>> numbers_counted(1000) == texts_counted(generated, 1000)
    True
    """
    counts = np.zeros(_VOCABULARY, dtype=np.int64)
    for start in range(0, total, _AT_ONCE):
        counts += np.bincount(words_of(start, min(_AT_ONCE, total - start)).ravel(), minlength=_VOCABULARY)
    return Counter({f"w{n}": count for n, count in enumerate(counts.tolist()) if count})


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = generated) -> Answer:
    """Check the largest count of each word, which is its last as counts only grow."""
    found = sinks["counts"].groupBy("word").agg(F.max("count").alias("n"), F.count("*").alias("updates")).collect()
    total = fed["lines"]
    expected = numbers_counted(total) if lines is generated else texts_counted(lines, total)
    return compare(expected, {row["word"]: int(row["n"]) for row in found}, sum(int(row["updates"]) for row in found))


def app_of(lines: Records[str]) -> App:
    return App(
        name="wordcount",
        about="lines split into words, words counted (stateful)",
        paper="Es-Stream, Mc-Stream",
        build=build,
        rows=partial(rows, lines=lines),
        check=partial(check, lines=lines),
        calm_per_s=500.0,
        slo="mean=3s",
        given=lambda path: app_of(cycled(lines_in(path))),
    )


APP = app_of(generated)
PROSE = replace(
    app_of(texts.book_lines_of),
    name="wordcount_prose",
    about="lines as long as a book's, of a vocabulary of 20,000 words: split, counted (stateful, 16 key groups)",
    build=partial(build, "wordcount_prose", 16),
    slo="mean=5s",
    given=None,
)
