"""Model-driven scheduling's second set of figures: five pairs on a fixed cluster of five VMs of four slots each.

Planned, predicted and reached rates, use and latency.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from sluicegate.domain import Topology, Vm
from sluicegate.lab.reproduce.claims import Progress, Row
from sluicegate.lab.reproduce.slot_plans import MBA_DSM, MBA_RSM, MBA_SAM, PAIRS, Pair, most_on
from sluicegate.lab.reproduce.stable_rate import Seen, stable_per_s, watch
from sluicegate.model.mapping_rate import Routing, mapping_rate, vm_loads

FLEET = tuple(Vm(f"vm-{number}", 4) for number in range(1, 6))
STEP_PER_S = 10.0


@dataclass(frozen=True, eq=False, slots=True)
class Reached:
    """The result of a pair on the cluster; rates are the dataflow's, use is a share of each VM."""

    pair: Pair
    planned_per_s: float
    predicted_per_s: float
    even_per_s: float
    simulated_per_s: float
    seen: Seen
    predicted_cpu: dict[str, float]
    predicted_memory: dict[str, float]


def reach(pair: Pair, topology: Topology) -> Reached:
    """Plan the highest rate that fits, predict by the model, and search the highest stable rate by simulation."""
    plan = most_on(pair, topology, FLEET, STEP_PER_S)
    model = mapping_rate(topology, plan.placement)
    predicted, even = (model.rate_per_s(routing) for routing in (Routing.SLOT_AWARE, Routing.EVEN))
    simulated = stable_per_s(topology, plan.placement, STEP_PER_S, 2 * plan.rate_per_s)
    loads = vm_loads(topology, plan.placement, predicted, Routing.SLOT_AWARE)
    return Reached(
        pair=pair,
        planned_per_s=plan.rate_per_s,
        predicted_per_s=predicted,
        even_per_s=even,
        simulated_per_s=simulated,
        seen=watch(topology, plan.placement, max(simulated, STEP_PER_S)),
        predicted_cpu={name: load.cpu / load.slots for name, load in loads.items()},
        predicted_memory={name: load.memory / load.slots for name, load in loads.items()},
    )


def r_squared(one: list[float], other: list[float]) -> float:
    """Squared correlation; 0 if one of the two does not vary.

    >>> r_squared([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    1.0
    """
    a, b = np.array(one) - np.mean(one), np.array(other) - np.mean(other)
    spread = float(a @ a) * float(b @ b)
    return round(float(a @ b) ** 2 / spread, 12) if spread > 0 else 0.0


_HOPS = "simulated without the time rows take between VMs, to which the paper puts down part of its order"
_FAR = 0.05
_FAR_LESS = 0.2

Found = Mapping[str, Mapping[str, Reached]]


def cluster_rows(flows: Mapping[str, Topology], progress: Progress) -> Iterator[Row]:
    """Rates, their correlation, use of the VMs, and latency."""
    found: dict[str, dict[str, Reached]] = {}
    for name, topology in flows.items():
        found[name] = {}
        for pair in PAIRS:
            progress(f"{name}, {pair.name} on five VMs")
            found[name][pair.name] = reach(pair, topology)
        yield from _rate_rows(name, found[name])
    yield from _order_rows(found)
    for name in flows:
        yield from _use_rows(name, list(found[name].values()))
    yield from _latency_rows(found)


def _rate_rows(name: str, by_pair: Mapping[str, Reached]) -> Iterator[Row]:
    shown = "; ".join(
        f"{pair} {r.planned_per_s:.0f}/{r.predicted_per_s:.0f}/{r.even_per_s:.0f}/{r.simulated_per_s:.0f}"
        for pair, r in by_pair.items()
    )
    every = list(by_pair.values())
    far, near, even = (_error(every, what) for what in ("planned_per_s", "predicted_per_s", "even_per_s"))
    yield Row(
        f"{name}: rows/s planned/predicted/predicted for even routing/simulated",
        "predicted is nearer to actual than planned",
        shown,
        near < far,
        f"asked: a smaller mean error; it is {far:.0%} planned, {near:.0%} predicted, "
        f"{even:.0%} predicted for even routing",
    )
    simulated = [r.simulated_per_s for r in every]
    by_plan, by_model, by_even = (
        r_squared(simulated, [getattr(r, what) for r in every])
        for what in ("planned_per_s", "predicted_per_s", "even_per_s")
    )
    better = by_model > by_plan + _FAR
    why = (
        f"asked: {_FAR:g} more; five points in two clusters, LSA below MBA: the plans line up with that as well, so "
        "R^2 shows little; the errors in the row above show more"
    )
    yield Row(
        f"{name}: R^2 of simulated rate with planned, predicted, even",
        "predicted far better than planned",
        f"{by_plan:.2f}, {by_model:.2f}, {by_even:.2f}",
        better,
        why,
    )


def _error(reached: Sequence[Reached], what: str) -> float:
    """Mean relative deviation from the simulated rate."""
    return fmean(abs(getattr(r, what) / max(r.simulated_per_s, 1.0) - 1) for r in reached)


def _order_rows(found: Found) -> Iterator[Row]:
    rates = {name: {pair: r.simulated_per_s for pair, r in by.items()} for name, by in found.items()}
    lowest = min(min(rate for pair, rate in by.items() if pair.startswith("MBA")) for by in rates.values())
    highest = max(max(rate for pair, rate in by.items() if pair.startswith("LSA")) for by in rates.values())
    yield Row(
        "MBA reaches more than LSA under any mapping",
        "always",
        f"least of MBA {lowest:.0f}, most of LSA {highest:.0f} rows/s",
        all(_least(by, "MBA") > -_least({p: -r for p, r in by.items()}, "LSA") for by in rates.values()),
        "asked: in all three; simulated",
    )
    shown = "; ".join(f"{name} {_three(by)}" for name, by in rates.items())
    lowest_dsm = all(by[MBA_DSM.name] <= min(by[MBA_RSM.name], by[MBA_SAM.name]) for by in rates.values())
    yield Row(
        "MBA+DSM is the lowest of MBA (DSM/RSM/SAM)",
        "always",
        shown,
        lowest_dsm,
        "asked: in all three, ties allowed; the paper's platform has costs of mixing tasks on a slot beyond their CPU "
        "that the simulator has not",
    )
    more = [by[MBA_RSM.name] > by[MBA_SAM.name] for by in (rates["linear"], rates["star"])]
    yield Row(
        "MBA+RSM reaches more than MBA+SAM on linear and star",
        "both",
        f"{sum(more)} of 2: {shown}",
        all(more),
        "where RSM spreads blob threads depends on its weights and ties, which the paper does not give",
    )


def _least(by: Mapping[str, float], planner: str) -> float:
    return min(rate for pair, rate in by.items() if pair.startswith(planner))


def _three(by: Mapping[str, float]) -> str:
    return "/".join(f"{by[pair.name]:.0f}" for pair in (MBA_DSM, MBA_RSM, MBA_SAM))


def _use_rows(name: str, reached: Sequence[Reached]) -> Iterator[Row]:
    cpu = r_squared(
        [share for r in reached for share in r.seen.cpu.values()],
        [share for r in reached for share in r.predicted_cpu.values()],
    )
    memory = r_squared(
        [share for r in reached for share in r.seen.memory.values()],
        [share for r in reached for share in r.predicted_memory.values()],
    )
    told = "25 VMs: 5 of each pair; predicted at the predicted rate, seen at the highest stable one"
    yield Row(f"{name}: R^2 of CPU by VM, predicted and simulated", "above 0.8", f"{cpu:.2f}", cpu > 0.8, told)
    yield Row(f"{name}: R^2 of memory by VM", "lower than of CPU", f"{memory:.2f}", memory < cpu, told)
    by = {
        planner: fmean(share for r in reached if r.pair.planner.name == planner for share in r.seen.cpu.values())
        for planner in ("lsa", "mba")
    }
    yield Row(
        f"{name}: mean CPU of a VM under LSA and MBA",
        "LSA uses far less",
        f"{by['lsa']:.0%} and {by['mba']:.0%}",
        by["lsa"] <= (1 - _FAR_LESS) * by["mba"],
        f"asked: {_FAR_LESS:.0%} less; at the highest stable rate of each",
    )


def _latency_rows(found: Found) -> Iterator[Row]:
    medians = {name: {pair: r.seen.median_s or 0.0 for pair, r in by.items()} for name, by in found.items()}
    for name, by in medians.items():
        mba = {pair: s for pair, s in by.items() if pair.startswith("MBA")}
        holds = min(mba, key=lambda p: mba[p]) == MBA_DSM.name and max(mba, key=lambda p: mba[p]) == MBA_SAM.name
        yield Row(
            f"{name}: median latency, MBA+DSM lowest, MBA+SAM highest",
            "DSM < RSM < SAM",
            ", ".join(f"{pair} {s:.2f} s" for pair, s in by.items()),
            holds,
            f"asked among MBA; {_HOPS}",
        )
    of = {name: fmean(by.values()) for name, by in medians.items()}
    yield Row(
        "latency by dataflow: diamond < star < linear",
        "diamond < star < linear",
        ", ".join(f"{name} {s:.2f} s" for name, s in of.items()),
        of["diamond"] < of["star"] < of["linear"],
        f"mean of the pairs' medians; {_HOPS}",
    )
