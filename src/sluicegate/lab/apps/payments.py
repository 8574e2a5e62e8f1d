"""Payments: masks cards and scores the risk of payments, with SQL functions only, so it also runs in real-time mode.

    screen  (stateless)  drops payments of 0, replaces the card by a salted hash, applied many times
    score   (stateless)  adds up points for the sum, the place, and the card's own history (here a digit of its hash)

In micro-batches ``sluicegate run payments``; in real-time mode with ``--mode real-time --kafka HOST:PORT``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.lab.apps.inputs.draws import flatter, ranked, uniform
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline

SCHEMA = "id long, card string, cents long, place string"
ROUNDS = 20
"""How often the hash is applied; it determines the cost of a payment. At double it costs about twice as much."""
_PLACES = ("shop", "station", "abroad", "online", "machine")
_RISKY = {"abroad": 30, "online": 15}
_LARGE_CENTS, _LARGE_POINTS = 50_000, 40


def screen(payments: DataFrame, rounds: int = ROUNDS, wait_ms: int = 0) -> DataFrame:
    hidden = F.aggregate(
        F.sequence(F.lit(1), F.lit(rounds)),
        F.col("card"),
        lambda so_far, _: F.sha2(F.concat(F.lit("salt"), so_far), 256),
    )
    kept = waiting(payments.where("cents > 0"), wait_ms)
    return kept.select("id", hidden.alias("card"), "cents", F.upper("place").alias("place"))


def score(payments: DataFrame, wait_ms: int = 0) -> DataFrame:
    large = F.when(F.col("cents") >= _LARGE_CENTS, _LARGE_POINTS).otherwise(0)
    place = F.lit(0)
    for name, points in _RISKY.items():
        place = place + F.when(F.col("place") == name.upper(), points).otherwise(0)
    known = F.conv(F.substring("card", 1, 1), 16, 10).cast("int")
    return waiting(payments, wait_ms).select("id", "card", (large + place + known).alias("risk"))


def waiting(rows: DataFrame, wait_ms: int) -> DataFrame:
    """The same rows, each delayed by ``wait_ms``, like a call to a service; it needs no core."""
    if not wait_ms:
        return rows
    return rows.where(F.expr(f"java_method('java.lang.Thread', 'sleep', {wait_ms}L) IS NOT NULL"))


def build(rounds: int = ROUNDS, waits_ms: tuple[int, int] = (0, 0)) -> Pipeline:
    pipeline = Pipeline("payments")
    payments = pipeline.source("payments", SCHEMA)
    screened = pipeline.operator("screen", partial(screen, rounds=rounds, wait_ms=waits_ms[0]), payments)
    pipeline.sink("risks", pipeline.operator("score", partial(score, wait_ms=waits_ms[1]), screened))
    return pipeline


def rows(source: str, first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count, dtype=np.int64)
    cents = np.where(uniform(numbers, 3) < 0.02, 0, 1 + flatter(numbers, 4, 90_000))
    places = (uniform(numbers, 5) * len(_PLACES)).astype(np.int64)
    return pa.table(
        {
            "id": pa.array(numbers),
            "card": [f"4929{card:012d}" for card in ranked(numbers, 6, 50_000).tolist()],
            "cents": pa.array(cents, pa.int64()),
            "place": [_PLACES[place] for place in places.tolist()],
        }
    )


def expected(total: int, rounds: int = ROUNDS) -> Counter[object]:
    """The answer of the first ``total`` payments, computed row by row in Python."""
    found: Counter[object] = Counter()
    for payment in rows("payments", 0, total).to_pylist():
        if payment["cents"] <= 0:
            continue
        card = payment["card"]
        for _ in range(rounds):
            card = hashlib.sha256(b"salt" + card.encode()).hexdigest()
        points = {"abroad": 30, "online": 15}.get(payment["place"], 0) + int(card[0], 16)
        found[payment["id"], card, points + (40 if payment["cents"] >= 50_000 else 0)] += 1
    return found


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame], rounds: int = ROUNDS) -> Answer:
    told = [(row["id"], row["card"], row["risk"]) for row in sinks["risks"].collect()]
    return compare(expected(fed["payments"], rounds), Counter(told), len(told))


def app_of(rounds: int = ROUNDS, waits_ms: tuple[int, int] = (0, 0), calm_per_s: float = 300.0) -> App:
    pipeline: Callable[[], Pipeline] = partial(build, rounds, waits_ms)
    return App(
        name="payments",
        about="cards hidden by a hash, payments scored: screen, score; SQL alone, so it runs in real-time mode too",
        paper="DRS (real-time mode)",
        build=pipeline,
        rows=rows,
        check=partial(check, rounds=rounds),
        calm_per_s=calm_per_s,
        slo="mean=3s",
    )


APP = app_of()
