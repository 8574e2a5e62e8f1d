"""Attached queries: what the attachment costs, and how executors follow the load."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sections.section import Column, Line, Section, close, millis, percent, ratio, seconds


def _medians(lines: Sequence[Line], key: str, aim: float) -> str:
    middle = statistics.median(line[key] for line in lines)
    return f"Median {middle:.3f}; the aim is at most {aim:g}, {'reached' if middle <= aim else 'not reached'}."


SECTIONS: tuple[Section, ...] = (
    Section(
        "attach_at_rest",
        "An attached query at rest",
        "Batch and processor time of one stateful query attached (observing) over detached, in turns within one run.",
        "attach_at_rest.py",
        (Column("batches a round", "batches"),),
        (
            Column("batch time, attached / plain", "batch_ratio", close),
            Column("processor time, attached / plain", "cpu_ratio", close),
        ),
        lambda lines: _medians(lines, "batch_ratio", 1.02),
    ),
    Section(
        "attach_controller",
        "The controller of an attached application",
        "Its share of a core under a promise, and how its memory and the driver's heap (after a collection) grow "
        "from a quarter of the run to its end.",
        "attach_controller.py",
        (Column("seconds", "seconds"),),
        (
            Column("of a core", "share_of_a_core", percent),
            Column("memory, end / quarter", "memory_growth", ratio),
            Column("driver's heap, end / quarter", "heap_growth", ratio),
            Column("controller, MB", "controller_mb"),
        ),
    ),
    Section(
        "attach_many",
        "The controller as the number of attached queries grows",
        "A synthetic driver writes the record of the given number of queries, a batch of each every two seconds "
        "under a varying load; the real controller process ticks every two seconds, decides and logs.",
        "attach_many.py",
        (Column("queries", "queries"),),
        (
            Column("of a core", "share_of_a_core", percent),
            Column("processor time a look", "look_ms", millis),
            Column("memory, MB", "memory_mb"),
            Column("log a look, kB", "look_kb", ratio),
            Column("a look every", "every_s", seconds),
        ),
    ),
    Section(
        "attach_triple_load",
        "Attached, Spark's dynamic allocation, and a fixed peak size",
        "An unchanged stateful application on a standalone cluster of local workers: attached, under Spark's own "
        "dynamic allocation, and with a fixed size for the peak. Its load triples for a while (x3), is four times "
        "as high for a tenth of the run (burst), or follows a compressed match day (match). Through a load step "
        "the promise is limited by the start-up time of an executor (5 to 10 s here) and by the running batch, "
        "which keeps its tasks. A size that followed the load at once would take 0.53 of the peak's "
        "executor-seconds in x3 (30 s calm, 45 s, 75 s calm). Attached takes less than that while executors start and "
        "rows queue, as far as the promise allows, and more after the load has fallen: 5 s until the rate shows it, "
        "15 s (the start-up time of an executor) for which fewer must have sufficed, 5 s more for executors, and this "
        "window begins anew with each step down, because a step that is awaited counts as still needed. Without that "
        "last rule, in virtual time, of a load with bursts every 100 s 97.5% of the rows instead of more than 99% are "
        "in time: so it stays.",
        "attach_triple_load.py",
        (
            Column("load", lambda line: line.get("shape", "x3")),
            Column("arm", "arm"),
            Column("promise, p95 s", "promise_s"),
            Column("x3 for, s", lambda line: line["peak_s"] if line.get("shape", "x3") == "x3" else None),
        ),
        (
            Column("rows within the promise", "kept_share", percent),
            Column("p95", "p95_s", seconds),
            Column("executor-seconds / peak size", "share_of_peak", ratio),
            Column("executors came or went", "moves"),
            Column("longest gap", "longest_gap_s", seconds),
            Column("exact", lambda line: bool(line["exact"])),
        ),
    ),
    Section(
        "attach_partitions",
        "200 state partitions on a small stream",
        "Batch time with k = 8, and after `sluicegate repartition CHECKPOINT 16`, as ratios to the batch time as it "
        "is. Spark repartitions the state of RocksDB only, and the command refuses a checkpoint of the HDFS-backed "
        "store before it copies anything; hence no figure there. A new query on RocksDB with fewer partitions is the "
        "way from such a store.",
        "attach_partitions.py",
        (Column("state store", "store"), Column("partitions", "partitions")),
        (
            Column("as it is, ms", "as_it_is_ms"),
            Column("k = 8", "k8_ratio", ratio),
            Column("after repartition to 16", "after_repartition_ratio", ratio),
        ),
    ),
    Section(
        "attach_latency",
        "Estimated latency of attached queries",
        "The latency estimated from progress reports and sources, against the true latency of every row by its "
        "own creation time.",
        "attach_latency.py",
        (Column("source", "source"),),
        (
            Column("true mean", "true_mean_s", seconds),
            Column("error of the mean", "mean_error", percent),
            Column("error of p95", "p95_error", percent),
        ),
    ),
)
