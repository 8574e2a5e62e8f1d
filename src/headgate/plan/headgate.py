"""headgate's own policy: the best of the papers, one after the other.

1. load       the forecast's quantile over the time a move takes to bear fruit (uncertainty-aware scheduling), else now
2. capacity   each learned service rate lowered by z standard errors (the model's own uncertainty)
3. processors DRS's greedy under the law that holds for each operator, until mean and quantile promises are kept
              with a margin; never beyond the micro-batch law's minimum
4. whole      the total is rounded up to whole executors and nodes, and what is paid for anyway is put to work
5. cost       a ceiling on cost bounds the total; if both cannot hold, cost wins and the latency reached is said
6. feedback   where measured latency exceeds what the model gave for what runs, the goal handed to the model shrinks by
              that ratio (DRS's regression from estimated to true latency, with one coefficient)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from headgate.domain import Limits, Proposal, Situation
from headgate.errors import Infeasible
from headgate.model.sojourn import quantile_s
from headgate.model.stations import Counts, Stations
from headgate.plan.demand import stations_of
from headgate.plan.drs import best_effort, explain, min_within_knee, require_enough
from headgate.plan.greedy import GreedyPath, ample, greedy_path
from headgate.plan.pace import paces


@dataclass(frozen=True, slots=True)
class Memory:
    """The model's bias: measured over predicted mean sojourn of what ran, smoothed."""

    bias: float = 1.0


@dataclass(frozen=True, slots=True)
class HeadgatePolicy:
    """headgate's own policy.

    ``level`` is the forecast quantile and the confidence in each service rate; ``margin`` the share of a latency bound
    kept in reserve; ``lead_steps`` how many forecast steps a move looks ahead.
    """

    level: float = 0.95
    margin: float = 0.1
    lead_steps: int = 4
    name: str = "headgate"

    def start(self) -> Memory:
        return Memory()

    def propose(self, memory: Memory, situation: Situation) -> tuple[Memory, Proposal]:
        memory = _with_bias(memory, situation)
        load, why_load = self._load(situation)
        stations = self._cautious(situation, load)
        try:
            k, why, feasible = self._plan(memory, situation, stations)
        except Infeasible as problem:
            k, why, feasible = best_effort(stations, _bounded(situation).limits), str(problem), False
        k, why_whole = _whole_executors(situation, stations, k)
        processors = dict(zip(stations.names, map(int, k), strict=True))
        reasons = (why_load, why, *why_whole, *explain(stations, k, situation.running))
        return memory, Proposal(processors, reasons, feasible, pace_s=paces(stations, k, self._mean_goal(situation)))

    def _load(self, situation: Situation) -> tuple[float, str]:
        now, forecast = situation.arrivals_per_s, situation.forecast
        if forecast is None or now <= 0:
            return 1.0, f"load: {now:.4g} rows/s as it is now (no forecast)"
        ahead = forecast.upper_per_s(self.level)[: self.lead_steps]
        peak = max(float(ahead.max()), now)
        return peak / now, (
            f"load: {peak:.4g} rows/s, the {self.level:.0%} forecast of the next "
            f"{len(ahead) * forecast.step_s:g} s (now {now:.4g})"
        )

    def _cautious(self, situation: Situation, factor: float) -> Stations:
        """The stations under the load to plan for, each service rate lowered by its uncertainty."""
        stations = stations_of(situation, factor)
        if not situation.service_rsd:
            return stations
        errors = np.array([situation.service_rsd.get(name, 0.0) for name in stations.names])
        lowered = stations.laws.service_per_s * np.maximum(1.0 - float(ndtri(self.level)) * errors, 0.25)
        return replace(stations, laws=stations.laws._replace(service_per_s=lowered))

    def _mean_goal(self, situation: Situation) -> float | None:
        mean = situation.goal.mean_s
        return None if mean is None else mean * (1 - self.margin)

    def _plan(self, memory: Memory, situation: Situation, stations: Stations) -> tuple[Counts, str, bool]:
        bounds = {
            what: bound * (1 - self.margin) / max(memory.bias, 1.0)
            for what, bound in situation.goal.latency_bounds.items()
        }
        limits = _bounded(situation).limits
        if not bounds:
            k = min_within_knee(stations, limits)
            return k, f"no latency goal: {int(k.sum())} processors, within 1.5x of the best E[T] there is", True
        ceiling = limits.budget or ample(stations, limits)
        require_enough(stations, limits, ceiling)
        path = _path_that_keeps(situation, stations, limits, ceiling, bounds)
        count = _fewest_steps(situation, stations, path, bounds)
        k = path.after(count)
        reached = _reached(situation, stations, k, bounds)
        told = ", ".join(f"{what} {reached[what]:.4g} s (goal {bound:.4g} s)" for what, bound in bounds.items())
        kept = all(reached[what] <= bound for what, bound in bounds.items())
        why = f"{int(k.sum())} processors: {told}; {self.margin:.0%} in reserve, model bias {memory.bias:.2f}"
        if not kept:
            why += "; the goal is out of reach within the limits"
        return k, why, kept


def _with_bias(memory: Memory, situation: Situation) -> Memory:
    """Compare what was measured with what the model says of what runs; only where the model says it is stable."""
    measured, names = situation.observation.sojourn, situation.topology.names
    if measured is None or not all(name in situation.running for name in names):
        return memory
    k = np.array([situation.running[name] for name in names], dtype=np.int64)
    predicted = stations_of(situation).total_mean_s(k)
    if not (math.isfinite(predicted) and predicted > 0):
        return memory
    ratio = min(max(measured.mean_s / predicted, 0.25), 4.0)
    return Memory(0.9 * memory.bias + 0.1 * ratio)


def _bounded(situation: Situation) -> Situation:
    """With a cost ceiling turned into a budget of processors."""
    cost, limits = situation.goal.cost_per_hour, situation.limits
    if cost is None or limits.price_per_slot_hour == 0:
        return situation
    affordable = max(int(cost / limits.price_per_slot_hour + 1e-9), 1)
    budget = affordable if limits.budget is None else min(limits.budget, affordable)
    return replace(situation, limits=replace(limits, budget=budget))


def _path_that_keeps(
    situation: Situation, stations: Stations, limits: Limits, ceiling: int, bounds: dict[str, float]
) -> GreedyPath:
    """A greedy path long enough to keep the bounds, if any is: doubled from what the least bound asks of the mean.

    No quantile asked for lies below the mean by much, so the mean must come near the least bound in any case.
    """
    path = greedy_path(stations, limits, ceiling, until_mean_s=min(bounds.values()))
    while not _keeps(situation, stations, path.after(len(path.steps)), bounds):
        reached = int(path.start.sum()) + len(path.steps)
        if reached >= ceiling:
            break
        path = greedy_path(stations, limits, min(2 * reached, ceiling))
        if int(path.start.sum()) + len(path.steps) <= reached:
            break
    return path


def _fewest_steps(situation: Situation, stations: Stations, path: GreedyPath, bounds: dict[str, float]) -> int:
    """Bisection along the nested greedy allocations: mean and quantiles fall all the way."""
    low, high = 0, len(path.steps)
    while low < high:
        middle = (low + high) // 2
        if _keeps(situation, stations, path.after(middle), bounds):
            high = middle
        else:
            low = middle + 1
    return low


def _keeps(situation: Situation, stations: Stations, k: Counts, bounds: dict[str, float]) -> bool:
    reached = _reached(situation, stations, k, bounds)
    return all(reached[what] <= bound for what, bound in bounds.items())


def _reached(situation: Situation, stations: Stations, k: Counts, bounds: dict[str, float]) -> dict[str, float]:
    """What the model gives for the bounds asked for; quantiles cost more than the mean, so only where they are."""
    if bounds.keys() == {"mean"}:
        return {"mean": stations.total_mean_s(k)}
    return quantile_s(situation.topology, stations, k)


def _whole_executors(situation: Situation, stations: Stations, k: Counts) -> tuple[Counts, tuple[str, ...]]:
    """Round the total up to whole nodes' worth of slots and let the greedy use what is paid for anyway."""
    limits = _bounded(situation).limits
    unit = limits.slots_per_executor * limits.executors_per_node
    total = int(k.sum())
    whole = math.ceil(total / unit) * unit
    if whole == total or (limits.budget is not None and whole > limits.budget):
        return k, ()
    path = greedy_path(stations, limits, whole)
    grown = np.maximum(path.after(min(whole - int(path.start.sum()), len(path.steps))), k)
    if int(grown.sum()) > whole:
        return k, ()
    return grown, (f"{total} -> {int(grown.sum())} processors: whole nodes of {unit} slots, used since paid for",)
