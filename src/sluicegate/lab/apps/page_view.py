"""Page views: how often each page of a web site is seen, and from which network in which minute.

    view     (stateless)  a line of the log -> page, minute, network
    pages    (stateful)   page -> views
    minutes  (stateful)   minute and network -> views; the view's stream is split between this one and ``pages``

Page View of the Intel Storm benchmarks, as in the uncertainty-aware paper. There views are counted per page only. The
network is the first number of the address, the best proxy for geography without an address registry. Lines may arrive
in any order, so a minute is never over and its count is kept: one small row per minute and network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs.web_log import lines_of, log_in, view_in, views
from sluicegate.lab.apps.judging import first_of, judged, told_in
from sluicegate.lab.apps.line_app import line_app
from sluicegate.lab.running.app import Answer
from sluicegate.lab.running.given import Records, cycled
from sluicegate.spark.pipeline.declaration import Pipeline


def view(lines: DataFrame) -> DataFrame:
    return views(lines).select("page", "minute", "network")


def pages(seen: DataFrame) -> DataFrame:
    return seen.groupBy("page").agg(F.count("*").alias("views"))


def minutes(seen: DataFrame) -> DataFrame:
    return seen.groupBy("minute", "network").agg(F.count("*").alias("views"))


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("page_view")
    seen = pipeline.operator("view", view, pipeline.source("requests", "line string"))
    pipeline.sink("pages", pipeline.operator("pages", pages, seen, stateful=True, key_groups=key_groups))
    pipeline.sink("minutes", pipeline.operator("minutes", minutes, seen, stateful=True, key_groups=key_groups))
    return pipeline


def expected(total: int, lines: Records[str] = lines_of) -> tuple[dict[object, int], dict[object, int]]:
    """Views by page, and by minute and network, in the first ``total`` lines."""
    by_page: Counter[object] = Counter()
    by_minute: Counter[object] = Counter()
    for one in (view_in(line) for line in first_of(lines, total)):
        if one is not None:
            by_page[one.page] += 1
            by_minute[one.minute, one.network] += 1
    return by_page, by_minute


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = lines_of) -> Answer:
    """Check both counts; losses and duplicates are reported for the one that is wrong."""
    by_page, by_minute = expected(fed["requests"], lines)
    answer = judged(by_page, told_in(sinks["pages"], "views", "page"))
    other = judged(by_minute, told_in(sinks["minutes"], "views", "minute", "network"))
    return replace(other if answer.exact else answer, rows_out=answer.rows_out + other.rows_out)


APP = line_app(
    lines_of,
    lambda path: cycled(log_in(path)),
    check,
    build,
    name="page_view",
    about="views per page, and per minute and network: view, then pages and minutes side by side (both stateful)",
    paper="uncertainty-aware",
    calm_per_s=400.0,
    slo="mean=4s",
)
