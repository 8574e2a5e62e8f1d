"""Fits a plan to the cores of its nodes, by the CPU model of ``model.node_law``.

When all cores are busy, one more task makes every batch slower. So if the batches of a plan need more than the free
cores: no operator gets more tasks than it runs with (unless it needs them to keep up), batches start as rarely as the
latency goal allows, and tasks are removed one by one where that saves most cores and the operator still keeps up. If
that is not enough, more nodes are requested, and the reason gives the number of cores that would suffice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sluicegate.domain import Cores, Situation
from sluicegate.model.node_law import FILLED, cores_needed
from sluicegate.model.stations import KEEPS_UP, Counts, Stations
from sluicegate.policy.pace import paces


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Processors and paces that fit the cores, or come nearest; ``more_nodes`` are requested if they do not fit."""

    processors: Counts
    pace_s: dict[str, float]
    reasons: tuple[str, ...] = ()
    fits: bool = True
    more_nodes: int = 0


def within_cores(
    situation: Situation, stations: Stations, k: Counts, pace_s: dict[str, float], goal_s: float | None
) -> Fitted:
    """The plan, reduced if it needs too many cores; unchanged if cores are unknown. ``goal_s`` is the mean allowed."""
    cores = situation.cores
    if cores is None or not pace_s or needed(cores, stations, k, pace_s) <= FILLED * cores.free:
        return Fitted(k, pace_s)
    if _cores_to_spare(situation):
        return Fitted(k, pace_s)
    before = needed(cores, stations, k, pace_s)
    fewer = _no_more_than_run(situation, stations, k)
    rarer = _stretched(stations, fewer, goal_s, pace_s)
    while needed(cores, stations, fewer, rarer) > FILLED * cores.free:
        smaller = _one_less(cores, stations, fewer, rarer)
        if smaller is None:
            break
        fewer, rarer = smaller, _stretched(stations, smaller, goal_s, pace_s)
    need = needed(cores, stations, fewer, rarer)
    if need <= FILLED * cores.free:
        return Fitted(fewer, rarer, (_told(cores, before, need, k, fewer, rarer),))
    short = _short(situation, cores, need)
    return replace(short, processors=fewer, pace_s=rarer)


def _cores_to_spare(situation: Situation) -> bool:
    """Whether every node was observed with idle cores: then the model overestimates and is not applied.

    Tasks that wait for an external service need no core, and batches that grow under load become fewer.
    """
    nodes = [node for node in situation.observation.nodes if node.cores]
    return bool(nodes) and all(
        (node.busy_cores or 0.0) + (node.other_cores or 0.0) < FILLED * node.cores for node in nodes
    )


def needed(cores: Cores, stations: Stations, k: Counts, pace_s: Mapping[str, float]) -> float:
    """The cores that a plan needs; an operator without a pace starts its batches back to back.

    For one that cannot keep up, batch length grows without bound, so that only its rows count.
    """
    laws, busy = stations.laws, stations.offered / k
    own = laws.overhead_s + laws.per_task_s * k
    settled = np.divide(own, 1 - busy, out=np.full(len(own), math.inf), where=busy < 1)
    every = {name: max(pace_s.get(name, 0.0), float(b)) for name, b in zip(stations.names, settled, strict=True)}
    arrivals = dict(zip(stations.names, laws.arrivals_per_s.tolist(), strict=True))
    return cores_needed(cores, arrivals, dict(zip(stations.names, k.tolist(), strict=True)), every)


def _no_more_than_run(situation: Situation, stations: Stations, k: Counts) -> Counts:
    """Cap each operator at its running tasks, unless it needs more to keep up."""
    have = [max(situation.running.get(name, int(n)), 1) for name, n in zip(stations.names, k, strict=True)]
    least = np.ceil(stations.offered / KEEPS_UP).astype(np.int64)
    fewer: Counts = np.minimum(k, np.maximum(np.array(have, dtype=np.int64), least))
    return fewer


def _stretched(stations: Stations, k: Counts, goal_s: float | None, pace_s: Mapping[str, float]) -> dict[str, float]:
    longer = paces(stations, k, goal_s)
    return {name: max(longer.get(name, 0.0), pace) for name, pace in pace_s.items()}


def _one_less(cores: Cores, stations: Stations, k: Counts, pace_s: Mapping[str, float]) -> Counts | None:
    """Remove the task that saves most cores, among operators that keep up with one less; ``None`` if none saves any."""
    best, least = None, needed(cores, stations, k, pace_s)
    for i in np.flatnonzero((k > 1) & (stations.offered < k - 1)):
        one = k.copy()
        one[i] -= 1
        then = needed(cores, stations, one, pace_s)
        if then < least:
            best, least = one, then
    return best


def _told(cores: Cores, before: float, need: float, k: Counts, fewer: Counts, pace_s: Mapping[str, float]) -> str:
    tasks = f", {int(k.sum())} -> {int(fewer.sum())} tasks" if int(fewer.sum()) < int(k.sum()) else ""
    longest = max(pace_s.values())
    return (
        f"cores: the plan needs {before:.2g} of {cores.free:.2g} free cores: batches at most every {longest:.2g} s"
        f"{tasks} need {need:.2g}"
    )


def _short(situation: Situation, cores: Cores, need: float) -> Fitted:
    others = cores.there - cores.free
    enough = math.ceil(need / FILLED + others - 1e-9)
    taken = f", of which others take {others:.2g}" if others >= 0.1 else ""
    why = f"cores are short: batches need {need:.2g} cores, there are {cores.there:.2g}{taken}; {enough} would suffice"
    fleet = situation.observation.fleet
    if fleet is None or fleet.nodes is None:
        return Fitted(np.zeros(0, dtype=np.int64), {}, (why,), fits=False)
    nodes = max(math.ceil((enough - cores.there) / max(cores.each, 1.0)), 1)
    return Fitted(np.zeros(0, dtype=np.int64), {}, (f"{why}: {nodes} more nodes",), fits=False, more_nodes=nodes)
