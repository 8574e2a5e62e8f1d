"""A shop: Top N, where every purchase is first looked up at a service that takes its time.

    read -> price -> count -> rank -> merge

Looking up needs no core, only waiting, so k processors do k times the work of one on a small machine too, as they would
on a large cluster: the demo's load can triple anywhere. All else, and the right answer, is that of ``top_n``.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from sluicegate.lab.apps import top_n
from sluicegate.lab.apps.waits import after_waiting
from sluicegate.spark.pipeline.declaration import Pipeline

LOOK_UP_MS = 8.0


def price(items: DataFrame) -> DataFrame:
    """Wait for the service's answer, a purchase after the other."""
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
