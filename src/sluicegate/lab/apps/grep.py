"""Grep: the lines of a stream that match patterns, counted per pattern.

    match  (stateless)  a line -> the name of every pattern that it matches
    count  (stateful)   pattern -> how many lines matched

Grep of the Intel Storm benchmarks, as in the uncertainty-aware paper, which searches one pattern in the log of a web
site; here there are six, on tweets. The patterns use ASCII letters only, so that Java and Python match alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs.texts import texts_of
from sluicegate.lab.apps.judging import first_of, judged, told_in
from sluicegate.lab.apps.line_app import line_app
from sluicegate.lab.running.app import Answer
from sluicegate.lab.running.given import Records, cycled, lines_in
from sluicegate.spark.pipeline.declaration import Pipeline

PATTERNS = {
    "addressed": r"^@[A-Za-z0-9_]+",
    "link": r"https?://[^ ]+",
    "tag": r"#[A-Za-z][A-Za-z0-9_]*",
    "shout": r"[A-Z]{4,}",
    "work": r"(^|[^A-Za-z])[Ww]ork(ing|ed|s)?([^A-Za-z]|$)",
    "trouble": r"(delay|cancell?ed|late|miss|lost|fail)",
}


def match(lines: DataFrame) -> DataFrame:
    found = (F.when(F.col("text").rlike(pattern), F.lit(name)) for name, pattern in PATTERNS.items())
    return lines.select(F.explode(F.array_compact(F.array(*found))).alias("pattern"))


def count(matches: DataFrame) -> DataFrame:
    return matches.groupBy("pattern").agg(F.count("*").alias("lines"))


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("grep")
    lines = pipeline.source("lines", "text string")
    matches = pipeline.operator("match", match, lines)
    pipeline.sink("counts", pipeline.operator("count", count, matches, stateful=True, key_groups=key_groups))
    return pipeline


def expected(total: int, lines: Records[str] = texts_of) -> dict[object, int]:
    """How many of the first ``total`` lines match each pattern."""
    patterns = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}
    return Counter(
        name for line in first_of(lines, total) for name, pattern in patterns.items() if pattern.search(line)
    )


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = texts_of) -> Answer:
    return judged(expected(fed["lines"], lines), told_in(sinks["counts"], "lines", "pattern"))


APP = line_app(
    texts_of,
    lambda path: cycled(lines_in(path)),
    check,
    build,
    name="grep",
    about="lines that match patterns, counted per pattern: match, count (stateful)",
    paper="uncertainty-aware",
    calm_per_s=500.0,
    slo="mean=3s",
    column="text",
)
