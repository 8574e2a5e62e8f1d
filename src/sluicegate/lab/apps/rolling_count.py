"""Rolling count: events of each category of a shop in the last minute, every ten seconds.

    read   (stateless)  a line of user behaviour -> when, and which category
    count  (stateful)   window of 60 s by event time, category -> how often; the state of a window is dropped once over

Rolling Count of the Intel Storm benchmarks, as in the uncertainty-aware paper. There the window is by processing time
and the words of a web log are counted; here it is by event time, so that the right answer does not depend on when an
event was processed. Events arrive up to 5 s out of order; real files are fed in the order of their times, and continue
with later times when they are repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs.user_behaviour import COLUMNS, lines_in_csv, lines_of, timed
from sluicegate.lab.apps.judging import first_of, judged, told_in
from sluicegate.lab.apps.line_app import line_app
from sluicegate.lab.apps.sliding import Sliding, later_each_round
from sluicegate.lab.running.app import Answer
from sluicegate.lab.running.given import Records
from sluicegate.spark.pipeline.declaration import Pipeline

WINDOWS = Sliding(length_s=60, step_s=10, late_s=10)


def read(events: DataFrame) -> DataFrame:
    fields = events.select(F.split("line", ",").alias("fields")).where(F.size("fields") == len(COLUMNS))
    when = F.expr("try_cast(fields[4] as long)")
    return fields.select(when.alias("at_s"), F.col("fields")[2].alias("category")).where("at_s is not null")


def count(events: DataFrame) -> DataFrame:
    return WINDOWS.counts(events, "category")


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("rolling_count")
    lines = pipeline.source("events", "line string")
    events = pipeline.operator("read", read, lines)
    pipeline.sink("counts", pipeline.operator("count", count, events, stateful=True, key_groups=key_groups))
    return pipeline


def expected(total: int, lines: Records[str] = lines_of) -> dict[object, int]:
    """By start of the window and category, the events among the first ``total``."""
    fields = (line.split(",") for line in first_of(lines, total))
    return Counter((start, one[2]) for one in fields for start in WINDOWS.starts_of(int(one[4])))


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = lines_of) -> Answer:
    return judged(expected(fed["events"], lines), told_in(sinks["counts"], "times", "from_s", "category"))


def read_events(path: Path) -> Records[str]:
    """The events of a file, later in each round."""
    events = later_each_round(timed(lines_in_csv(path), path))
    return lambda first, count: [f"{before},{at_s}" for at_s, before in events(first, count)]


APP = line_app(
    lines_of,
    read_events,
    check,
    build,
    name="rolling_count",
    about="events per category in a window of a minute that moves by 10 s: read, count (stateful, by event time)",
    paper="uncertainty-aware",
    calm_per_s=300.0,
    slo="mean=3s",
)
