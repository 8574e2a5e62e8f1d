"""Commodity count: how often each item of a shop was seen, from lines of user behaviour.

    reader  (stateless)  a line -> the item, if the line is complete and records a view
    count   (stateful)   item -> how often it was seen
    report  (stateless)  the count with its band (1+, 10+, 100+ ...), for a board of the most shown items

COMMCount of Es-Stream (exposure of products), with its three operators. The paper does not say what the third one does:
the bands are ours. Lines have some 35 bytes, as in the data set; the paper's tuples have 92. The paper runs the count
in up to 24 instances: there are 16 key groups, and more if the loop requests them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs.user_behaviour import COLUMNS, lines_in_csv, lines_of
from sluicegate.lab.apps.judging import first_of, judged, told_in
from sluicegate.lab.apps.line_app import line_app
from sluicegate.lab.running.app import Answer
from sluicegate.lab.running.given import Records, cycled
from sluicegate.spark.pipeline.declaration import Pipeline


def reader(events: DataFrame) -> DataFrame:
    fields = events.select(F.split("line", ",").alias("fields")).where(F.size("fields") == len(COLUMNS))
    return fields.where("fields[3] = 'pv' and fields[1] <> ''").select(F.col("fields")[1].alias("item"))


def count(items: DataFrame) -> DataFrame:
    return items.groupBy("item").agg(F.count("*").alias("views"))


def report(counts: DataFrame) -> DataFrame:
    zeros = F.repeat(F.lit("0"), F.length(F.col("views").cast("string")) - 1)
    return counts.select("item", "views", F.concat(F.lit("1"), zeros, F.lit("+")).alias("band"))


def build(key_groups: int = 16) -> Pipeline:
    pipeline = Pipeline("commodity_count")
    events = pipeline.source("events", "line string")
    seen = pipeline.operator("reader", reader, events)
    counts = pipeline.operator("count", count, seen, stateful=True, key_groups=key_groups)
    pipeline.sink("board", pipeline.operator("report", report, counts))
    return pipeline


def expected(total: int, lines: Records[str] = lines_of) -> dict[object, int]:
    """The views of each item in the first ``total`` lines."""
    fields = (line.split(",") for line in first_of(lines, total))
    return Counter(one[1] for one in fields if len(one) == len(COLUMNS) and one[3] == "pv" and one[1])


def band_of(views: int) -> str:
    """
    >>> band_of(9), band_of(10), band_of(4711)
    ('1+', '10+', '1000+')
    """
    return f"{10 ** (len(str(views)) - 1)}+"


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = lines_of) -> Answer:
    """Check the last count of every item, and the band of every count on the board."""
    answer = judged(expected(fed["events"], lines), told_in(sinks["board"], "views", "item"))
    bands = sinks["board"].select("views", "band").distinct().collect()
    wrong = [f"{row['views']} views are in band {row['band']}" for row in bands if row["band"] != band_of(row["views"])]
    return replace(answer, exact=False, note=wrong[0]) if wrong else answer


APP = line_app(
    lines_of,
    lambda path: cycled(lines_in_csv(path)),
    check,
    build,
    name="commodity_count",
    about="views per item of a shop, from user behaviour: read, count (stateful), report",
    paper="Es-Stream",
    calm_per_s=500.0,
    slo="mean=3s",
)
