"""Hashtags: the tags that most tweets of the last hour carry, every five minutes.

    extract  (stateless)  a tweet -> its tags, in lower case, with the time of the tweet
    count    (stateful)   window by event time, tag -> how often
    top      (stateful)   window -> its N most frequent tags, as a log of changes like that of top_n

Rolling Hashtag Count of the uncertainty-aware paper, whose window is 60 s and moves by 5 s: that is ``hashtags_60s``.
``hashtags`` has 60 minutes and 5 minutes, since the times of real tweets are in minutes; the list of the most frequent
tags is ours. ``top`` also drops windows that are over: windows it reads end after the latest tweet so far less
``late_s``, and that tweet is less than a window before the latest end that ``top`` has seen. So a watermark of a window
plus ``late_s`` loses nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.errors import BadInput
from sluicegate.lab.apps.inputs.draws import uniform
from sluicegate.lab.apps.inputs.texts import texts_of
from sluicegate.lab.apps.judging import first_of, told_in, twice
from sluicegate.lab.apps.sliding import Sliding, later_each_round
from sluicegate.lab.apps.top_n import led, most_of
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.lab.running.given import Records, records_in
from sluicegate.spark.pipeline.declaration import Pipeline

N = 5
WINDOWS = Sliding(length_s=3600, step_s=300, late_s=120)
SECONDS = Sliding(length_s=60, step_s=5, late_s=3)
_TAG = "#([A-Za-z0-9_]+)"
_BEGAN_S = 1_424_131_200
_PER_MINUTE, _PER_S = 40, 100
_STATE = "leaders string"

Tweet = tuple[int, str]
"""Time in seconds since 1970, and text."""


def extract(tweets: DataFrame) -> DataFrame:
    tags = F.regexp_extract_all("text", F.lit(_TAG), F.lit(1))
    return tweets.select("at_s", F.explode(tags).alias("tag")).select("at_s", F.lower("tag").alias("tag"))


def count(tags: DataFrame, windows: Sliding = WINDOWS) -> DataFrame:
    return windows.counts(tags, "tag")


def top(counts: DataFrame, windows: Sliding = WINDOWS) -> DataFrame:
    ends = F.timestamp_seconds(F.col("from_s") + windows.length_s)
    timed = counts.withColumn("ends", ends).withWatermark("ends", f"{windows.length_s + windows.late_s} seconds")
    return timed.groupBy("from_s").applyInPandasWithState(
        _Top(windows.length_s),
        "from_s long, tag string, times long",
        _STATE,
        "update",
        GroupStateTimeout.EventTimeTimeout,
    )


@dataclass(frozen=True, slots=True)
class _Top:
    length_s: int

    def __call__(self, key: tuple[int], counts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return changed(key, counts, state, self.length_s)


def changed(
    key: tuple[int], counts: Iterator[pd.DataFrame], state: GroupState, length_s: int = WINDOWS.length_s
) -> Iterator[pd.DataFrame]:
    """Process one batch of one window: keep its most frequent tags, emit changes, drop the state once it is over."""
    if state.hasTimedOut:
        state.remove()
        return
    (from_s,) = key
    before: dict[str, int] = json.loads((state.getOption or ("{}",))[0])
    after = led(before, (pair for some in counts for pair in zip(some["tag"], some["times"].tolist(), strict=True)), N)
    state.update((json.dumps(after),))
    state.setTimeoutTimestamp((int(from_s) + length_s) * 1000)
    news = [(from_s, tag, times) for tag, times in after.items() if before.get(tag) != times]
    if news:
        yield pd.DataFrame(news, columns=["from_s", "tag", "times"])


def build(key_groups: int = 4, windows: Sliding = WINDOWS, name: str = "hashtags") -> Pipeline:
    pipeline = Pipeline(name)
    tweets = pipeline.source("tweets", "at_s long, text string")
    tags = pipeline.operator("extract", extract, tweets)
    counts = pipeline.operator("count", partial(count, windows=windows), tags, stateful=True, key_groups=key_groups)
    leading = pipeline.operator("top", partial(top, windows=windows), counts, stateful=True, key_groups=key_groups)
    pipeline.sink("top", leading)
    return pipeline


def tweets_of(first: int, count: int) -> list[Tweet]:
    """The tweets numbered ``first`` on; they arrive up to a minute and a half out of order."""
    at = np.arange(first, first + count, dtype=np.int64)
    late_s = np.floor(91 * uniform(at, 8)).astype(np.int64)
    return list(zip((_BEGAN_S + at * 60 // _PER_MINUTE - late_s).tolist(), texts_of(first, count), strict=True))


def tweets_by_second(first: int, count: int) -> list[Tweet]:
    """The same texts, a hundred a second; they arrive up to two seconds out of order."""
    at = np.arange(first, first + count, dtype=np.int64)
    late_s = np.floor(3 * uniform(at, 8)).astype(np.int64)
    return list(zip((_BEGAN_S + at // _PER_S - late_s).tolist(), texts_of(first, count), strict=True))


def rows(source: str, first: int, count: int, tweets: Records[Tweet] = tweets_of) -> pa.Table:
    made = tweets(first, count)
    return pa.table({"at_s": pa.array([at_s for at_s, _ in made], pa.int64()), "text": [text for _, text in made]})


def expected(total: int, tweets: Records[Tweet] = tweets_of, over: Sliding = WINDOWS) -> dict[object, int]:
    """By window and tag, the counts of the most frequent ones among the first ``total`` tweets."""
    windows: dict[int, Counter[str]] = {}
    for at_s, text in first_of(tweets, total):
        for tag in re.findall(_TAG, text):
            for start in over.starts_of(at_s):
                windows.setdefault(start, Counter())[tag.lower()] += 1
    return leaders({(start, tag): n for start, tags in windows.items() for tag, n in tags.items()})


def leaders(counts: Mapping[tuple[int, str], int]) -> dict[object, int]:
    """The N most frequent tags of each window; among equals the first by name."""
    windows: dict[int, dict[str, int]] = {}
    for (start, tag), times in counts.items():
        windows.setdefault(start, {})[tag] = times
    return {(start, tag): n for start, tags in windows.items() for tag, n in most_of(tags, N).items()}


def check(
    fed: Mapping[str, int],
    sinks: Mapping[str, DataFrame],
    tweets: Records[Tweet] = tweets_of,
    windows: Sliding = WINDOWS,
) -> Answer:
    """Compare the final list of each window's log; no pair may occur twice."""
    told = told_in(sinks["top"], "times", "from_s", "tag")
    found = leaders({(int(key[0]), str(key[1])): one.last for key, one in told.items() if isinstance(key, tuple)})
    rows_out = sum(one.times for one in told.values())
    return twice(compare(expected(fed["tweets"], tweets, windows), found, rows_out), told)


def in_csv(path: Path) -> list[Tweet]:
    """The tweets of a file with the columns ``timestamp_local`` and ``text``."""
    records = records_in(path, "timestamp_local", "text")
    try:
        times = [int(datetime.fromisoformat(one["timestamp_local"]).replace(tzinfo=UTC).timestamp()) for one in records]
    except ValueError as problem:
        raise BadInput(f"{path}: timestamp_local must be as 2015-02-16T23:36:00: {problem}") from problem
    return list(zip(times, (one["text"] or "" for one in records), strict=True))


def app_of(tweets: Records[Tweet]) -> App:
    return App(
        name="hashtags",
        about="the most frequent tags of the last hour: extract, count (stateful, by event time), top (stateful)",
        paper="uncertainty-aware",
        build=build,
        rows=partial(rows, tweets=tweets),
        check=partial(check, tweets=tweets),
        calm_per_s=100.0,
        slo="mean=5s",
        given=lambda path: app_of(later_each_round(in_csv(path))),
    )


APP = app_of(tweets_of)
BY_SECOND = replace(
    APP,
    name="hashtags_60s",
    about="the most frequent tags of the last 60 s, every 5 s, as in the paper: extract, count, top (both stateful)",
    build=partial(build, windows=SECONDS, name="hashtags_60s"),
    rows=partial(rows, tweets=tweets_by_second),
    check=partial(check, tweets=tweets_by_second, windows=SECONDS),
    given=None,
)
