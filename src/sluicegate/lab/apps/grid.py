"""The load of a power grid's houses, and the plugs that draw far more than their neighbours.

    parse    (stateless)  a SenML record of a smart plug -> house, plug, minute and load; drops broken readings
    average  (stateful)   plug and minute -> how many readings, and their sum
    compare  (stateful)   house and minute -> the load of all its plugs together, and its outliers: plugs that draw more
                          than ``FAR`` times the median plug

The output is a log of the houses that changed; the number of readings only grows, so the row with the most is the last.
Loads are whole milliwatts, so sums do not depend on the order. State is kept for every minute that ever had a reading,
so late ones count.

After the smart grid application of the paper on model-driven scheduling (meter data cleaned and analysed), which names
it and uses stand-ins for its tasks: the operators are ours, and nothing is predicted. Generated records come from
``sluicegate.lab.apps.inputs.senml``. With ``--input`` it takes RIoTBench's records of city sensors. Those measure no
electricity: the stations within a degree of longitude and latitude stand for the plugs of a house, and dust for load.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import partial
from statistics import median_low

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.lab.apps.inputs import senml
from sluicegate.lab.apps.inputs.senml import fields_of, records_in, told
from sluicegate.lab.apps.judging import Grown, judged_results
from sluicegate.lab.running.app import Answer, App
from sluicegate.lab.running.given import Records, cycled
from sluicegate.spark.pipeline.declaration import Pipeline

FAR = 4
_STATION = ("source", "longitude", "latitude", "dust")
_LOADS = "house string, minute long, readings long, milliwatts long, outliers string"

Sums = dict[str, list[int]]
"""Plug -> readings and their sum in milliwatts."""
Reading = tuple[str, str, int, int]


def parse(lines: DataFrame) -> DataFrame:
    """Parse records; stations without a house are assigned to the whole degrees of their position."""
    degrees = "floor(try_cast(latitude as double)), ',', floor(try_cast(longitude as double))"
    readings = told(lines, "house", "plug", "load", *_STATION).selectExpr(
        f"coalesce(house, concat({degrees})) as house",
        "coalesce(plug, source) as plug",
        "at_ms div 60000 as minute",
        "cast(try_cast(coalesce(load, dust) as decimal(18,3)) * 1000 as long) as milliwatts",
    )
    return readings.where("house is not null and plug is not null and minute is not null and milliwatts >= 0")


def average(readings: DataFrame) -> DataFrame:
    sums = F.count("*").alias("readings"), F.sum("milliwatts").alias("milliwatts")
    return readings.groupBy("house", "plug", "minute").agg(*sums)


def compare(sums: DataFrame) -> DataFrame:
    return sums.groupBy("house", "minute").applyInPandasWithState(
        compared, _LOADS, "sums string", "update", GroupStateTimeout.NoTimeout
    )


def compared(key: tuple[str, int], updates: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Process one batch of one house and minute; for each plug the sum with the most readings counts."""
    before: Sums = json.loads((state.getOption or ("{}",))[0])
    after = dict(before)
    for some in updates:
        for plug, readings, milliwatts in zip(some["plug"], some["readings"], some["milliwatts"], strict=True):
            after[plug] = max(after.get(plug, [0, 0]), [int(readings), int(milliwatts)])
    if after != before:
        state.update((json.dumps(after),))
        names = ("house", "minute", "readings", "milliwatts", "outliers")
        yield pd.DataFrame([(*key, *load_of(after))], columns=names)


def load_of(sums: Sums) -> tuple[int, int, str]:
    """Number of readings, total of the plugs' mean loads, and the outliers.

    >>> load_of({"tv": [2, 20], "lamp": [1, 8], "oven": [4, 400]})
    (7, 118, 'oven')
    """
    means = {plug: total // readings for plug, (readings, total) in sums.items()}
    middle = median_low(means.values())
    outliers = sorted(plug for plug, mean in means.items() if mean > FAR * middle)
    return sum(readings for readings, _ in sums.values()), sum(means.values()), " ".join(outliers)


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("grid")
    readings = pipeline.operator("parse", parse, pipeline.source("meters", "line string"))
    sums = pipeline.operator("average", average, readings, stateful=True, key_groups=key_groups)
    pipeline.sink("loads", pipeline.operator("compare", compare, sums, stateful=True, key_groups=key_groups))
    return pipeline


def reading_of(line: str) -> Reading | None:
    """House, plug, minute and milliwatts, in plain Python."""
    one = fields_of(line)
    try:
        load = Decimal(one.get("load", one.get("dust", ""))).quantize(Decimal("0.001"), ROUND_HALF_UP)
        degrees = [str(math.floor(float(one[side]))) for side in ("latitude", "longitude") if "house" not in one]
        house, plug = one.get("house", ",".join(degrees)), one.get("plug") or one["source"]
        return (house, plug, int(line.partition(",")[0]) // 60_000, int(load * 1000)) if load >= 0 else None
    except (KeyError, ValueError, InvalidOperation):
        return None


def loads_of(count: int, lines: Records[str]) -> dict[object, tuple[int, object]]:
    """House and minute -> readings, and load and outliers, of the first ``count`` lines."""
    houses: defaultdict[tuple[str, int], Sums] = defaultdict(dict)
    for house, plug, minute, milliwatts in _readings(lines(0, count)):
        readings, total = houses[house, minute].get(plug, [0, 0])
        houses[house, minute][plug] = [readings + 1, total + milliwatts]
    return {key: _judged_load(sums) for key, sums in houses.items()}


def _judged_load(sums: Sums) -> tuple[int, object]:
    """Readings, and load and outliers, computed independently of the operator."""
    drawn = sorted((total // readings, plug) for plug, (readings, total) in sums.items())
    middle = drawn[(len(drawn) - 1) // 2][0]
    far = sorted(plug for mean, plug in drawn if mean > 4 * middle)
    return sum(one[0] for one in sums.values()), (sum(mean for mean, _ in drawn), " ".join(far))


def _readings(lines: Iterable[str]) -> Iterator[Reading]:
    return (reading for line in lines if (reading := reading_of(line)) is not None)


def rows(source: str, first: int, count: int, lines: Records[str] = senml.readings) -> pa.Table:
    return pa.table({"line": pa.array(lines(first, count), pa.string())})


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], lines: Records[str] = senml.readings) -> Answer:
    found: list[Grown] = [
        ((row["house"], int(row["minute"])), int(row["readings"]), (int(row["milliwatts"]), row["outliers"]))
        for row in sinks["loads"].collect()
    ]
    return judged_results(loads_of(fed["meters"], lines), found)


def app_of(lines: Records[str]) -> App:
    return App(
        name="grid",
        about="the load of houses and their outliers by minute: plugs averaged, compared by house (two stateful)",
        paper="model-driven",
        build=build,
        rows=partial(rows, lines=lines),
        check=partial(check, lines=lines),
        calm_per_s=300.0,
        slo="mean=5s",
        given=lambda path: app_of(cycled(records_in(path, *_STATION))),
    )


APP = app_of(senml.readings)
