"""Data cleaning: repairs lines of user behaviour if possible, and separates those beyond repair.

    parse   (stateless)  a line -> its five fields, whatever separates them
    repair  (stateless)  removes spaces and capitals, milliseconds become seconds, an empty category becomes 0
    judge   (stateless)  two outputs: valid records, with types, and invalid lines, with the reason

Data Clean of the Intel Storm benchmarks, as in the uncertainty-aware paper. There the lines of a web log with status
200 pass; here lines are repaired too, and none is dropped silently. One generated line in five is dirty, half of these
beyond repair. In real files the usual error is an event outside the nine days of the data set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs.user_behaviour import BEHAVIOURS, dirty_lines_of, lines_in_csv
from sluicegate.lab.apps.judging import first_of
from sluicegate.lab.apps.line_app import line_app
from sluicegate.lab.running.app import Answer, compare
from sluicegate.lab.running.given import Records, cycled
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import OUTPUT

FROM_S, UNTIL_S = 1_511_539_200, 1_512_316_800
"""25 November to 3 December 2017 in China, according to the data set's description."""
_FIELDS = ("user", "item", "category", "behaviour", "at")
_NUMBER = "[0-9]{1,15}"
_MILLISECONDS = "[0-9]{13}"
_SEPARATOR = "[,;\t]"
COLUMNS = ("line", "user", "item", "category", "behaviour", "at_s", "reason")

Cleaned = tuple[str, int | None, int | None, int | None, str | None, int | None, str]
"""A line and its cleaned fields, in the order of ``COLUMNS``; the reason is empty for a valid record."""


def parse(lines: DataFrame) -> DataFrame:
    split = lines.select("line", F.split("line", _SEPARATOR).alias("fields"))
    fields = (F.trim(F.get("fields", F.lit(n))).alias(name) for n, name in enumerate(_FIELDS))
    return split.select("line", F.size("fields").alias("size"), *fields)


def repair(parsed: DataFrame) -> DataFrame:
    in_ms = F.col("at").rlike(f"^{_MILLISECONDS}$")
    return parsed.withColumns(
        {
            "behaviour": F.lower("behaviour"),
            "category": F.when(F.col("category") == "", F.lit("0")).otherwise(F.col("category")),
            "at": F.when(in_ms, F.substring("at", 1, 10)).otherwise(F.col("at")),
        }
    )


def judge(repaired: DataFrame) -> DataFrame:
    numbers = F.lit(True)
    for name in ("user", "item", "category", "at"):
        numbers &= F.col(name).rlike(f"^{_NUMBER}$")
    reason = (
        F.when(F.col("size") != len(_FIELDS), F.lit("torn"))
        .when(~numbers, F.lit("no number"))
        .when(~F.col("behaviour").isin(*BEHAVIOURS), F.lit("unknown behaviour"))
        .when(~F.expr(f"try_cast(at as long) between {FROM_S} and {UNTIL_S - 1}"), F.lit("out of time"))
        .otherwise(F.lit(""))
    )
    typed = {name: f"if(reason = '', try_cast({name} as long), null)" for name in ("user", "item", "category", "at")}
    return repaired.withColumn("reason", reason).select(
        "line",
        *(F.expr(typed[name]).alias(name) for name in ("user", "item", "category")),
        F.expr("if(reason = '', behaviour, null)").alias("behaviour"),
        F.expr(typed["at"]).alias("at_s"),
        "reason",
        F.expr("if(reason = '', 'clean', 'rejected')").alias(OUTPUT),
    )


def build() -> Pipeline:
    pipeline = Pipeline("data_clean")
    parsed = pipeline.operator("parse", parse, pipeline.source("events", "line string"))
    judged = pipeline.splitter(
        "judge", judge, pipeline.operator("repair", repair, parsed), outputs=("clean", "rejected")
    )
    pipeline.sink("clean", judged["clean"])
    pipeline.sink("rejected", judged["rejected"])
    return pipeline


def cleaned(line: str) -> Cleaned:
    """The expected result for a line, in plain Python.

    >>> cleaned("7; 8;;PV;1511658000123")
    ('7; 8;;PV;1511658000123', 7, 8, 0, 'pv', 1511658000, '')
    >>> cleaned("7,8,9,pv")
    ('7,8,9,pv', None, None, None, None, None, 'torn')
    """
    fields = [field.strip(" ") for field in re.split(_SEPARATOR, line)]
    if len(fields) != len(_FIELDS):
        return _rejected(line, "torn")
    user, item, category, behaviour, at = fields
    category, at = category or "0", at[:10] if re.fullmatch(_MILLISECONDS, at) else at
    if not all(re.fullmatch(_NUMBER, text) for text in (user, item, category, at)):
        return _rejected(line, "no number")
    if behaviour.lower() not in BEHAVIOURS:
        return _rejected(line, "unknown behaviour")
    if not FROM_S <= int(at) < UNTIL_S:
        return _rejected(line, "out of time")
    return (line, int(user), int(item), int(category), behaviour.lower(), int(at), "")


def _rejected(line: str, reason: str) -> Cleaned:
    return (line, None, None, None, None, None, reason)


def expected(total: int, lines: Records[str] = dirty_lines_of) -> dict[object, int]:
    """By output, every expected result with its count."""
    each = (cleaned(line) for line in first_of(lines, total))
    return Counter(("rejected" if one[-1] else "clean", *one) for one in each)


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = dirty_lines_of) -> Answer:
    """Compare both outputs row by row."""
    found: dict[object, int] = {
        (output, *(row[column] for column in COLUMNS)): int(row["count"])
        for output, log in sinks.items()
        for row in log.groupBy(*COLUMNS).count().collect()
    }
    return compare(expected(fed["events"], lines), found, sum(found.values()))


APP = line_app(
    dirty_lines_of,
    lambda path: cycled(lines_in_csv(path)),
    check,
    build,
    name="data_clean",
    about="dirty lines parsed, repaired and judged: clean records here, the others there with the reason",
    paper="uncertainty-aware",
    calm_per_s=400.0,
    slo="mean=3s",
)
