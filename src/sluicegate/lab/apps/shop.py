"""A shop: Top N, where every purchase is first looked up at a slow service (simulated by sleeping).

    read -> price -> count -> rank -> merge

The lookup sleeps and needs no core, so even on a small machine k processors do k times the work of one, as on a large
cluster: the demo's load can triple on any machine. Everything else, including the right answer, is from ``top_n``.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from sluicegate.lab.apps import top_n
from sluicegate.lab.apps.waits import after_waiting
from sluicegate.spark.pipeline.declaration import Pipeline

LOOK_UP_MS = 8.0


def price(items: DataFrame) -> DataFrame:
    """Sleep for the service's answer, one purchase after the other."""
    return after_waiting(items, LOOK_UP_MS)


def build() -> Pipeline:
    pipeline = Pipeline("shop")
    events = pipeline.source("events", "line string")
    priced = pipeline.operator("price", price, pipeline.operator("read", top_n.read, events))
    counts = pipeline.operator("count", top_n.count, priced, stateful=True, key_groups=8)
    ranked = pipeline.operator("rank", top_n.rank, counts, stateful=True, key_groups=4)
    pipeline.sink("top", pipeline.operator("merge", top_n.merge, ranked, stateful=True, key_groups=1))
    return pipeline


APP = replace(
    top_n.APP,
    name="shop",
    about=f"top_n with a look-up at a service before the count ({LOOK_UP_MS:g} ms a purchase): what the demo runs",
    build=build,
    slo="mean=5s",
)
