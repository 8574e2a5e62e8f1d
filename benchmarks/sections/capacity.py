"""What nodes and slots sustain, and the policies that plan by it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sections.section import Column, Line, Section, percent, ratio, seconds


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
        return "Too few runs to compare predicted with reached."
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


SECTIONS: tuple[Section, ...] = (
    Section(
        "mst",
        "What nodes sustain",
        "Sustainable throughput on workers of a local cluster, one executor each, with a source that always has "
        "rows: mean and deviation of the samples that settled a size. The first operator waits for every row, so "
        "that nodes matter on two cores. Every other operator takes one slot from it, whatever the size, so a "
        "curve rises a little faster than proportionally at first; each task of a batch costs some 20 ms more, so "
        "it flattens later. The limit is that all nodes share two cores: their executors start on them, and the "
        "other operators compute on them. Twice the largest size is predicted from the smaller ones alone, then "
        "measured; beyond the measured sizes no prediction scales better than proportionally.",
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
        _mst,
    ),
    Section(
        "uncertainty_live",
        "Policies that decide nodes, live",
        "A match of World Cup's shape (three generated hours: calm, a rise within 20 minutes, 110 minutes at the "
        "peak, half an hour of decline) on a cluster whose nodes are started and stopped, each policy on a "
        "cluster of its own, from one node. The peak takes 70% of what the largest measured size sustains. Every "
        "policy's forecaster starts with the same 100 steps of the hours before, so that ARMA has its order from "
        "the start. The paper's cycles are five times as long as the start-up time of a machine; here the match "
        "is compressed, the rise takes a ninth of the run, and the table has the start-up time of a node. Only a "
        "policy that keeps a node in reserve can be on time throughout, and small differences do not rank "
        "policies.",
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
        _model_driven,
    ),
)
