"""Predicted against measured mean sojourn on real Spark: a chain of operators that wait, at nine settings and more.

Usage: sojourn_prediction.py [SECONDS_A_SETTING]

Every operator waits a fixed time a row, so k processors do k times the work of one although the machine is small. A
warm-up lets Spark compile. Each setting (rate, k of every operator) runs for a while; then o, c and mu of each
operator are fitted from all batches, and the micro-batch law predicts each setting's mean sojourn: b* = (o + c k)/(1
- rho), sojourn = 1.5 b* - t_commit a hop, and half of the feeder's interval before the first. What bounds the error:
batches that vary among themselves.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headgate.apps import chain
from headgate.apps.feeding import Feeder
from headgate.apps.load import constant
from headgate.spark.batch_log import BatchRecord
from headgate.spark.runtime import Running, start
from headgate.spark.session import spark_session

WAITS_MS = {"parse": 6.0, "enrich": 12.0, "store": 3.0}
SETTINGS = (
    # rows a second, k of parse, enrich, store: from hardly busy to 86% busy, k from 1 to 6
    (30, (2, 3, 2)),
    (100, (3, 4, 2)),
    (150, (3, 6, 1)),
    (180, (3, 4, 1)),
    (300, (3, 6, 2)),
    (60, (1, 1, 1)),
    (220, (2, 4, 1)),
    (260, (2, 4, 2)),
    (70, (1, 1, 1)),
    (140, (1, 2, 1)),
)
WARM_UP = (150, (3, 6, 2), 75.0)
FEED_S = 0.2


@dataclass(frozen=True)
class Seen:
    rate: float
    k: tuple[int, ...]
    mean_s: float
    batches: dict[str, list[BatchRecord]]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 25.0
    spark = spark_session("local[16]", {"spark.driver.memory": "1g"})
    names = tuple(WAITS_MS)
    pipeline = chain.build(waits_ms=WAITS_MS)
    with tempfile.TemporaryDirectory() as folder, start(pipeline, spark, Path(folder) / "chain") as running:
        rate, k, warm_s = WARM_UP
        print("warm-up:", end=" ")
        measure(running, names, rate, k, warm_s)
        seen = [measure(running, names, rate, k, seconds) for rate, k in SETTINGS]
    spark.stop()
    report(names, seen)


def measure(running: Running, names: tuple[str, ...], rate: float, k: tuple[int, ...], seconds: float) -> Seen:
    running.set_processors(dict(zip(names, k, strict=True)))
    feeder = Feeder(chain.APP, {"calls": running.feed("calls")}, constant(rate), seconds)
    began = time.time()
    feeder.start()
    while not feeder.join(1.0):
        running.check()
    settled, ended = began + 0.3 * seconds, time.time()
    running.drain()
    time.sleep(0.6)
    batches = {
        name: [r for r in running.records(name) if settled <= r.started_s and r.published_s <= ended] for name in names
    }
    ages = [age for record in batches[names[-1]] for age in record.born.ages_s(record.published_s)]
    mean = sum(age * w for age, w in ages) / sum(w for _, w in ages)
    print(f"{rate:5.0f} rows/s  k {k}  measured {mean:.3f} s", flush=True)
    return Seen(rate, k, mean, batches)


def report(names: tuple[str, ...], seen: list[Seen]) -> None:
    laws = {name: fitted(name, [r for one in seen for r in one.batches[name]]) for name in names}
    print("\nrows/s  k              measured  predicted  error")
    errors, pairs = [], []
    for one in seen:
        predicted = FEED_S / 2 + sum(hop(laws[name], one.rate, k) for name, k in zip(names, one.k, strict=True))
        errors.append(abs(predicted / one.mean_s - 1))
        pairs.append((one.mean_s, predicted))
        print(f"{one.rate:6.0f}  {one.k!s:13}  {one.mean_s:7.3f}  {predicted:8.3f}  {predicted / one.mean_s - 1:+6.1%}")
    wrong = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for i, a in enumerate(pairs) for b in pairs[:i])
    total = len(pairs) * (len(pairs) - 1) // 2
    print(f"\nmedian error {statistics.median(errors):.1%}, worst {max(errors):.1%}")
    print(f"{total - wrong} of {total} pairs of settings in the right order")


def fitted(name: str, records: list[BatchRecord]) -> tuple[float, float, float, float]:
    """As the loop learns them: 1/mu from how long the tasks ran, o and c from what a batch lasts beside that.

    And the commit that comes after the rows are published.
    """
    timed = [r for r in records if r.work_s is not None]
    work = np.array([r.work_s for r in timed], dtype=np.float64)
    (_, s), *_ = np.linalg.lstsq(np.array([(r.processors, r.rows) for r in timed], dtype=np.float64), work, rcond=None)
    k, rows, y = (np.array([float(getattr(r, w)) for r in records]) for w in ("processors", "rows", "duration_s"))
    rest = y - s * rows / k
    (o, c), *_ = np.linalg.lstsq(np.column_stack([np.ones_like(k), k]), rest, rcond=None)
    r2 = 1 - float(((rest - o - c * k) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    commit = statistics.median(r.started_s + r.duration_s - r.published_s for r in records)
    print(
        f"{name}: b = {o:.3f} s + {c:.3f} s k + {s * 1e3:.2f} ms n/k, R2 {r2:.3f} over "
        f"{len(records)} batches; commit {commit:.3f} s"
    )
    return float(o), float(c), float(s), commit


def hop(law: tuple[float, float, float, float], rate: float, k: int) -> float:
    o, c, s, commit = law
    return 1.5 * (o + c * k) / (1 - rate * s / k) - commit


if __name__ == "__main__":
    main()
