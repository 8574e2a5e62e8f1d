"""The sections of docs/benchmarks.md: what each part measured, what bounds it, and its columns."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Line = Mapping[str, Any]


def percent(value: float) -> str:
    return f"{value:.1%}"


def ratio(value: float) -> str:
    return f"{value:.2f}"


def close(value: float) -> str:
    """A ratio whose third digit matters."""
    return f"{value:.3f}"


def seconds(value: float) -> str:
    return f"{value:.2f} s"


def millis(value: float) -> str:
    return f"{value:.2f} ms"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def times(value: float) -> str:
    return f"{value:,.0f}x"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key of a line, or a function of it, and how a number is written."""

    title: str
    of: str | Callable[[Line], Any]
    show: Callable[[float], str] = whole

    def value(self, line: Line) -> Any:
        return line.get(self.of) if isinstance(self.of, str) else self.of(line)


@dataclass(frozen=True, slots=True)
class Section:
    part: str
    title: str
    words: str
    command: str
    by: tuple[Column, ...]
    columns: tuple[Column, ...]
    verdict: Callable[[Sequence[Line]], str] | None = None
    """A sentence on what the lines show, worked out from them."""


def _above(key: str, aim: float, what: str) -> Callable[[Sequence[Line]], str]:
    def verdict(lines: Sequence[Line]) -> str:
        values = [line[key] for line in lines]
        return f"Aim: {what} at least {aim:g}; reached in {sum(one >= aim for one in values)} of {len(values)} runs."

    return verdict


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
        "demo",
        "The demo beside other work",
        "The shop under a load that triples, with nothing beside it and with a busy loop at normal "
        "priority on one of the machine's cores. The promise is ten times what a batch takes while it "
        "warms up, so it is longer on a busy machine.",
        "demo_beside_work.py",
        (Column("beside it", "beside"),),
        (
            Column("promised", "promise"),
            Column("rows within", "kept", percent),
            Column("mean", "mean_s", seconds),
            Column("slot-seconds / fixed peak", "slots_vs_peak", ratio),
            Column("moves", "moves"),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "live",
        "A load that triples and falls back, live, under every policy",
        "Pipelines on real Spark, one after the other in one session, at the same load, from one task "
        "an operator. Fixed peak is a size for the highest load, held all the time (planned with the "
        "costs of the application's first run). Operators of the waiting applications wait instead of "
        "computing, so that k is worth what it would be on a cluster. Times are a hundredth of those in production, "
        "since a run lasts half a minute: cycles and T_ra are 6 s, the peers' windows and periods are shortened as "
        "much (a peer that looks at batches decides every 3 s), KEDA's lag and DStreams' interval are tuned to the "
        "promise. Es-Stream keeps its own 10 and 15 s. ARMA has no order by then, so uncertainty-7 decides by the "
        "present rate.",
        "live_elasticity.py --runs 1 --minutes 55",
        (Column("application", "app"), Column("policy", "policy")),
        (
            Column("promise kept", "kept", percent),
            Column("mean", "mean_s", seconds),
            Column("p95", "p95_s", seconds),
            Column("slot-seconds / fixed peak", "slots_vs_peak", ratio),
            Column("moves", "rescales"),
            Column("runs", lambda line: 1, whole),
            Column("exact", "exact"),
        ),
        lambda lines: _policies(lines),
    ),
    Section(
        "drs_live",
        "DRS, figures 6 to 9, live",
        "A chain of three operators that wait (2, 9 and 1 ms a row) under `drs`, M/M/k. Figures 6 and 7 (34, 48 and "
        "14 ms): six allocations of nine processors, twice, by the model and as measured; batches take time that M/M/k "
        "knows nothing of, so only the order is compared, of allocations that the law of batches puts an eighth apart. "
        "Figure 8: from two bad allocations and from the best one, K_max processors, one re-allocation once T_ra is "
        "over. Figure 9: a minute is a look of 2 s; a load in three steps, and a burst of three looks, under T_max "
        "(ten nearly empty batches) and T_min (0.45 of it), smoothed over w looks, T_ra w looks.",
        "drs_live.py",
        (Column("figure", "figure"), Column("what", "what"), Column("from", "allocation")),
        (
            Column("E[T] by M/M/k", lambda line: line.get("model_s"), seconds),
            Column("mean, measured", "mean_s", seconds),
            Column("moves", lambda line: line.get("moves")),
            Column("at, s", lambda line: line.get("moved_at_s")),
            Column("to", lambda line: line.get("to")),
            Column("best", lambda line: line.get("optimum")),
            Column("exact", "exact"),
        ),
        lambda lines: _drs_live(lines),
    ),
    Section(
        "mc_levels",
        "Mc-Stream: one level alone against four, live",
        "Two operators, one of them with state, on a cluster of three local nodes; one node three times slower, half "
        "of all rows on two of 60 keys, three times the load. `none` is Spark's own way with the user's instances; the "
        "fourth level is the topology itself. Nodes share two cores and have no network between them, so what "
        "scheduling saves by bringing operators together does not show here. Deviations are over nodes: of the share "
        "of slots that tasks occupy, and of processor time. Rows come at the usual rate before, between and after the "
        "hardships, of twelve seconds each; latency is that of the rows that came during one. The instance level is by "
        "the model, which the live trial needs more time than a hardship has to replace.",
        "mc_levels.py",
        (Column("hardship", "hardship"), Column("levels", "arm")),
        (
            Column("mean latency", "mean_s", seconds),
            Column("rows/s", "rows_per_s"),
            Column("deviation of slots in use", "busy_sd", close),
            Column("deviation of node CPU", "cpu_sd", close),
            Column("decisions", "moves"),
            Column("exact", "exact"),
        ),
        lambda lines: _levels(lines),
    ),
    Section(
        "edges",
        "Edges against Spark's own Parquet source and sink",
        "One light SQL operator with an edge at each side, and the same query with Spark's file "
        "source and sink, in turns. What bounds both is decoding and encoding Parquet.",
        "edge_throughput.py 8",
        (Column("rows", "rows"),),
        (
            Column("edges, rows/s", "edges_per_s"),
            Column("Spark's Parquet, rows/s", "parquet_per_s"),
            Column("edges / Parquet", "ratio", ratio),
        ),
    ),
    Section(
        "kafka_edges",
        "A Kafka topic as an edge, against Spark's own Kafka sink and source",
        "Two light operators with a topic between them, and the same as two plain queries, in turns over one real "
        "broker; JSON records both ways, one batch a table fed. Ours is exactly once, Spark's sink at least once.",
        "kafka_edges.py",
        (Column("rows", "rows"),),
        (
            Column("Kafka edge, rows/s", "edge_per_s"),
            Column("Spark's Kafka, rows/s", "spark_per_s"),
            Column("edge / Spark", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "checksums",
        "What checksums cost an edge",
        "Rows a second of batch time with checksums over those without, in pairs that take turns.",
        "edge_checksums.py 3",
        (Column("rows", "rows"),),
        (Column("with / without", "ratio", close),),
        _above("ratio", 0.97, "with over without"),
    ),
    Section(
        "plain",
        "A pipeline against the same code as a plain query",
        "Word count, fused into one query, against plain Structured Streaming with foreachBatch, in "
        "turns: lines a second of large batches, and processor time of small ones, the loop and its "
        "logs included.",
        "plain_query.py 0.9",
        (Column("lines", "lines"),),
        (
            Column("throughput / plain", "throughput_ratio", ratio),
            Column("processor time a small batch / plain", "cpu_ratio", ratio),
        ),
    ),
    Section(
        "rescale",
        "State: k within its key groups, beyond them, and stopping everything",
        "One aggregation. Within its key groups k changes at the next batch; beyond them that one query is stopped at "
        "a batch boundary, its state repartitioned and verified, and started again while the others go on; the last "
        "column is Spark's own way, everything stopped for the same change of partitions. Gaps are between two batches "
        "at the sink. The size of the state is that of its rows, before compression.",
        "stateful_rescale.py",
        (Column("state, MB", "state_mb"),),
        (
            Column("keys", "keys"),
            Column("usual gap", "usual_gap_s", seconds),
            Column("within its groups", "within_s", seconds),
            Column("beyond them", "beyond_s", seconds),
            Column("stop everything", "all_s", seconds),
            Column("everything / within", "within_ratio", ratio),
            Column("everything / beyond", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "repartition",
        "Repartition time against parallelism",
        "The state of one aggregation is repartitioned into so many partitions by Spark's own means, in as many tasks "
        "as there are cores (Es-Stream's figure: 42 MB, time falls with parallelism). Two cores bound it: beyond two "
        "tasks at a time nothing gets faster here. Equation 25 is scaled to the first row.",
        "state_parallelism.py",
        (Column("tasks at a time", "tasks"), Column("partitions", "partitions")),
        (
            Column("state, MB", "state_mb"),
            Column("repartition", "took_s", seconds),
            Column("equation 25", "eq_25_s", seconds),
            Column("same rows", "same"),
        ),
    ),
    Section(
        "recovery",
        "One operator fails, against starting everything again",
        "The middle of three queries fails: only it is started again and goes on from its last batch; against a "
        "restart of the whole pipeline after the same failure. Seconds from the rows that failed to the first at the "
        "sink.",
        "recovery.py",
        (Column("what", lambda line: "one of three queries"),),
        (
            Column("alone", "alone_s", seconds),
            Column("everything", "all_s", seconds),
            Column("everything / alone", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "losses",
        "A lost executor, node and driver, against Spark's own recovery",
        "The same count by key as a pipeline and as a plain query, in turns, each in a driver of its own on the same "
        "cluster of two local nodes. Seconds from the loss until a row that was fed at that moment is counted at the "
        "sink; a lost driver is started again at once.",
        "losses.py",
        (Column("lost", "loss"),),
        (
            Column("sluicegate", "ours_s", seconds),
            Column("plain query", "plain_s", seconds),
            Column("sluicegate / plain", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "redeployment",
        "An instance moves to another node, against killing its executor",
        "A stateful operator on a cluster of two local workers: its place switches between two batches once the other "
        "executor is warm; or its executor is killed. The longest gap at the sink.",
        "redeployment.py",
        (Column("keys", "keys"),),
        (
            Column("moved", "moved_s", seconds),
            Column("killed", "killed_s", seconds),
            Column("killed / moved", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "backup_interval",
        "Repair time against the backup interval",
        "The pace of a stateful operator is its backup interval: a longer one costs fewer commits and more rows to "
        "repeat. Measured beside Es-Stream's equation 26, at fixed paces and at the one that Es-Stream chooses on a "
        "node below and above its alpha with repairs bounded to 1 s (the start of the query comes on top of that).",
        "backup_interval.py",
        (Column("chosen by", lambda line: _chooser(line)),),
        (
            Column("pace", "pace_s", seconds),
            Column("repair", "repair_s", seconds),
            Column("equation 26", "eq_26_s", seconds),
            Column("batches a second", "batches_per_s", ratio),
            Column("exact", "exact"),
        ),
    ),
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
        "A synthetic driver writes the record of so many queries, a batch of each every two seconds under a load that "
        "swings; the real controller process looks at it every two seconds, decides and logs.",
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
        "dynamic allocation, and with a fixed size for the peak. Its load is three times as much for a while (x3), "
        "four times for a tenth of the run (burst), or that of a compressed match day (match). What bounds "
        "a promise through a jump is the time an executor takes to start (5 to 10 s here) and the batch under way "
        "when it jumps, which keeps its tasks. A size that followed the load at once would take 0.52 of "
        "the peak's executor-seconds in x3 (30 s calm, 60 s, 120 s calm).",
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
        "Batch time with k = 8, and after `sluicegate repartition CHECKPOINT 16`, over that as it is.",
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
        "What progress reports and sources say, against the true latency of every row by its own time of birth.",
        "attach_latency.py",
        (Column("source", "source"),),
        (
            Column("true mean", "true_mean_s", seconds),
            Column("error of the mean", "mean_error", percent),
            Column("error of p95", "p95_error", percent),
        ),
    ),
    Section(
        "realtime",
        "Real-time mode: latency, and allocations in the predicted order",
        "Kafka to Kafka in one real-time query. Two stages of SQL, one task each on local[2], at 1,000 rows/s; "
        "then three stages, two of which wait for every row (exponential, 20 and 10 ms on average), under "
        "Poisson arrivals of 130 rows/s in six allocations. GI/G/k predicts from what the first allocation "
        "measured, without what an exchange and the broker take, and without the moment between two batches in which "
        "the source is not read: rows of such a stall are worked off by what the busiest stage has to spare, and the "
        "column beside says what that adds. A pause is from the commit that a rescale "
        "stops at to the first row out after it.",
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
        lambda lines: _real_time(lines),
    ),
    Section(
        "nexmark",
        "Nexmark, plain, attached and as pipelines",
        "Ten queries of Nexmark as ordinary Structured Streaming ([what they are](nexmark.md)), plain, attached, and "
        "as pipelines whose operators are queries of their own with edges between them; in turns, and every sink is "
        "compared with an answer computed apart. Processor time is that of the driver and all it started. A pipeline "
        "pays for every edge with a write, a read and a batch of its own, and gains a k for each operator.",
        "nexmark/run.py",
        (Column("query", "query"), Column("way", "way")),
        (
            Column("events/s", lambda line: line["events"] / line["wall_s"] if line["wall_s"] else None),
            Column("processor time", "cpu_s", seconds),
            Column("exact", lambda line: line["wrong"] is None),
        ),
        lambda lines: _nexmark(lines),
    ),
    Section(
        "mst",
        "What nodes sustain",
        "Sustainable throughput on workers of a local cluster, one executor each, a source that is full: the mean of "
        "the samples by which a size settled, and their deviation. The first operator waits for every row, so that "
        "nodes matter on two cores; every other operator takes one slot from it, whatever the size, so a curve begins "
        "a little above proportion, and each task of a batch costs it some 20 ms more, so it bends down. What bounds "
        "it is that all nodes share two cores: their executors start on them, and the other operators compute on "
        "them. Twice the largest size is predicted from the smaller ones alone, then measured; beyond what was "
        "measured no prediction scales better than in proportion.",
        "mst_curves.py",
        (Column("application", "app"),),
        (
            Column("slots a node", "slots_per_node"),
            Column(
                "rows/s by nodes",
                lambda line: ", ".join(f"{m}: {n:,.0f} +- {sd:,.0f}" for m, n, sd in line.get("points", ())),
            ),
            Column("model", "model"),
            Column("predicted at twice", "predicted_per_s"),
            Column("measured there", "measured_per_s"),
            Column("off", "off", percent),
            Column("load average after", "load_average"),
            Column("not measured", "problem"),
        ),
        lambda lines: _mst(lines),
    ),
    Section(
        "uncertainty_live",
        "Policies that decide nodes, live",
        "A match of World Cup's shape (three generated hours: calm, the crowd within 20 minutes, 110 minutes full, "
        "half an hour down) on a cluster whose nodes come and go, each policy on a cluster of its own, from one node. "
        "The peak takes 70% of what the largest measured size sustains. A planner has a history: every policy's "
        "forecaster begins with the same 100 steps of the hours before, so that ARMA has its order from the start. The "
        "paper's cycles are five times as long as a machine takes to come; here the match is compressed, the crowd "
        "comes within a ninth of the run, and the table says how long a node took to be warm. Nobody is on time for "
        "all of it who does not hold a node in reserve, and figures that are close do not rank policies.",
        "uncertainty_live.py",
        (
            Column("application", "app"),
            Column("policy", "policy"),
            Column("seconds", "seconds"),
            Column("cycle", "cycle_s", seconds),
        ),
        (
            Column("looks on time", "on_time", percent),
            Column("rows within the promise", "kept", percent),
            Column("node-seconds / all nodes", "cost", ratio),
            Column("most backlog, rows", "backlog_most"),
            Column("mean backlog", "backlog_mean"),
            Column("moves", "moves"),
            Column(
                "a node was warm after",
                lambda line: statistics.median(line["startups_s"]) if line["startups_s"] else None,
                seconds,
            ),
            Column("load average after", "load_average"),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "model_driven",
        "Model-driven scheduling, live",
        "Linear, diamond and star of waiting tasks (blob and table wait for a store, pi and parse wait instead of "
        "computing; the batches of five queries compute on the same cores), tasks pinned to the executors that their "
        "threads are mapped to. Predicted is for even routing, which is how rows are routed, and at most what was "
        "planned; it is the rate at which batches stay below 2 s in slots of one core each. Here slots share two cores "
        "and batches may be longer, so that more may be reached than predicted; less is, where the batches of five "
        "queries take up both cores. The few threads that these rates need nearly add up in a slot, which is what LSA "
        "assumes: it misses little here, unlike in the paper, where 50 threads share a slot.",
        "model_driven_live.py",
        (Column("dataflow", "dataflow"), Column("planned, rows/s", "planned_per_s"), Column("by", "pair")),
        (
            Column("slots", "slots"),
            Column("of them extra", "extra_slots"),
            Column("threads", "threads"),
            Column("predicted", "predicted_per_s"),
            Column("reached", "reached_per_s"),
            Column("mean", "mean_s", seconds),
            Column("longest batches", "batch_s", seconds),
            Column("tasks where mapped", "pinned_share", percent),
            Column("load average after", lambda line: line["machine"]["load_1min"]),
            Column("note", "note"),
        ),
        lambda lines: _model_driven(lines),
    ),
    Section(
        "planning",
        "Planning: the greedy against the algorithm written literally",
        "Algorithm 1 of DRS as the paper prints it, with closed Erlang formulas, and ours, which "
        "carries Erlang B along and keeps gains in a heap. The same allocation from both where both "
        "were run.",
        "drs_speed.py",
        (Column("operators", "operators"), Column("processors", "processors")),
        (
            Column("ours", lambda line: line["ours_s"] * 1e3, millis),
            Column("literal / ours", "ratio", times),
            Column("same allocation", "same"),
            Column("ns per (N+K) log2 N", "unit_ns", ratio),
        ),
    ),
    Section(
        "packing",
        "MBA and SAM",
        "Tasks of five kinds of profile on a random tree: planning, mapping and extra slots together.",
        "pack_and_place.py",
        (Column("tasks", "tasks"), Column("threads", "threads")),
        (Column("slots", "slots"), Column("MBA", "mba_s", seconds), Column("SAM", "sam_s", seconds)),
    ),
    Section(
        "tick",
        "One tick of the loop",
        "Measuring, learning, forecasting, planning and governing, by number of operators, law and "
        "goal, in processor time; and a plain greedy plan of the same network. What bounds it is "
        "building the values that a tick hands on.",
        "tick_speed.py",
        (Column("operators", "operators"), Column("law", "law"), Column("goal", "goal")),
        (
            Column("median", "median_ms", millis),
            Column("p95", "p95_ms", millis),
            Column("tick / plain plan", "ratio", ratio),
        ),
    ),
    Section(
        "scale",
        "Scale on paper",
        "A decision for very large pipelines: time of a tick, the size of the decision in the log and "
        "of the plan file, memory; and many applications that share one cluster, whose budget the "
        "same greedy divides.",
        "scale.py",
        (Column("what", "what"), Column("operators", "operators"), Column("processors", "processors")),
        (
            Column("rows/s", "rows_per_s"),
            Column("tick", "tick_s", seconds),
            Column("decision, kB", "decision_kb"),
            Column("look, kB", "look_kb"),
            Column("plan file, kB", "plan_kb"),
            Column("memory, MB", "memory_mb"),
        ),
        lambda lines: _scale(lines),
    ),
    Section(
        "simulator",
        "The simulator against Ciw and SimPy",
        "Events a second on the same networks, in turns.",
        "simulator_speed.py",
        (Column("network", "network"),),
        (
            Column("sluicegate", "sluicegate_per_s"),
            Column("Ciw", "ciw_per_s"),
            Column("SimPy", "simpy_per_s"),
            Column("over Ciw", "over_ciw", times),
            Column("over SimPy", "over_simpy", times),
        ),
    ),
    Section(
        "replay_speed",
        "Speed of the replay",
        "Ten policies, five runs, a week of minutes on all cores; and what working things out once saves.",
        "replay_speed.py",
        (Column("protocol", "protocol"),),
        (
            Column("wall", "wall_s", seconds),
            Column("processor time", "cpu_s", seconds),
            Column("each alone / shared", "ratio", ratio),
        ),
    ),
    Section(
        "fidelity",
        "Predicted against measured",
        "The models learn from one short run of an application and predict allocations that have not "
        "run; then those run. Median error of the mean, and pairs of allocations that came out in the "
        "predicted order.",
        "fidelity_of_apps.py --rounds 1",
        (Column("application", "app"),),
        (
            Column("allocations", "settings"),
            Column("median error of the mean", "error_mean", percent),
            Column("median error of p95", "error_p95", percent),
            Column("median error of the burst rate", "error_burst", percent),
            Column("pairs in order", "in_order", percent),
        ),
    ),
    Section(
        "node_fidelity",
        "Predicted against measured: operators that compute and share cores",
        "[The law of a node](models/node_law.md) learns from three settings what batches, tasks and rows of two "
        "computing operators cost in processor time, and predicts the cores of six others, which then run.",
        "fidelity_of_nodes.py",
        (Column("k", "k"), Column("rows/s", "per_s"), Column("a batch every, s", "pace_s")),
        (
            Column("cores predicted", "predicted", ratio),
            Column("cores measured", "measured", ratio),
            Column("more than are free", lambda line: "yes" if line["beyond"] else ""),
        ),
        lambda lines: _nodes(lines),
    ),
    Section(
        "soak",
        "At the edge of capacity with a load that doubles at random",
        "Word count under the loop, the dashboard beside it; the higher level of the load is 0.8 of what all "
        "processors take from a backlog. Last quarter over second quarter of the memory of each process, of the run's "
        "folder without what the sink keeps, and of the latency at the lower level.",
        "soak.py --minutes 60",
        (Column("minutes", "minutes"),),
        (
            Column("driver, Python", "python_growth", ratio),
            Column("driver, Java", "java_growth", ratio),
            Column("controller", "controller_growth", ratio),
            Column("dashboard", "dashboard_growth", ratio),
            Column("disk", "disk_growth", ratio),
            Column("disk, MB at most", "disk_mb"),
            Column("latency", "latency_drift", ratio),
            Column("controller, of a core", "controller_share", percent),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "backlog",
        "A backlog of an hour",
        "Word count with an hour's tables, five a second, waiting on its source; a driver with little memory works "
        "them off. The resident memory of its Java process at most, meanwhile and while a few rows passed before.",
        "backlog.py",
        (Column("tables", "tables"), Column("heap", "memory")),
        (
            Column("rows", "rows"),
            Column("MB before", "calm_mb"),
            Column("MB at most", "most_mb"),
            Column("largest batch", "largest_batch"),
            Column("rows/s", "rows_per_s"),
            Column("failures", "failures"),
            Column("exact", "exact"),
        ),
    ),
)

REPLAY = """## Replay of traces

How it is played is on [the page of the replay](replay.md); its tables, with the commands that make them, are
[a page of their own](replay_tables.md).
"""


def _chooser(line: Line) -> str:
    """
    >>> _chooser({"pace_s": 0.5}), _chooser({"pace_s": 0.5, "by": "es-stream, node below alpha"})
    ('fixed, 0.5 s', 'es-stream, node below alpha')
    """
    by = line.get("by", "fixed")
    return f"fixed, {line['pace_s']:g} s" if by == "fixed" else by


def _medians(lines: Sequence[Line], key: str, aim: float) -> str:
    middle = statistics.median(line[key] for line in lines)
    return f"Median {middle:.3f}; the aim is at most {aim:g}, {'reached' if middle <= aim else 'not reached'}."


def _policies(lines: Sequence[Line]) -> str:
    """What every policy kept and cost over the applications it ran on, by medians."""
    said, means = [], dict[str, tuple[float, float]]()
    for policy in dict.fromkeys(line["policy"] for line in lines):
        of = [line for line in lines if line["policy"] == policy]
        apps = dict.fromkeys(line["app"] for line in of)
        kept = [statistics.median(line["kept"] for line in of if line["app"] == app) for app in apps]
        cost = [
            statistics.median(line["slots_vs_peak"] for line in of if line["app"] == app and line["slots_vs_peak"])
            for app in apps
        ]
        means[policy] = (statistics.fmean(kept), statistics.fmean(cost))
        said.append(f"{policy} {means[policy][0]:.0%} kept, {means[policy][1]:.2f} ({len(apps)})")
    return (
        "Rows within the promise and slot-seconds over a fixed peak, mean over applications (how many) of the median: "
        + "; ".join(said)
        + f". {_ahead(means)}"
    )


def _ahead(means: Mapping[str, tuple[float, float]]) -> str:
    """Which policies kept as much as ours for less.

    >>> _ahead({"sluicegate": (1.0, 0.8), "ds2": (1.0, 0.7), "hpa": (0.1, 0.4)})
    'As much kept for less than sluicegate: ds2.'
    """
    kept, cost = means.get("sluicegate", (0.0, math.inf))
    ahead = [policy for policy, (share, spent) in means.items() if share >= kept and spent < cost]
    return f"As much kept for less than sluicegate: {', '.join(ahead) or 'none'}."


def _drs_live(lines: Sequence[Line]) -> str:
    orders = [(line["in_order"], line["pairs"]) for line in lines if "pairs" in line]
    told = [f"Figures 6, 7: {orders[-1][0]} of {orders[-1][1]} pairs in the order of the model."] if orders else []
    eight = [line for line in lines if line["figure"] == "8"]
    bad = [line for line in eight if line["allocation"] != line["optimum"]]
    once = [line for line in bad if line["moves"] == 1 and line["to"] == line["optimum"]]
    if bad:
        told.append(f"Figure 8: {len(once)} of {len(bad)} bad allocations became the best in one re-allocation.")
    nine = {line["what"]: line["moves"] for line in lines if line["figure"] == "9"}
    told += [f"Figure 9: moves {', '.join(f'{n} ({what})' for what, n in nine.items())}."] if nine else []
    return " ".join(told)


def _levels(lines: Sequence[Line]) -> str:
    """The best single level against all of them, by median latency."""

    def median(hardship: str, arm: str) -> float | None:
        of = [line["mean_s"] for line in lines if (line["hardship"], line["arm"]) == (hardship, arm) and line["mean_s"]]
        return statistics.median(of) if of else None

    said = []
    for hardship in dict.fromkeys(line["hardship"] for line in lines):
        alone = {arm: m for arm in ("instance", "scheduling", "resource") if (m := median(hardship, arm))}
        together, none = median(hardship, "all"), median(hardship, "none")
        if alone and together and none:
            arm = min(alone, key=lambda one: alone[one])
            said.append(
                f"{hardship}: all levels {together / none:.2f} of the latency without any, the best alone ({arm}) "
                f"{alone[arm] / none:.2f}"
            )
    return "; ".join(said) + "." if said else "Not all arms were measured."


def _mst(lines: Sequence[Line]) -> str:
    """How many applications were predicted within a tenth at twice the largest size."""
    found = [line for line in lines if line.get("off") is not None]
    within = sum(abs(line["off"]) <= 0.1 for line in found)
    return (
        f"Aim: within 10% at twice the largest size; {within} of {len(found)} applications measured there, of the "
        "paper's eight."
    )


def _model_driven(lines: Sequence[Line]) -> str:
    """Predicted against reached over all runs and at one rate, and how much of the planned rate each pair reached."""
    seen = [line for line in lines if line["reached_per_s"] is not None]
    planned, predicted, reached = (
        [float(line[what]) for line in seen] for what in ("planned_per_s", "predicted_per_s", "reached_per_s")
    )
    if len(set(predicted)) < 2 or len(set(reached)) < 2:
        return "Too few runs to hold predicted against reached."
    shares = {
        pair: [line["reached_per_s"] / line["planned_per_s"] for line in seen if line["pair"] == pair]
        for pair in dict.fromkeys(line["pair"] for line in seen)
    }
    told = ", ".join(
        f"{pair} {statistics.median(found):.0%} (least {min(found):.0%})" for pair, found in shares.items()
    )
    of_model, of_plan = _r2(predicted, reached), _r2(planned, reached)
    short = sum(rate < 0.99 * plan for rate, plan in zip(predicted, planned, strict=True))
    why = "" if of_model > of_plan else ", so it says nothing of the model: rates far apart lie on a line by themselves"
    return (
        f"R^2 of predicted against reached over {len(seen)} runs: {of_model:.2f} (aim: 0.9). Of planned against "
        f"reached it is {of_plan:.2f}{why}; the model foresees less than planned in {short} of the runs. Reached of "
        f"planned, median: {told}; aim: MBA+SAM 90%."
    )


def _r2(told: Sequence[float], seen: Sequence[float]) -> float:
    return statistics.correlation(told, seen) ** 2 if len(set(told)) > 1 and len(set(seen)) > 1 else 0.0


def _scale(lines: Sequence[Line]) -> str:
    """What breaks first, by the largest pipeline."""
    looks = [line for line in lines if "look_kb" in line]
    if not looks:
        return "No pipeline was measured."
    most = max(line["operators"] for line in looks)
    kb, tick_s = (
        statistics.median(one[what] for one in looks if one["operators"] == most) for what in ("look_kb", "tick_s")
    )
    return (
        f"What breaks first is the log of looks, which has every operator at every look: with {most:,} operators and a "
        f"look every two seconds it grows by {kb * 1800 / 1e6:.1f} GB an hour (at most 16 MB are kept: "
        f"{16_000 / kb * 2:.0f} s). A tick takes {tick_s / 2:.0%} of the time between two looks."
    )


def _nodes(lines: Sequence[Line]) -> str:
    """Median error, and pairs of settings in the predicted order, of their medians over runs."""
    runs: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        runs.setdefault((line["k"], line["per_s"], line["pace_s"]), []).append(line)
    found = [
        tuple(statistics.median(line[what] for line in of) for what in ("predicted", "measured"))
        for of in runs.values()
    ]
    error = statistics.median(abs(told / seen - 1) for told, seen in found)
    pairs = list(combinations(found, 2))
    right = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs)
    return f"Median error {error:.1%}; {right} of {len(pairs)} pairs in the predicted order."


def _nexmark(lines: Sequence[Line]) -> str:
    """The other ways over plain over all queries, from the medians of each."""
    middle: dict[str, dict[str, tuple[float, float]]] = {}
    for line in lines:
        query, way = line["query"], line["way"]
        of = [one for one in lines if (one["query"], one["way"]) == (query, way) and one["turn"]]
        if of and way not in middle.get(query, {}):
            wall, cpu = (statistics.median(one[what] for one in of) for what in ("wall_s", "cpu_s"))
            middle.setdefault(query, {})[way] = (wall, cpu)
    said = []
    for way, aim in (("attached", " (throughput; the aim is 0.98)"), ("pipeline", " (throughput)")):
        both = [found for found in middle.values() if {"plain", way} <= set(found)]
        if both:
            wall, cpu = (sum(one["plain"][i] for one in both) / sum(one[way][i] for one in both) for i in (0, 1))
            said.append(f"plain over {way} {wall:.3f} in wall time{aim} and {cpu:.3f} in processor time")
    return f"All queries together: {'; '.join(said)}; 1 is no loss." if said else "Only one way was measured."
