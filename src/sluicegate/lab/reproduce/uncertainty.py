"""The figures of uncertainty-aware scheduling: policies 0 to 7 on eight workloads, the effect of rho, backlogs.

Protocol of the paper: a decision every 10 minutes, machines start within 2, one draw of the true capacity a cycle.
Loads and capacity curves are in ``eight_workloads``: traces are used if given, the curves are always ours. So orders
can be reproduced, but not levels: other curves change every level, and with them the cost of policy 5. As in the paper,
the size at which the two models of a curve differ most is also measured and decides between them. One run per workload
and policy on four days; five runs on seven days, as in the paper, with ``--full``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np

from sluicegate.forecast.arma import choose_order
from sluicegate.lab.reproduce.claims import Progress, Row
from sluicegate.lab.reproduce.eight_workloads import (
    RHO,
    STEPS,
    TRACES,
    WORKLOADS,
    Fared,
    Floats,
    WeekTrial,
    Workload,
    curve_top,
    fare,
    mean_of,
    week_loads,
)

RHOS = (0.5, 0.7, 0.9, RHO)
_SINGLES = (1, 2, 4)
_NAMES = ("MST", "+UA", "+OL", "+UA+OL", "ARMA", "UA;ARMA", "OL;ARMA", "UA+OL;ARMA")
_PAPER = {0: "52%", 1: "73 to 81%", 2: "73 to 81%", 4: "73 to 81%", 5: "98.35% at 1.99x", 7: "98.62% at 1.85x"}
_ORDERS = {"World Cup 98": (1, 2), "tweets": (1, 1), "ADS-B": (1, 3)}
_FIRST = 100


@dataclass(frozen=True, slots=True)
class Length:
    """Minutes of a run, and the number of runs."""

    steps: int
    runs: int


BRIEF, FULL = Length(STEPS, 1), Length(10_080, 5)
"""The default, and the paper's: seven days, five runs."""


def rows(
    progress: Progress,
    traces: Sequence[Path] = (),
    *,
    steps: int = STEPS,
    runs: int = 1,
    workers: int = 2,
) -> Iterator[Row]:
    """Yield one row per figure. ``traces``: World Cup 98, tweets, ADS-B, in this order; generated if not given."""
    loads, origins = week_loads(traces, steps)
    for number, name in enumerate(TRACES):
        yield _order_row(name, loads[name], origins[name], number < len(traces))
    every = [WeekTrial(workload, n, runs=runs) for workload in WORKLOADS for n in range(8)]
    others = [WeekTrial(workload, 7, rho, runs) for rho in RHOS[:-1] for workload in WORKLOADS]
    found = fare([*every, *others], loads, workers, lambda done, total: progress(f"{done} of {total} replays"))
    main, by_rho = found[: len(every)], found
    tops = {w.name: curve_top(WeekTrial(w, 5), loads) for w in WORKLOADS if w.scales}
    yield from _policy_rows(main)
    yield from _order_rows(main, _short(tops))
    for workload in WORKLOADS:
        yield _workload_row(workload, main)
    yield from _backlog_rows(main, tops)
    yield from _rho_rows([one for one in by_rho if one.trial.policy == 7])


def of_policy(fared: Sequence[Fared], number: int) -> list[Fared]:
    return [one for one in fared if one.trial.policy == number]


def _short(tops: Mapping[str, int]) -> str:
    """Which learned curves have their maximum below the machines that the peak needs."""
    needs = {workload.name: workload.machines for workload in WORKLOADS}
    low = [f"{name} at {top} of {needs[name]}" for name, top in tops.items() if top < needs[name]]
    return "curves learned from small sizes have their top, beyond which nothing is chosen, at " + ", ".join(low)


def _order_row(name: str, load: Floats, origin: str, given: bool) -> Row:
    found, paper = choose_order(load[:_FIRST]), _ORDERS[name]
    note = f"{origin}, by AIC on the first {_FIRST} values"
    if not given:
        note = f"{origin}: a stand-in has an order of its own; give the trace to compare"
    elif found != paper:
        note += "; AIC of neighbouring orders is close, and the paper's trace or its start may differ"
    return Row(
        f"order of the ARMA model, {name}", f"ARMA{paper}", f"ARMA{found}", found == paper if given else None, note
    )


def _policy_rows(fared: Sequence[Fared]) -> Iterator[Row]:
    qos = {number: mean_of(of_policy(fared, number), "qos") for number in range(8)}
    for number, name in enumerate(_NAMES):
        own = of_policy(fared, number)
        cost, static = mean_of(own, "cost"), mean_of(own, "cost_vs_static")
        if number == 0:
            holds, asked = qos[0] == min(qos.values()), "lowest of all"
        elif number in _SINGLES:
            holds, asked = qos[0] < qos[number] < qos[7], "between policies 0 and 7"
        else:
            holds, asked = qos[number] > max(qos[one] for one in _SINGLES), "above each technique alone"
        yield Row(
            f"policy {number}: {name}, on time, at the cost of hindsight",
            _PAPER.get(number, "between"),
            f"{qos[number]:.2%} at {cost:.2f}x, {static:.2f} of static peak",
            holds,
            f"asked: {asked}; means over the workloads, rho {RHO}, capacity curves ours",
        )


def _order_rows(fared: Sequence[Fared], short: str) -> Iterator[Row]:
    qos, cost, static = (
        {number: mean_of(of_policy(fared, number), what) for number in range(8)}
        for what in ("qos", "cost", "cost_vs_static")
    )
    singles = ", ".join(f"{qos[one]:.1%}" for one in _SINGLES)
    rises = qos[0] < min(qos[one] for one in _SINGLES) and max(qos[one] for one in _SINGLES) < min(qos[5], qos[7])
    yield Row(
        "on time: none, one technique, all",
        "52% -> 73 to 81% -> 98.62%",
        f"{qos[0]:.1%} -> {singles} -> {qos[7]:.1%}",
        rises,
        "asked: policy 0 below each technique alone, these below policies 5 and 7",
    )
    yield Row(
        "policy 7 on time as promised (rho 0.95)", "98.62%", f"{qos[7]:.2%}", qos[7] >= RHO, "mean over eight workloads"
    )
    cheaper = cost[7] < cost[5]
    yield Row(
        "policy 7 costs less than policy 5",
        "1.85x vs 1.99x, 98.62% vs 98.35%",
        f"{cost[7]:.2f}x vs {cost[5]:.2f}x, {qos[7]:.2%} vs {qos[5]:.2%}",
        cheaper,
        "asked: less" if cheaper else f"policy 5 is cheap because it is short of machines: {short}",
    )
    yield Row(
        "policy 7 against static peak",
        "48% less",
        f"{1 - static[7]:.0%} less",
        static[7] < 1,
        "how much depends on how far the peak stands out of the load; VHT, where one machine is enough, is in the mean",
    )


def _workload_row(workload: Workload, fared: Sequence[Fared]) -> Row:
    own = {one.trial.policy: one for one in fared if one.trial.workload is workload}
    told = ", ".join(f"{number}: {own[number].qos:.1%} at {own[number].cost:.2f}x" for number in (0, 1, 5, 7))
    if not workload.scales:
        holds = own[0].qos == 1
        return Row(
            f"{workload.name}, policies 0, 1, 5, 7", "100% even with policy 0", told, holds, "one machine is enough"
        )
    holds = own[0].qos < own[1].qos <= own[5].qos <= own[7].qos
    why = f"asked: rising; capacity ours, {workload.machines} machines at the peak of {workload.peak_mb_per_s:g} MB/s"
    if not holds and own[7].qos < own[5].qos:
        why += (
            "; refitted with what is learned online, a curve may have its top below what the load needs, and nothing "
            "beyond it is chosen: then policy 7 is late where policy 5 is not"
        )
    return Row(f"{workload.name}, policies 0, 1, 5, 7", "rises from 0 to 1 to 5 to 7", told, holds, why)


def _backlog_rows(fared: Sequence[Fared], tops: Mapping[str, int]) -> Iterator[Row]:
    grep_is = WORKLOADS[0]
    grep = {one.trial.policy: one.backlog_gb for one in fared if one.trial.workload is grep_is}
    yield Row(
        "Grep's largest backlog, policy 0",
        "12.8 GB",
        f"{grep[0]:.1f} GB",
        grep[0] > 10 * max(grep[7], 0.1),
        "asked: over ten times that of policy 7; the size is the capacity curve's, which is ours",
    )
    none = max(grep[5], grep[7]) <= 0.01 * grep[0]
    yield Row(
        "Grep's largest backlog, policies 5 and 7",
        "none",
        f"{grep[5]:.1f} and {grep[7]:.1f} GB",
        none,
        "asked: below a hundredth of policy 0's" if none else _why_backlog(tops[grep_is.name], grep_is.machines),
    )


def _why_backlog(top: int, needed: int) -> str:
    if top < needed:
        return (
            f"its learned curve has its top at {top} machines, and no more are chosen until online learning lifts it; "
            f"the peak needs {needed}"
        )
    return (
        f"asked: below a hundredth of policy 0's; the curve that validation chose reaches {top} machines, enough for "
        "the peak; what is left comes in the cycle in which a match of the generated load begins: it rises fourfold "
        "within 20 minutes, which no forecast knows before; recorded traces (--trace) rise less steeply"
    )


def _rho_rows(fared: Sequence[Fared]) -> Iterator[Row]:
    groups: Mapping[float, list[Fared]] = {rho: [one for one in fared if one.trial.rho == rho] for rho in RHOS}
    qos = [mean_of(groups[rho], "qos") for rho in RHOS]
    cost = [mean_of(groups[rho], "cost") for rho in RHOS]
    told = "/".join(f"{rho:g}" for rho in RHOS)
    yield Row(
        f"policy 7 on time as rho grows, {told}",
        "rises",
        " -> ".join(f"{share:.1%}" for share in qos),
        all(a < b for a, b in pairwise(qos)),
        "mean over eight workloads",
    )
    pairs = [(rho, one.qos) for rho in RHOS for one in groups[rho] if one.trial.workload.scales]
    correlation = float(np.corrcoef(np.array(pairs).T)[0, 1])
    yield Row(
        "correlation of rho with time on time",
        "0.652",
        f"{correlation:.3f}",
        correlation > 0.5,
        "over single runs without VHT, which is always on time; asked: clearly positive, above 0.5",
    )
    slopes = [(cost[i + 1] - cost[i]) / (RHOS[i + 1] - RHOS[i]) for i in (1, 2)]
    yield Row(
        "cost rises faster from rho 0.9 to 0.95 than from 0.7 to 0.9",
        "steeper",
        f"{cost[1]:.2f}x -> {cost[2]:.2f}x -> {cost[3]:.2f}x",
        slopes[1] > slopes[0],
        f"{slopes[0]:.2f} and {slopes[1]:.2f} for each unit of rho; mean {fmean(cost):.2f}x",
    )
