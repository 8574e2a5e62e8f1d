"""How fast plans, mappings and ticks are computed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sections.section import Column, Line, Section, millis, ratio, seconds, times


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
        f"The first limit is the log of ticks, which has every operator at every tick: with {most:,} operators and a "
        f"tick every two seconds it grows by {kb * 1800 / 1e6:.1f} GB an hour (at most 16 MB are kept: "
        f"{16_000 / kb * 2:.0f} s). A tick takes {tick_s / 2:.0%} of the time between two ticks."
    )


SECTIONS: tuple[Section, ...] = (
    Section(
        "planning",
        "Planning: the greedy against the algorithm written literally",
        "Algorithm 1 of DRS as the paper prints it, with closed Erlang formulas, and ours, with an incremental "
        "Erlang B recursion and the gains in a heap. Both give the same allocation where both were run.",
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
        "Measuring, learning, forecasting, planning and governing, by number of operators, law and goal, in "
        "processor time; and the plan of the same network alone. Most of a tick builds the values that it "
        "returns.",
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
        "One decision for very large pipelines: time of a tick, the size of the decision in the log and of the "
        "plan file, memory; and many applications that share one cluster, whose budget is divided by the same "
        "greedy algorithm.",
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
        _scale,
    ),
)
