"""Computes the mean traffic speed on each road from taxi trips.

    parse    (stateless)  a SenML record of a trip -> where it began and where it ended, with its speed
    match    (stateless)  each position -> the nearest road (``lab.apps.inputs.roads``); drops positions off the map
    average  (stateful)   road and ten minutes -> how many taxis, and their mean speed

The output is a log of the averages that changed; counts only grow, so the one with the most taxis is the last. Speeds
are whole millimetres a second, so sums do not depend on the order. State is kept for every ten minutes that ever had a
taxi, so late records count.

After the traffic application of the paper on model-driven scheduling (patterns from GPS sensors), which names it and
uses stand-ins for its tasks: the operators are ours. With ``--input`` it takes RIoTBench's taxi records, and generated
trips look like those (``sluicegate.lab.apps.inputs.taxis``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs import taxis
from sluicegate.lab.apps.inputs.senml import fields_of, records_in, told
from sluicegate.lab.apps.inputs.taxis import metres, nearest, nearest_of_all, on_the_map
from sluicegate.lab.apps.judging import Grown, judged_results
from sluicegate.lab.running.app import Answer, App
from sluicegate.lab.running.given import Records, cycled
from sluicegate.spark.pipeline.declaration import Pipeline

_MM_A_MILE = 1_609_344
_MOST_MM_PER_S = 40_000
"""Higher speeds are treated as errors of the meter."""
_AT_ONCE = 10_000

Passage = tuple[str, int, float, float]
"""Ten-minute interval of its beginning, millimetres per second, longitude, latitude."""


def parse(lines: DataFrame) -> DataFrame:
    """Parse records; distances are miles with two decimals, whatever unit the records claim."""
    trips = told(lines, *taxis.NEEDED).selectExpr(
        "concat(substring(pickup_datetime, 1, 15), '0') as since",
        "cast(try_cast(trip_distance as decimal(12,2)) * 100 as long) as hundredths",
        "try_cast(trip_time_in_secs as long) as seconds",
        "array(struct(pickup_longitude as lon, pickup_latitude as lat), "
        "struct(dropoff_longitude as lon, dropoff_latitude as lat)) as ends",
    )
    passages = trips.where("since is not null and seconds > 0 and hundredths > 0").selectExpr(
        "since", f"hundredths * {_MM_A_MILE} div (100 * seconds) as mm_per_s", "explode(ends) as at"
    )
    return passages.where(f"mm_per_s <= {_MOST_MM_PER_S}").selectExpr(
        "since", "mm_per_s", "try_cast(at.lon as double) as lon", "try_cast(at.lat as double) as lat"
    )


def match(passages: DataFrame) -> DataFrame:
    known = passages.where("lon is not null and lat is not null")
    return known.mapInArrow(_matched, "since string, mm_per_s long, road long")


def _matched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        at = metres(np.asarray(batch.column("lon")), np.asarray(batch.column("lat")))
        there = on_the_map(at)
        kept = batch.select(["since", "mm_per_s"]).filter(pa.array(there))
        yield kept.append_column("road", pa.array(nearest(at[there])))


def average(passed: DataFrame) -> DataFrame:
    sums = passed.groupBy("road", "since").agg(F.count("*").alias("taxis"), F.sum("mm_per_s").alias("total"))
    return sums.selectExpr("road", "since", "taxis", "total div taxis as mean_mm_per_s", "total")


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("traffic")
    passages = pipeline.operator("parse", parse, pipeline.source("trips", "line string"))
    passed = pipeline.operator("match", match, passages)
    pipeline.sink("speeds", pipeline.operator("average", average, passed, stateful=True, key_groups=key_groups))
    return pipeline


def passages_of(line: str) -> list[Passage]:
    """Beginning and end of a trip, in plain Python; none if the record has no trip."""
    trip = fields_of(line)
    try:
        miles = Decimal(trip["trip_distance"]).quantize(Decimal("0.01"), ROUND_HALF_UP)
        seconds, since = int(trip["trip_time_in_secs"]), trip["pickup_datetime"][:15] + "0"
        ends = [(float(trip[f"{end}_longitude"]), float(trip[f"{end}_latitude"])) for end in ("pickup", "dropoff")]
    except (KeyError, ValueError, InvalidOperation):
        return []
    if miles <= 0 or seconds <= 0:
        return []
    mm_per_s = int(miles * 100) * _MM_A_MILE // (100 * seconds)
    return [(since, mm_per_s, lon, lat) for lon, lat in ends if mm_per_s <= _MOST_MM_PER_S]


def speeds_of(trips: int, lines: Records[str]) -> dict[object, tuple[int, object]]:
    """Road and ten minutes -> number of taxis, and the sum of their speeds; checks every road for every taxi."""
    sums: defaultdict[object, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for first in range(0, trips, _AT_ONCE):
        passages = [one for line in lines(first, min(_AT_ONCE, trips - first)) for one in passages_of(line)]
        at = metres(np.array([lon for _, _, lon, _ in passages]), np.array([lat for *_, lat in passages]))
        there = on_the_map(at)
        seen = [one for one, on in zip(passages, there, strict=True) if on]
        for (since, mm_per_s, *_), road in zip(seen, nearest_of_all(at[there]).tolist(), strict=True):
            taxis_there, total = sums[road, since]
            sums[road, since] = taxis_there + 1, total + mm_per_s
    return dict(sums)


def rows(source: str, first: int, count: int, lines: Records[str] = taxis.trips) -> pa.Table:
    return pa.table({"line": pa.array(lines(first, count), pa.string())})


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = taxis.trips) -> Answer:
    speeds: list[Grown] = [
        ((int(row["road"]), row["since"]), int(row["taxis"]), int(row["total"])) for row in sinks["speeds"].collect()
    ]
    return judged_results(speeds_of(fed["trips"], lines), speeds)


def app_of(lines: Records[str]) -> App:
    return App(
        name="traffic",
        about="the speed on each road: taxi trips parsed, matched to roads, averaged by ten minutes (stateful)",
        paper="model-driven",
        build=build,
        rows=partial(rows, lines=lines),
        check=partial(check, lines=lines),
        calm_per_s=300.0,
        slo="mean=4s",
        given=lambda path: app_of(cycled(records_in(path, *taxis.NEEDED))),
    )


APP = app_of(taxis.trips)
