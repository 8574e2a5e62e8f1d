"""sluicegate's own policy, which combines methods of the papers in these steps:

1. load       the forecast over the time until a change takes effect (uncertainty-aware scheduling), else the current
              load: its mean, or, if larger, its quantile less the part that may queue within the latency goal; plus the
              rate needed to drain a backlog within ``catch_up_s``
2. capacity   each learned service rate lowered by z standard errors (the model's own uncertainty)
3. processors DRS's greedy under each operator's latency model, until mean and quantile goals are met with a margin;
              never beyond the micro-batch law's minimum
4. whole      the total is rounded up to whole executors and nodes, and the slots that are paid for anyway are used
5. cost       a cost ceiling bounds the total; if both goals cannot be met, cost wins and the reason gives the latency
6. evenness   stateless instances of unequal speed get rows in proportion to it (Mc-Stream's redirection)
7. cores      batches must fit the cores of the nodes (``node_cores``): rarer batches, no more tasks, another node, or
              the reason gives the number of cores that would suffice
8. feedback   if measured latency exceeds the model's for the running allocation, the goal passed to the model shrinks
              by that ratio (DRS's regression from estimated to true latency, with one coefficient)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from sluicegate.domain import Goal, Limits, Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.errors import Infeasible
from sluicegate.model.sojourn import quantile_s
from sluicegate.model.stations import KEEPS_UP, Counts, Stations
from sluicegate.policy.demand import stations_of
from sluicegate.policy.greedy import GreedyPath, ample, greedy_path, smallest
from sluicegate.policy.node_cores import within_cores
from sluicegate.policy.pace import paced_mean_s, paces
from sluicegate.policy.papers.drs import best_effort, explain, min_within_knee, require_enough
from sluicegate.policy.papers.redirection import equally_fast, shares_by_speed
from sluicegate.policy.within_limits import affordable

_LEAST_TRUST = 0.6
"""Floor of a lowered service rate, as a share of the learned one: where rows cost little compared with the rest of a
batch their rate is very uncertain, but then it also matters little."""

_LEVELS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Memory:
    """The model's bias (measured over predicted mean sojourn, smoothed), and the last proposed paces and shares."""

    bias: float = 1.0
    pace_s: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SluicegatePolicy:
    """sluicegate's own policy.

    ``level`` is the forecast quantile and the confidence in each service rate; ``margin`` the share of a latency bound
    kept in reserve; ``lead_steps`` the number of forecast steps planned for; ``catch_up_s`` the time to drain rows
    queued beyond those that arrive within the goal; ``paced_share`` the share of the mean goal that batches may use
    by starting late (they cost less then); ``waiting_share`` the share of the least latency bound that rows may queue
    if the load is at its quantile instead of its mean; ``most_growth`` caps the forecast relative to the current load,
    against forecasts from little data. ``alpha`` is the weight of the past in measurements: none by default, since the
    forecast and the governor's window already keep noise out. ``slow_start`` is set where executors must start before
    there are more processors: only what the goal leaves after that time may queue, so that the quantile of the load
    counts in full for goals shorter than it, and batches may wait for at most ``waiting_share`` of the mean goal, since
    an executor that starts too late cannot be compensated.

                     half                                            double
        margin       no room for a slow batch                        processors for a goal 10% tighter
        catch_up_s   twice the processors for a backlog              the backlog lasts twice as long
        paced_share  more, smaller batches: more CPU time            no reserve for bursts
        waiting_share  nearly the quantile is always planned for     a burst uses up more than half of the goal
        most_growth  a forecast cannot raise the load (below 1)      a wrong first forecast triples the processors
        alpha        (at 0.5) a jump of the load is 90% seen after four looks, by when rows are late

    A goal of on-time steps alone is planned for at that quantile of the load, with the fewest processors that carry it.
    """

    level: float = 0.95
    margin: float = 0.1
    lead_steps: int = 4
    catch_up_s: float = 60.0
    paced_share: float = 0.6
    waiting_share: float = 0.3
    most_growth: float = 1.5
    alpha: float = 0.0
    slow_start: bool = False
    name: str = "sluicegate"

    def start(self) -> Memory:
        return Memory()

    def propose(self, memory: Memory, situation: Situation) -> tuple[Memory, Proposal]:
        load, why_load = self._load(situation)
        now = stations_of(situation)
        stations, why_backlog = self._with_backlog(situation, self._cautious(situation, now, load))
        bias = memory.bias if why_backlog else _bias(memory, situation, now)
        try:
            k, why, feasible = self._plan(bias, situation, stations)
        except Infeasible as problem:
            k, why, feasible = best_effort(stations, affordable(situation.goal, situation.limits)), str(problem), False
        k, why_whole = _whole_executors(situation, stations, k)
        pace_s = paces(stations, k, None if why_backlog else self._paced_goal(situation, bias))
        fitted = within_cores(situation, stations, k, pace_s, self._whole_goal(situation, bias))
        k, pace_s = fitted.processors, fitted.pace_s
        processors = dict(zip(stations.names, map(int, k), strict=True))
        reasons = (why_load, *why_backlog, why, *why_whole, *fitted.reasons, *explain(stations, k, situation.running))
        feasible = feasible and fitted.fits
        shares, why_shares = _redirected(memory.shares, situation, processors)
        proposal = Proposal(
            processors,
            (*reasons, *why_shares),
            feasible,
            shares=shares,
            pace_s=pace_s,
            more_nodes=fitted.more_nodes,
            crowded=bool(fitted.reasons),
        )
        return Memory(bias, pace_s, shares), proposal

    def _load(self, situation: Situation) -> tuple[float, str]:
        now, forecast = situation.arrivals_per_s, situation.forecast
        if forecast is None or now <= 0:
            return 1.0, f"load: {rate(now)} as it is now (no forecast)"
        level = self._level(situation)
        ahead = forecast.upper_per_s(level)[: self.lead_steps]
        upper, expected = float(ahead.max()), float(forecast.mean_per_s[: self.lead_steps].max())
        over_s = len(ahead) * forecast.step_s
        # with capacity for f, a load of u delays rows by (u/f - 1) x over_s at the end
        bound_s = min(situation.goal.latency_bounds.values(), default=0.0)
        room_s = self.waiting_share * (max(bound_s - over_s, 0.0) if self.slow_start else bound_s)
        peak = max(expected, upper / (1 + room_s / over_s))
        peak = max(min(peak, self.most_growth * now), now)
        return peak / now, (
            f"load: {rate(peak)}, the forecast of the next {over_s:g} s (now {rate(now)}; {100 * level:.4g}% "
            f"quantile {rate(upper)}, for which rows may queue {room_s:.2g} s)"
        )

    def _level(self, situation: Situation) -> float:
        """The quantile of the load to plan for: that of the on-time goal if there is no latency goal."""
        goal = situation.goal
        return goal.on_time if goal.on_time is not None and not goal.latency_bounds else self.level

    def _cautious(self, situation: Situation, now: Stations, factor: float) -> Stations:
        """The stations under the load to plan for, each service rate lowered by its uncertainty."""
        errors = np.array([situation.service_rsd.get(name, 0.0) for name in now.names])
        lowered = now.laws.service_per_s * np.maximum(1.0 - float(ndtri(self._level(situation))) * errors, _LEAST_TRUST)
        loaded = now.loaded(factor)
        return replace(loaded, laws=loaded.laws._replace(service_per_s=lowered))

    def _with_backlog(self, situation: Situation, stations: Stations) -> tuple[Stations, tuple[str, ...]]:
        """Raise arrivals by the rows queued beyond one goal's worth of arrivals, spread over ``catch_up_s``."""
        queues = np.array([situation.observation.of(name).queue_rows or 0.0 for name in stations.names])
        usual = stations.laws.arrivals_per_s * max(situation.goal.mean_s or 1.0, 1.0)
        extra = np.maximum(queues - usual, 0.0) / self.catch_up_s
        if not extra.any():
            return stations, ()
        worst = int(extra.argmax())
        laws = stations.laws._replace(arrivals_per_s=stations.laws.arrivals_per_s + extra)
        why = f"{queues[worst]:,.0f} rows wait at {stations.names[worst]}: {rate(extra[worst])} more"
        return replace(stations, laws=laws), (f"{why} for {self.catch_up_s:g} s",)

    def _paced_goal(self, situation: Situation, bias: float) -> float | None:
        """The mean latency up to which batches may be delayed: part of the goal only, the rest is a reserve for bursts.

        ``None`` (back to back) without a mean goal and while the measured mean exceeds it.
        """
        mean, measured = _mean_within(situation.goal), situation.observation.sojourn
        if mean is None or (measured is not None and measured.mean_s > mean):
            return None
        share = min(self.paced_share, self.waiting_share) if self.slow_start else self.paced_share
        return mean * share / max(bias, 1.0)

    def _whole_goal(self, situation: Situation, bias: float) -> float | None:
        """The mean latency up to which batches may be delayed if cores are short: the goal less the margin."""
        mean = _mean_within(situation.goal)
        return None if mean is None else mean * (1 - self.margin) / max(bias, 1.0)

    def _plan(self, bias: float, situation: Situation, stations: Stations) -> tuple[Counts, str, bool]:
        bounds = {
            what: bound * (1 - self.margin) / max(bias, 1.0) for what, bound in situation.goal.latency_bounds.items()
        }
        limits = affordable(situation.goal, situation.limits)
        if not bounds and situation.goal.on_time is not None:
            require_enough(stations, limits, limits.budget or ample(stations, limits))
            k = smallest(stations, limits)
            return k, f"{int(k.sum())} processors carry it, {situation.goal.on_time:.4g} of the steps on time", True
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
        why = f"{int(k.sum())} processors: {told}; {self.margin:.0%} in reserve"
        if bias != 1.0:  # as it is until a prediction was held against a measurement
            why += f", model bias {bias:.2f}"
        if not kept:
            why += "; the goal is out of reach within the limits"
        return k, why, kept


def _mean_within(goal: Goal) -> float | None:
    """The mean up to which batches may start late, for all latency goals; ``None`` without a mean goal.

    Rows wait evenly over a pace, so that at most a quantile's level over 0.5 times their mean is that quantile.

    >>> _mean_within(Goal(mean_s=4.0, p95_s=1.9)), _mean_within(Goal(mean_s=2.0, p95_s=5.0))
    (1.0, 2.0)
    """
    if goal.mean_s is None:
        return None
    quantiles = {what: bound for what, bound in goal.latency_bounds.items() if what in _LEVELS}
    return min([goal.mean_s, *(bound * 0.5 / _LEVELS[what] for what, bound in quantiles.items())])


def _redirected(
    before: Mapping[str, tuple[float, ...]], situation: Situation, processors: Mapping[str, int]
) -> tuple[dict[str, tuple[float, ...]], tuple[str, ...]]:
    """Route rows by speed for stateless operators whose instances differ in speed, while their number is unchanged.

    Shares are kept until the instances are equally fast (hysteresis): smaller differences are transient.
    """
    shares: dict[str, tuple[float, ...]] = {}
    told: list[str] = []
    for operator in situation.topology.operators:
        name, speeds = operator.name, situation.observation.of(operator.name).instance_per_s
        if operator.stateful or len(speeds) != processors[name]:
            continue
        found = shares_by_speed(speeds) or (None if equally_fast(speeds) else before.get(name))
        if found is not None and len(found) == len(speeds):
            shares[name] = found
            told.append(f"{name}: rows by speed, {', '.join(f'{s:.0%}' for s in found)}")
        elif name in before:
            told.append(f"{name}: its instances are equally fast again: rows in equal shares")
    return shares, tuple(told)


def _bias(memory: Memory, situation: Situation, stations: Stations) -> float:
    """Update the bias from measured and predicted latency of the running allocation.

    Only while all operators keep up and no rescale is under way.
    """
    measured, names = situation.observation.sojourn, situation.topology.names
    if measured is None or situation.observation.rescaling or not all(name in situation.running for name in names):
        return memory.bias
    k = np.array([situation.running[name] for name in names], dtype=np.int64)
    predicted = paced_mean_s(stations, k, memory.pace_s)
    if not (math.isfinite(predicted) and predicted > 0) or (stations.offered >= KEEPS_UP * k).any():
        return memory.bias
    ratio = min(max(measured.mean_s / predicted, 0.5), 3.0)
    return 0.95 * memory.bias + 0.05 * ratio


def _path_that_keeps(
    situation: Situation, stations: Stations, limits: Limits, ceiling: int, bounds: dict[str, float]
) -> GreedyPath:
    """A greedy path long enough to meet the bounds, if possible: starts at a mean of the least bound, then doubles.

    No quantile in use lies far below the mean, so the mean must come near the least bound in any case.
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
    """The fewest steps that meet the bounds, by bisection: mean and quantiles fall along the nested allocations.

    A path that was grown for the mean alone ends where that is met.
    """
    if bounds.keys() == {"mean"}:
        return len(path.steps)
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
    """The predicted values of the bounds; quantiles are computed only if needed, as they cost more than the mean."""
    if bounds.keys() == {"mean"}:
        return {"mean": stations.total_mean_s(k)}
    return quantile_s(situation.topology, stations, k)


def _whole_executors(situation: Situation, stations: Stations, k: Counts) -> tuple[Counts, tuple[str, ...]]:
    """Round the total up to whole nodes' worth of slots and let the greedy use the slots that are paid for anyway."""
    limits = affordable(situation.goal, situation.limits)
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
