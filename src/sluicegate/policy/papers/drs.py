"""DRS: optimal processors per operator by queueing theory (algorithms 1, 2 and the schedulers for problems 6 and 8).

Problem 6: at most K_max processors, least E[T]           -> ``assign_processors``
Problem 8: E[T] at most T_max, fewest processors           -> ``min_processors``

Our reading where the paper errs: algorithm 1 stops at K_max (line 7 goes one beyond); the bound that algorithm 2
checks first counts visits, sum of (lambda_i/lambda_0)/mu_i, and fails on >=, as at equality the loop would never end;
the greedy's allocations are nested, so one pass replaces a fresh run for every K.

The problem 8 scheduler starts from the model and then follows the measured latency: a model that underestimates would
otherwise never add anything. Above T_max it adds at least one processor, below T_min it removes at least one, in
between it keeps the total and only redistributes processors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sluicegate.domain import Limits, Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.errors import Infeasible
from sluicegate.model.stations import KEEPS_UP, Counts, Stations
from sluicegate.policy.demand import stations_of
from sluicegate.policy.greedy import ample, greedy_path, smallest

_RELAXED_SHARE = 0.45
_DEFAULT_STRETCH = 1.5


def assign_processors(stations: Stations, budget: int, limits: Limits | None = None) -> Counts:
    """Algorithm 1: ``budget`` processors with the least E[T]; fewer if more would not help (micro-batches)."""
    limits = limits or Limits()
    require_enough(stations, limits, budget)
    path = greedy_path(stations, limits, budget)
    return path.after(len(path.steps))


def require_enough(stations: Stations, limits: Limits, budget: int) -> None:
    """Raise ``Infeasible`` if ``budget`` cannot keep every operator stable."""
    least = int(smallest(stations, limits).sum())
    if least > budget:
        raise Infeasible(f"{least:,} processors are needed to keep up, {budget:,} are allowed: raise the budget")


def min_processors(stations: Stations, t_max_s: float, limits: Limits | None = None) -> Counts:
    """Algorithm 2: the fewest processors with E[T] <= ``t_max_s``."""
    limits = limits or Limits()
    most = limits.budget or ample(stations, limits)
    bound = no_queue_bound_s(stations)
    if bound >= t_max_s:
        raise Infeasible(f"mean {t_max_s:g} s is out of reach: service alone takes {bound:.4g} s; relax the goal")
    require_enough(stations, limits, most)
    path = greedy_path(stations, limits, most, until_mean_s=t_max_s)
    k = path.after(len(path.steps))
    reached = stations.total_mean_s(k)
    if reached > t_max_s * (1 + 1e-9):
        raise Infeasible(
            f"mean {t_max_s:g} s is out of reach: {int(k.sum()):,} processors give {reached:.4g} s and "
            f"{'the budget ends there' if int(k.sum()) >= most else 'more do not help'}; raise the budget or the goal"
        )
    return k


def no_queue_bound_s(stations: Stations) -> float:
    """Service time without queueing, a lower bound of E[T] for any k (zero for micro-batches, where k changes it)."""
    queueing = stations.laws.overhead_s == 0
    return float(np.sum((stations.weights / stations.laws.service_per_s)[queueing]))


@dataclass(frozen=True, slots=True)
class Drs:
    """DRS as a policy. ``general`` uses GI/G/k instead of M/M/k, ``batch`` the micro-batch law where it applies.

    A budget alone is problem 6; a mean goal is problem 8, with ``goal.relaxed_s`` as T_min (0.45 T_max if it is not
    given, the paper's ratio). With neither, the fewest processors that keep E[T] within 1.5 times the time without
    any queue.

    The paper's configuration as options: ``t_max_s`` and ``t_min_s`` override the goal, ``k_max`` caps the budget;
    ``t_ra_s`` is the least time between two re-allocations (infinite: only recommend), ``alpha`` or a window of ``w``
    observations smooths measurements, ``n_m`` learns from every n-th batch, ``t_m_s`` is the polling interval.
    """

    general: bool = False
    batch: bool = False
    name: str = "drs"
    t_ra_s: float | None = None
    t_max_s: float | None = None
    t_min_s: float | None = None
    k_max: int | None = None
    alpha: float | None = None
    w: int | None = None
    n_m: int = 1
    t_m_s: float | None = None

    def __post_init__(self) -> None:
        for what in ("t_max_s", "t_min_s", "t_m_s"):
            if (value := getattr(self, what)) is not None:
                require_number(value, what, above=True)
        require(self.t_ra_s is None or self.t_ra_s >= 0, f"t_ra_s is {self.t_ra_s}: give seconds, 0 or more")
        for what in ("k_max", "n_m", "w"):
            value = getattr(self, what)
            whole = value is None or (isinstance(value, int) and value >= 1)
            require(whole, f"{what} is {value}: give a whole number, 1 or more")
        require(self.alpha is None or self.w is None, "alpha and w: give one of them")
        both = self.t_max_s is not None and self.t_min_s is not None
        require(not both or (self.t_min_s or 0) < (self.t_max_s or 0), "t_min_s must be below t_max_s")

    def start(self) -> None:
        return None

    def propose(self, memory: None, situation: Situation) -> tuple[None, Proposal]:
        stations = stations_of(situation) if self.batch else stations_of(situation).queueing()
        stations = stations if self.general else stations.markovian()
        situation = self._configured(situation)
        try:
            k, why = self._plan(stations, situation)
            feasible = True
        except Infeasible as problem:
            k, why, feasible = best_effort(stations, situation.limits), str(problem), False
        processors = dict(zip(stations.names, map(int, k), strict=True))
        return None, Proposal(processors, (why, *explain(stations, k, situation.running)), feasible)

    def _configured(self, situation: Situation) -> Situation:
        """The situation with the options applied to goal and budget."""
        goal, limits = situation.goal, situation.limits
        if self.t_max_s is not None or self.t_min_s is not None:
            t_max_s = goal.mean_s if self.t_max_s is None else self.t_max_s
            relaxed_s = goal.relaxed_s if self.t_min_s is None else self.t_min_s
            goal = replace(goal, mean_s=t_max_s, relaxed_s=relaxed_s)
        if self.k_max is not None:
            limits = replace(limits, budget=min(self.k_max, limits.budget or self.k_max))
        return replace(situation, goal=goal, limits=limits)

    def _plan(self, stations: Stations, situation: Situation) -> tuple[Counts, str]:
        goal, limits = situation.goal, situation.limits
        if goal.mean_s is not None:
            return self._for_latency(stations, situation, goal.mean_s)
        if limits.budget is not None:
            k = assign_processors(stations, limits.budget, limits)
            return (
                k,
                f"algorithm 1: {int(k.sum())} of {limits.budget} processors, E[T] {stations.total_mean_s(k):.4g} s",
            )
        return self._near_no_queue(stations, limits)

    def _for_latency(self, stations: Stations, situation: Situation, t_max_s: float) -> tuple[Counts, str]:
        limits, measured = situation.limits, situation.observation.sojourn
        running = total_running(situation)
        if measured is None or running is None:
            k = min_processors(stations, t_max_s, limits)
            return (
                k,
                f"algorithm 2: {int(k.sum())} processors for E[T] {stations.total_mean_s(k):.4g} s <= {t_max_s:g} s",
            )
        now_s, relaxed_s = measured.mean_s, situation.goal.relaxed_s or _RELAXED_SHARE * t_max_s
        if now_s > t_max_s:
            return self._add(stations, limits, t_max_s, running, now_s)
        if now_s < relaxed_s:
            return self._remove(stations, situation, t_max_s, running, now_s)
        total = max(running, int(smallest(stations, limits).sum()))
        total = total if limits.budget is None else min(total, limits.budget)
        k = assign_processors(stations, total, limits)
        kept = _kept(running, int(k.sum())) if total >= running else f"{running} -> {total}, the budget"
        return k, f"measured E[T] {now_s:.4g} s is between {relaxed_s:.4g} and {t_max_s:g} s: {kept}"

    def _add(
        self, stations: Stations, limits: Limits, t_max_s: float, running: int, now_s: float
    ) -> tuple[Counts, str]:
        modelled = int(min_processors(stations, t_max_s, limits).sum())
        total = max(modelled, running + 1)
        total = total if limits.budget is None else min(total, limits.budget)
        k = assign_processors(stations, total, limits)
        told = f"measured E[T] {now_s:.4g} s > {t_max_s:g} s: {running} -> {int(k.sum())} processors"
        short = f"; {total} would do no better by the law" if int(k.sum()) < total else ""
        return k, f"{told} (model asks {modelled}){short}"

    def _remove(
        self, stations: Stations, situation: Situation, t_max_s: float, running: int, now_s: float
    ) -> tuple[Counts, str]:
        """Reverse of algorithm 2, with the model scaled by its error at the running allocation."""
        limits = situation.limits
        here = np.array([situation.running[name] for name in stations.names], dtype=np.int64)
        predicted = stations.total_mean_s(here)
        off = now_s / predicted if predicted > 0 and math.isfinite(predicted) else 1.0
        target = max(t_max_s / max(off, 1.0), now_s / max(off, 1e-9))
        try:
            enough = int(min_processors(stations, target, limits).sum())
        except Infeasible:  # the model overestimates: what it calls out of reach is measured
            enough = running - 1
        total = max(min(enough, running - 1), int(smallest(stations, limits).sum()))
        k = assign_processors(stations, total, limits)
        return k, f"measured E[T] {now_s:.4g} s is below T_min: {running} -> {int(k.sum())} processors"

    def _near_no_queue(self, stations: Stations, limits: Limits) -> tuple[Counts, str]:
        if stations.laws.overhead_s.any():
            k = min_within_knee(stations, limits)
            return k, f"no goal given: {int(k.sum())} processors, within {_DEFAULT_STRETCH:g}x of the best E[T]"
        bound = no_queue_bound_s(stations)
        k = min_processors(stations, _DEFAULT_STRETCH * bound, limits) if bound > 0 else smallest(stations, limits)
        return k, (
            f"no goal and no budget given: {int(k.sum())} processors keep E[T] within {_DEFAULT_STRETCH:g}x of the "
            f"{bound:.4g} s that service alone takes"
        )


def _kept(running: int, total: int) -> str:
    if total == running:
        return f"keep {running} in all"
    if total < running:
        return f"{running} -> {total} processors, more do no better by the law"
    return f"{running} -> {total} processors, fewer cannot keep up"


def min_within_knee(stations: Stations, limits: Limits) -> Counts:
    """The fewest processors with E[T] within 1.5 times the least possible."""
    most = limits.budget or ample(stations, limits)
    require_enough(stations, limits, most)
    path = greedy_path(stations, limits, most)
    best = stations.total_mean_s(path.after(len(path.steps)))
    near = greedy_path(stations, limits, most, until_mean_s=_DEFAULT_STRETCH * best)
    return near.after(len(near.steps))


def best_effort(stations: Stations, limits: Limits) -> Counts:
    """The allocation if the goal cannot be met: the least E[T] within the limits, every operator at least its least.

    An operator whose own limit is too low counts with the load that it can carry, so that the others still get enough.
    """
    most = limits.budget or ample(stations, limits)
    carried = _within_their_limits(stations, limits)
    try:
        return assign_processors(carried, most, limits)
    except Infeasible:
        return share_out(carried, limits, most)


def _within_their_limits(stations: Stations, limits: Limits) -> Stations:
    laws = stations.laws
    most = np.array([limits.most_for(name) for name in stations.names], dtype=np.float64)
    arrivals = np.minimum(laws.arrivals_per_s, KEEPS_UP * most * laws.service_per_s)
    return replace(stations, laws=laws._replace(arrivals_per_s=arrivals))


def share_out(stations: Stations, limits: Limits, total: int) -> Counts:
    """Divide ``total`` processors if the pipeline cannot keep up: the next one always goes to the operator that carries
    the least part of its load, which maximises the smallest part."""
    most = np.array([limits.most_for(name) for name in stations.names], dtype=np.int64)
    offered = stations.offered
    least = np.array([max(limits.least_for(name), 1) for name in stations.names], dtype=np.int64)
    spare = max(total - int(least.sum()), 0)
    share = offered / offered.sum() if offered.sum() > 0 else np.zeros_like(offered)
    k = np.maximum(np.minimum(np.floor(np.nan_to_num(share) * spare).astype(np.int64), most), least)
    for _ in range(total - int(k.sum())):
        part = np.where((k < most) & (offered > 0), k / np.maximum(offered, 1e-300), np.inf)
        if not np.isfinite(part).any():
            break
        k[int(part.argmin())] += 1
    return k


def explain(stations: Stations, k: Counts, running: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """One line of explanation per operator that differs from ``running`` (for all while nothing runs)."""
    counts, laws = k.tolist(), stations.laws
    changed = [i for i, name in enumerate(stations.names) if not running or running.get(name) != counts[i]]
    if not changed:
        return ()
    mean, busy = stations.mean_s(k).tolist(), (stations.offered / k).tolist()
    arrivals, service = laws.arrivals_per_s.tolist(), laws.service_per_s.tolist()
    return tuple(
        f"{stations.names[i]}: {counts[i]} processors carry {rate(arrivals[i])} at {rate(service[i])} "
        f"each ({busy[i]:.0%} busy), E[T] {mean[i]:.4g} s"
        for i in changed
    )


def total_running(situation: Situation) -> int | None:
    """The total of running processors, or ``None`` while some operator does not run."""
    names = situation.topology.names
    return sum(situation.running[n] for n in names) if all(n in situation.running for n in names) else None
