"""Top N: the most bought items of a shop, from lines of text of which some are broken.

    read   (stateless)  a JSON line -> the item, if it parses and is a purchase
    count  (stateful)   item -> how often it was bought
    rank   (stateful)   each bucket of items keeps its N most bought
    merge  (stateful)   one list of N out of all buckets

The output is a log of (item, bought) pairs that entered the list; the N largest of them, with the last count of each
item, are the list. It is exact whatever the batches are: counts only grow, so an item that is dropped from a list has N
others above it for good, unless a larger count of its own brings it back.

The structure is that of Top_N in Es-Stream and Mc-Stream (reader, count, rank, merge). Line i is a formula of i; the
frequency of item n is about 1/n (Zipf).

SHOP is top_n with every purchase looked up at a slow service first (simulated by sleeping): read -> price -> count ->
rank -> merge. The lookup sleeps and needs no core, so even on a small machine k processors do k times the work of one,
as on a large cluster: the demo's load can triple on any machine. Everything else, including the right answer, is the
same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.lab.apps.waits import after_waiting
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline

N = 10
_BUCKETS = 16
_ITEMS = 600
_ACTIONS = ("buy", "view", "buy", "cart")
_STATE = "leaders string"
"""As JSON, since this kind of state supports no arrays (Spark 4.3 fails on their schema)."""
_PRIME = 1_000_003


def read(lines: DataFrame) -> DataFrame:
    event = F.from_json("line", "user long, item string, action string")
    clean = lines.select(event.alias("event")).select(F.lower(F.trim("event.item")).alias("item"), "event.action")
    return clean.where("action = 'buy' and item <> ''").select("item")


def count(items: DataFrame) -> DataFrame:
    return items.groupBy("item").agg(F.count("*").alias("bought"))


def rank(counts: DataFrame) -> DataFrame:
    return _leaders(counts, F.pmod(F.xxhash64("item"), F.lit(_BUCKETS)))


def merge(leaders: DataFrame) -> DataFrame:
    return _leaders(leaders, F.lit(0))


def _leaders(counts: DataFrame, bucket: Column) -> DataFrame:
    return (
        counts.withColumn("bucket", bucket)
        .groupBy("bucket")
        .applyInPandasWithState(changed, "item string, bought long", _STATE, "update", GroupStateTimeout.NoTimeout)
    )


def changed(key: object, counts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Process one batch of one bucket: keep its N most bought, and emit every change in them."""
    before: dict[str, int] = json.loads((state.getOption or ("{}",))[0])
    after = led(before, (pair for some in counts for pair in zip(some["item"], some["bought"].tolist(), strict=True)))
    news = [(item, bought) for item, bought in after.items() if before.get(item) != bought]
    if news:
        state.update((json.dumps(after),))
        yield pd.DataFrame(news, columns=["item", "bought"])


def led(leaders: Mapping[str, int], updates: Iterable[tuple[str, int]], most: int = N) -> dict[str, int]:
    """The ``most`` items with the largest counts, in order; ties by name.

    >>> led({"ant": 5, "bee": 3}, [("cat", 3), ("ant", 6), ("dog", 4), ("ant", 2)], most=3)
    {'ant': 6, 'dog': 4, 'bee': 3}
    """
    largest = dict(leaders)
    for item, bought in updates:
        largest[item] = max(bought, largest.get(item, 0))
    return dict(sorted(largest.items(), key=lambda one: (-one[1], one[0]))[:most])


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("top_n")
    events = pipeline.source("events", "line string")
    bought = pipeline.operator("read", read, events)
    counts = pipeline.operator("count", count, bought, stateful=True, key_groups=key_groups)
    ranked = pipeline.operator("rank", rank, counts, stateful=True, key_groups=key_groups)
    merged = pipeline.operator("merge", merge, ranked, stateful=True, key_groups=1)
    pipeline.sink("top", merged)
    return pipeline


@dataclass(frozen=True, slots=True)
class ShopEvent:
    """The content of line i; ``torn`` lines end before the action, as after a broken connection."""

    item: str
    action: str
    torn: bool

    def line(self, number: int) -> str:
        untidy = f" {self.item.upper()} " if number % 7 == 0 else self.item
        start = f'{{"user": {number % 9973}, "item": "{untidy}", '
        return start if self.torn else f'{start}"action": "{self.action}"}}'


def events_of(first: int, count: int) -> list[ShopEvent]:
    """The events numbered ``first`` on."""
    at = np.arange(first, first + count, dtype=np.int64)
    items = np.floor(_ITEMS ** ((at * 2654435761 + 12345) % _PRIME / _PRIME)).astype(np.int64).tolist()
    actions = (at * 40503 % _PRIME % len(_ACTIONS)).tolist()
    torn = (at * 7919 % _PRIME % 50 == 0).tolist()
    return [ShopEvent(f"i{items[n]}", _ACTIONS[actions[n]], torn[n]) for n in range(count)]


def rows(source: str, first: int, count: int) -> pa.Table:
    return pa.table({"line": [event.line(first + n) for n, event in enumerate(events_of(first, count))]})


def expected(total: int) -> dict[str, int]:
    """The N most bought of the first ``total`` events, by counting all, independently of the operators."""
    bought: Counter[str] = Counter()
    for start in range(0, total, 100_000):
        some = events_of(start, min(100_000, total - start))
        bought.update(event.item for event in some if event.action == "buy" and not event.torn)
    return most_of(bought, N)


def most_of(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """The ``most`` keys with the largest counts; ties by name.

    >>> most_of({"bee": 3, "ant": 3, "cat": 9, "dog": 1}, 2)
    {'cat': 9, 'ant': 3}
    """
    by_name = sorted(counts)  # the next sort is stable
    return {key: counts[key] for key in sorted(by_name, key=counts.__getitem__, reverse=True)[:most]}


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame]) -> Answer:
    """Compare the final list of the log; a pair that is in the log twice was published twice."""
    found = sinks["top"].groupBy("item", "bought").count().collect()
    largest: dict[str, int] = {}
    for row in found:
        largest[row["item"]] = max(int(row["bought"]), largest.get(row["item"], 0))
    top = most_of(largest, N)
    wanted = expected(fed["events"])
    rows_out = sum(int(row["count"]) for row in found)
    answer = compare(dict[object, int](wanted.items()), dict[object, int](top.items()), rows_out)
    again = sum(int(row["count"]) - 1 for row in found)
    return replace(answer, exact=False, note=f"{again} changes were published twice") if again else answer


APP = App(
    name="top_n",
    about="the most bought items of a shop: parse, count, rank by bucket, merge (three stateful operators)",
    paper="Es-Stream, Mc-Stream",
    build=build,
    rows=rows,
    check=check,
    calm_per_s=300.0,
    slo="mean=5s",
)


LOOK_UP_MS = 8.0


def price(items: DataFrame) -> DataFrame:
    """Sleep for the service's answer, one purchase after the other."""
    return after_waiting(items, LOOK_UP_MS)


def build_shop() -> Pipeline:
    pipeline = Pipeline("shop")
    events = pipeline.source("events", "line string")
    priced = pipeline.operator("price", price, pipeline.operator("read", read, events))
    counts = pipeline.operator("count", count, priced, stateful=True, key_groups=8)
    ranked = pipeline.operator("rank", rank, counts, stateful=True, key_groups=4)
    pipeline.sink("top", pipeline.operator("merge", merge, ranked, stateful=True, key_groups=1))
    return pipeline


SHOP = replace(
    APP,
    name="shop",
    about=f"top_n with a look-up at a service before the count ({LOOK_UP_MS:g} ms a purchase): what the demo runs",
    build=build_shop,
    slo="mean=5s",
)
