"""Real-time mode, from Kafka to Kafka."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sections.section import Column, Line, Section, millis


def _real_time(lines: Sequence[Line]) -> str:
    said = [
        f"Aim: p50 at most {line['aim_ms']:g} ms; measured {line['p50_ms']:.0f} ms, "
        f"{'exact' if line['exact'] else 'NOT exact'} over {line['rows']:,} rows."
        for line in lines
        if "p50_ms" in line
    ]
    orders = {(line["in_order"], line["pairs"]) for line in lines if "pairs" in line}
    said += [f"Of {pairs} pairs of allocations {right} are in the predicted order." for right, pairs in sorted(orders)]
    return " ".join([*said, *_beyond_the_queues([line for line in lines if "stalls_add_ms" in line])])


def _beyond_the_queues(lines: Sequence[Line]) -> list[str]:
    """What of the measured mean the queues, the stalls and a path that is alike for all leave unexplained."""
    if not lines:
        return []
    rest = [line["mean_ms"] - line["predicted_ms"] - line["stalls_add_ms"] for line in lines]
    path = statistics.median(rest)
    off = statistics.median(abs(one - path) / line["mean_ms"] for one, line in zip(rest, lines, strict=True))
    return [
        f"The source stalls for {statistics.median(line['stall_ms'] for line in lines):.0f} ms between two batches; "
        f"GI/G/k, the stalls, and {path:.0f} ms of exchanges and broker together are {off:.0%} off in the median."
    ]


SECTIONS: tuple[Section, ...] = (
    Section(
        "realtime",
        "Real-time mode: latency, and allocations in the predicted order",
        "Kafka to Kafka in one real-time query. Two stages of SQL, one task each on local[2], at 1,000 rows/s; "
        "then three stages, two of which wait for every row (exponential, 20 and 10 ms on average), under Poisson "
        "arrivals of 130 rows/s in six allocations. GI/G/k predicts from the figures of the first allocation, "
        "without the time of exchanges and of the broker, and without the stall between two batches in which the "
        "source is not read; rows of such a stall are drained by the spare capacity of the busiest stage, and a "
        "separate column shows what that adds. A pause lasts from the commit at which a rescale stops the query "
        "to the first output row after it.",
        "realtime.py",
        (Column("what", "what"), Column("allocation", lambda line: line.get("allocation", "1:1"))),
        (
            Column("p50", lambda line: line.get("p50_ms"), millis),
            Column("p95", lambda line: line.get("p95_ms"), millis),
            Column("predicted mean", lambda line: line.get("predicted_ms"), millis),
            Column("stalls add", lambda line: line.get("stalls_add_ms"), millis),
            Column("measured mean", lambda line: line.get("mean_ms"), millis),
            Column("pause of the rescale", lambda line: line.get("pause_ms"), millis),
        ),
        _real_time,
    ),
)
