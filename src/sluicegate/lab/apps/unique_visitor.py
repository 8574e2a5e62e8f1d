"""Unique visitors: how many different addresses saw each page of a web site, exactly.

    view   (stateless)  a line of the log -> the page and its visitor
    first  (stateful)   passes every pair of page and visitor once
    count  (stateful)   page -> how many pairs have passed

Unique Visitor of the Intel Storm benchmarks, as in the uncertainty-aware paper. There one operator holds a set per
page; here the set is partitioned by page and visitor, so that a very popular page does not end up on one processor.
Exact means that every pair is kept: the state grows with the number of pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs.web_log import lines_of, log_in, view_in, views
from sluicegate.lab.apps.judging import first_of, judged, told_in
from sluicegate.lab.apps.line_app import line_app
from sluicegate.lab.running.app import Answer
from sluicegate.lab.running.given import Records, cycled
from sluicegate.spark.pipeline.declaration import Pipeline


def view(lines: DataFrame) -> DataFrame:
    return views(lines).select("page", "address")


def first(pairs: DataFrame) -> DataFrame:
    return pairs.dropDuplicates(["page", "address"])


def count(pairs: DataFrame) -> DataFrame:
    return pairs.groupBy("page").agg(F.count("*").alias("visitors"))


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("unique_visitor")
    lines = pipeline.source("requests", "line string")
    pairs = pipeline.operator("view", view, lines)
    new = pipeline.operator("first", first, pairs, stateful=True, key_groups=key_groups)
    pipeline.sink("visitors", pipeline.operator("count", count, new, stateful=True, key_groups=key_groups))
    return pipeline


def expected(total: int, lines: Records[str] = lines_of) -> dict[object, int]:
    """The different visitors of each page in the first ``total`` lines."""
    found = (view_in(line) for line in first_of(lines, total))
    return Counter(page for page, _ in {(one.page, one.address) for one in found if one})


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = lines_of) -> Answer:
    return judged(expected(fed["requests"], lines), told_in(sinks["visitors"], "visitors", "page"))


APP = line_app(
    lines_of,
    lambda path: cycled(log_in(path)),
    check,
    build,
    name="unique_visitor",
    about="different visitors of each page, exactly: view, first (stateful), count (stateful)",
    paper="uncertainty-aware",
    calm_per_s=400.0,
    slo="mean=4s",
)
