"""The demo and the policies live: a load that triples, DRS's figures, Mc-Stream's levels."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from sections.section import Column, Line, Section, close, percent, ratio, seconds, whole

AT_PEAK = 0.37
"""The share of a run that `live_elasticity.plateau` is at three times the calm load."""


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
        + f". {_ahead(means)} {_least(lines)}"
    )


def _least(lines: Sequence[Line]) -> str:
    """What any follower of the plateau needs at least: an operator has a task, and the load is at its peak for a while.

    >>> _least([{"app": "a", "peak": {"x": 1, "y": 3}}])
    'Any policy that keeps the promise needs at least 0.69: the peak plan at the peak (37% of a run), else a task each.'
    """
    peaks = {line["app"]: line["peak"] for line in lines if line["peak"]}
    least = statistics.fmean(AT_PEAK + (1 - AT_PEAK) * len(peak) / sum(peak.values()) for peak in peaks.values())
    return (
        f"Any policy that keeps the promise needs at least {least:.2f}: the peak plan at the peak ({AT_PEAK:.0%} of a "
        "run), else a task each."
    )


_WHY_AHEAD = {
    "fixed-peak": "it is told the highest load beforehand, and in so short a run the processors given back afterwards "
    "hardly pay for those taken too long",
}


def _ahead(means: Mapping[str, tuple[float, float]]) -> str:
    """Which policies kept as much as ours for less, and why where that is known.

    >>> _ahead({"sluicegate": (1.0, 0.8), "ds2": (1.0, 0.7), "hpa": (0.1, 0.4)})
    'As much kept for less than sluicegate: ds2.'
    """
    kept, cost = means.get("sluicegate", (0.0, math.inf))
    ahead = [policy for policy, (share, spent) in means.items() if share >= kept and spent < cost]
    told = [f"{policy} ({_WHY_AHEAD[policy]})" if policy in _WHY_AHEAD else policy for policy in ahead]
    return f"As much kept for less than sluicegate: {', '.join(told) or 'none'}."


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


SECTIONS: tuple[Section, ...] = (
    Section(
        "demo",
        "The demo beside other work",
        "The shop under a load that triples, with nothing else running and with a busy loop at normal priority on "
        "one of the machine's cores. The promise is ten times the duration of a batch during warm-up, so it is "
        "longer on a busy machine.",
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
        "Pipelines on real Spark, one after the other in one session, under the same load, starting with one task "
        "per operator. Fixed peak is a constant size for the highest load (planned with the costs of the "
        "application's first run). Operators of the waiting applications wait instead of computing, so that k has "
        "the effect that it would have on a cluster. Times are a hundredth of those in production, since a run "
        "lasts half a minute: cycles and T_ra are 6 s, the peers' windows and periods are shortened as much (a "
        "peer that uses batches decides every 3 s), KEDA's lag and DStreams' interval are tuned to the promise. "
        "Es-Stream keeps its own 10 and 15 s. ARMA has no order by then, so uncertainty-7 uses the current rate.",
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
        _policies,
    ),
    Section(
        "drs_live",
        "DRS, figures 6 to 9, live",
        "A chain of three waiting operators (2, 9 and 1 ms per row) under `drs`, M/M/k. Figures 6 and 7 (34, 48 "
        "and 14 ms): six allocations of nine processors, twice, as predicted and as measured; M/M/k does not "
        "model the overhead of batches, so only the order is compared, of allocations whose predictions by the "
        "law of batches differ by an eighth. Figure 8: from two bad allocations and from the best one, K_max "
        "processors, one re-allocation once T_ra is over. Figure 9: a minute is a tick of 2 s; a load in three "
        "steps, and a burst of three ticks, under T_max (ten nearly empty batches) and T_min (0.45 of it), "
        "smoothed over w ticks, T_ra w ticks.",
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
        _drs_live,
    ),
    Section(
        "mc_levels",
        "Mc-Stream: one level alone against four, live",
        "Two operators, one of them with state, on a cluster of three local nodes. Disturbances: the node that runs "
        "most of the first operator three times slower, half of all rows on two of 60 keys, three times the load. "
        "`none` is plain Spark with the user's instances; the fourth level is the topology itself. Nodes share two "
        "cores and have no network between them, so the gain of placing connected operators together does not show. "
        "Deviations are over nodes: of the share of slots that tasks occupy, and of processor time. Rows arrive at "
        "the usual rate before, between and after the disturbances, of twenty seconds each; latency is that of the "
        "rows that arrived during one. The instance level uses the model: a trial on the running pipeline would take "
        "longer than a disturbance.",
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
        _levels,
    ),
)
