"""When rows arrived, by progress reports alone, against arrivals that are known."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sluicegate.domain.births import quantile_s
from sluicegate.spark.attach.latency import ArrivalCurve, behind, births


def batches(
    rate_per_s: float, seconds: float, kafka: bool, most: int = 10**9
) -> tuple[list[dict[str, Any]], list[float]]:
    """Back-to-back batches of rows that arrive at random, and the true latency of every row."""
    rng = random.Random(3)
    born, at = [], 0.0
    while at < seconds:
        at += rng.expovariate(rate_per_s)
        born.append(at)
    found: list[dict[str, Any]] = []
    latencies: list[float] = []
    taken, now = 0, 1.0
    while now < seconds:
        there = sum(1 for t in born if t <= now)
        end = min(there, taken + most)
        duration = 0.5 + 0.002 * (end - taken)
        source = {"name": "t", "kafka": kafka, "rows": end - taken, "start": {"t": {"0": taken}}}
        source |= {"end": {"t": {"0": end}}, "latest": {"t": {"0": there}}}
        published = now + duration - 0.05
        if end > taken:
            line = {"batch": len(found), "started_s": now, "duration_s": duration, "rows": end - taken}
            found.append({**line, "published_s": published, "trigger_s": 0.0, "sources": [source]})
            latencies += [published - t for t in born[taken:end]] if len(found) > 1 else []
        taken, now = end, now + duration
    return found, latencies


def estimated(lines: list[dict[str, Any]]) -> list[tuple[float, float]]:
    arrivals, ages = ArrivalCurve(), list[tuple[float, float]]()
    for line in lines:
        born = births(arrivals.of(line))
        ages += born.ages_s(line["published_s"]) if line["batch"] > 0 else ()
    return ages


@pytest.mark.parametrize("kafka", [True, False])
def test_mean_and_p95_are_within_a_tenth_of_the_true_ones(kafka: bool) -> None:
    lines, true = batches(200.0, 60.0, kafka)
    ages = estimated(lines)
    mean = sum(age * weight for age, weight in ages) / sum(weight for _, weight in ages)
    assert mean == pytest.approx(sum(true) / len(true), rel=0.1)
    assert quantile_s(ages, 0.95) == pytest.approx(sorted(true)[int(0.95 * len(true))], rel=0.1)


@pytest.mark.parametrize("name", ["RateStream rowsPerSecond=10", "RateStreamV2[rowsPerSecond=10]"])
def test_rows_of_sparks_rate_source_arrived_in_the_seconds_of_its_offsets(name: str) -> None:
    """A row of second 9 is not as old as the batch before, which may have looked long ago."""
    source = {"name": name, "kafka": False, "rows": 10, "start": 9, "end": 10}
    line = {"duration_s": 1.0, "rows": 10, "trigger_s": None, "sources": [source]}
    arrivals = ArrivalCurve()
    arrivals.of({**line, "batch": 0, "started_s": 100.5, "sources": [{**source, "rows": 0, "start": None, "end": 0}]})
    (came,) = arrivals.of({**line, "batch": 1, "started_s": 110.5})
    assert came.to_s - came.from_s == pytest.approx(1.0)


def test_an_idle_query_finds_a_second_of_the_rate_source_as_soon_as_it_is_over() -> None:
    """The source began at 100.0; each batch begins some milliseconds after a second is over."""
    arrivals, found = ArrivalCurve(), []
    for end, delay_s in ((1, 0.012), (2, 0.009), (3, 0.021), (4, 0.015)):
        source = {"name": "RateStream rowsPerSecond=10", "kafka": False, "rows": 10, "start": end - 1, "end": end}
        line = {
            "started_s": 100.0 + end + delay_s,
            "duration_s": 0.1,
            "rows": 10,
            "trigger_s": 0.0,
            "sources": [source],
        }
        found += arrivals.of({**line, "batch": end})
    assert [one.from_s for one in found[1:]] == pytest.approx([101.0, 102.0, 103.0], abs=0.05)


def test_by_offsets_rows_that_a_read_limit_left_waiting_are_as_old_as_they_are() -> None:
    lines, true = batches(300.0, 60.0, kafka=True, most=150)
    ages = estimated(lines)
    mean = sum(age * weight for age, weight in ages) / sum(weight for _, weight in ages)
    assert mean == pytest.approx(sum(true) / len(true), rel=0.1)
    assert behind(lines[-1]) == pytest.approx(300 * 60 - 150 * len(lines), rel=0.1)


def test_every_row_of_a_batch_has_an_arrival() -> None:
    for kafka in (True, False):
        arrivals = ArrivalCurve()
        for line in batches(200.0, 20.0, kafka)[0]:
            assert sum(one.rows for one in arrivals.of(line)) == pytest.approx(line["rows"], abs=3)


def test_a_source_that_says_nothing_of_its_end_has_no_rows_behind() -> None:
    lines, _ = batches(200.0, 5.0, kafka=False)
    assert behind(lines[0]) is None
