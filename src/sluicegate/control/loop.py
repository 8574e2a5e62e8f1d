"""One tick of the loop: measure -> model, forecast -> plan -> govern -> place.

Pure: what it knows comes in (state, observation, now), what it decided goes out (state, decision). The simulator and
Spark drive the same function; only the shell around it differs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from sluicegate.control.capacity import Places, capacity_for
from sluicegate.control.governor import govern
from sluicegate.control.groups import owners_for
from sluicegate.control.rules import Ledger, Request, Rules
from sluicegate.domain import (
    Change,
    Decision,
    Forecast,
    Goal,
    Limits,
    Observation,
    Proposal,
    Refusal,
    Situation,
    Topology,
)
from sluicegate.forecast.forecaster import Forecaster
from sluicegate.measure.gauges import Gauges
from sluicegate.measure.smoothing import Smoothing
from sluicegate.model.learned import Learned
from sluicegate.model.traffic import pipeline_rate
from sluicegate.place.placer import Placer
from sluicegate.policy.demand import stations_of
from sluicegate.policy.policy import Policy

_PACE_MOVED = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user chooses, as plain data."""

    topology: Topology
    policy: Policy[Any]
    goal: Goal = field(default_factory=Goal)
    limits: Limits = field(default_factory=Limits)
    rules: Rules = field(default_factory=Rules)
    smoothing: Smoothing = field(default_factory=Smoothing)
    forecaster: Forecaster[Any] | None = None
    forecast_steps: int = 12
    placer: Placer | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rates seen since the forecaster last learned one: it learns their mean once a step."""

    since_s: float
    total: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class LoopState:
    """All the loop remembers between ticks; nothing else does."""

    settings: Settings
    gauges: Gauges
    learned: Learned
    plan_memory: Any
    forecast_memory: Any = None
    forecast: Forecast | None = None
    bucket: Bucket | None = None
    ledger: Ledger = field(default_factory=Ledger)
    places: Places = field(default_factory=dict)
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pace_s: Mapping[str, float] = field(default_factory=dict)
    situation: Situation | None = None
    """What was last planned for; ``None`` before anything could be."""


def start(settings: Settings) -> LoopState:
    """The state before the first tick."""
    return LoopState(
        settings=settings,
        gauges=Gauges(settings.topology.names, settings.smoothing),
        learned=Learned.start(settings.topology),
        plan_memory=settings.policy.start(),
        forecast_memory=settings.forecaster.start() if settings.forecaster else None,
    )


def tick(state: LoopState, observation: Observation, now_s: float) -> tuple[LoopState, Decision]:
    """One step of the loop.

    >>> from sluicegate.domain import Edge, Operator
    >>> from sluicegate.policy.papers.drs import Drs
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> state = start(Settings(one, Drs(), Goal(mean_s=0.2), rules=Rules.none()))
    >>> state, decision = tick(state, Observation(0.0, 25.0, {"a": 1}), now_s=0.0)
    >>> dict(decision.running), decision.rescales[0].reason
    ({'a': 4}, '1 -> 4 at 250% busy')
    """
    gauges, seen = state.gauges.read(observation)
    state = replace(state, gauges=gauges, learned=state.learned.after(observation, seen))
    if seen.arrivals_per_s is None or not all(name in seen.running for name in state.settings.topology.names):
        why = "no arrival rate was measured" if seen.arrivals_per_s is None else "some operators do not run yet"
        return state, Decision(now_s, seen.asked, refusals=(Refusal("metrics", f"{why}: what runs stays"),))
    state = _forecast(state, observation, now_s)
    situation = _situation(state, seen, pipeline_rate(state.settings.topology, seen.arrivals_per_s), now_s)
    memory, proposal = state.settings.policy.propose(state.plan_memory, situation)
    return _act(state, memory, situation, proposal)


def _forecast(state: LoopState, observation: Observation, now_s: float) -> LoopState:
    """Feed the forecaster the mean rate of each of its steps (raw, not smoothed), and ask it once a step."""
    forecaster, rate = state.settings.forecaster, observation.arrivals_per_s
    if forecaster is None or rate is None:
        return state
    before = state.bucket or Bucket(now_s)
    bucket = Bucket(before.since_s, before.total + rate, before.count + 1)
    # a tick that comes a moment early still closes its step
    if state.bucket is not None and now_s - bucket.since_s < forecaster.step_s * 0.999:
        return replace(state, bucket=bucket)
    mean = pipeline_rate(state.settings.topology, bucket.total / bucket.count)
    memory = forecaster.learn(state.forecast_memory, mean)
    forecast = forecaster.forecast(memory, state.settings.forecast_steps)
    return replace(state, forecast_memory=memory, forecast=forecast, bucket=Bucket(now_s))


def _situation(state: LoopState, seen: Observation, rate_per_s: float, now_s: float) -> Situation:
    settings, names = state.settings, state.settings.topology.names
    arrivals = dict(zip(names, (state.learned.visits * rate_per_s).tolist(), strict=True))
    return Situation(
        now_s,
        state.learned.topology,
        seen,
        rate_per_s,
        arrivals,
        settings.goal,
        settings.limits,
        state.forecast,
        state.learned.service_rsd,
        state.learned.nodes.cores,
    )


def _act(state: LoopState, memory: Any, situation: Situation, proposal: Proposal) -> tuple[LoopState, Decision]:
    """Let the governor judge the proposal, and place what moves."""
    settings = state.settings
    request = replace(_request(situation, proposal.processors), crowded=proposal.crowded)
    ledger, verdict = govern(state.ledger, request, settings.rules, settings.limits)
    late = tuple(Refusal("overdue", why) for why in situation.observation.overdue)
    decision = Decision(
        at_s=situation.now_s,
        running=verdict.running,
        rescales=verdict.rescales,
        refusals=(*verdict.refusals, *late),
        reasons=proposal.reasons,
        proposal=proposal,
        shares=proposal.shares,
        pace_s=proposal.pace_s,
    )
    ledger, decision = _with_capacity(state, ledger, situation, proposal, decision)
    decision = _with_changes(state, _with_groups(situation, decision))
    return (
        replace(
            state,
            plan_memory=memory,
            ledger=ledger,
            situation=situation,
            places=decision.places,
            shares=decision.shares,
            pace_s=decision.pace_s,
        ),
        decision,
    )


def _with_capacity(
    state: LoopState, ledger: Ledger, situation: Situation, proposal: Proposal, decision: Decision
) -> tuple[Ledger, Decision]:
    """Executors, nodes and places for what was decided, where there are any to decide on."""
    fleet, settings = situation.observation.fleet, state.settings
    if fleet is None or settings.placer is None:
        return ledger, decision
    running = decision.running
    ledger, found = capacity_for(
        ledger,
        situation.now_s,
        settings.topology,
        settings.placer,
        running,
        fleet,
        state.places,
        proposal.more_nodes,
    )
    return ledger, replace(
        decision,
        executors=found.executors,
        nodes=found.nodes,
        leaving=found.leaving,
        places=found.places,
        changes=found.changes,
    )


def _with_groups(situation: Situation, decision: Decision) -> Decision:
    """The owners of key groups for what was decided; they stay while a rescale is under way."""
    seen, groups, changes = situation.observation, dict[str, tuple[int, ...]](), list[Change]()
    for name, before in seen.groups.items():
        loads = () if seen.rescaling else seen.of(name).group_s
        owners, why = owners_for(before, len(before), decision.running[name], loads)
        groups[name] = owners
        if owners != tuple(before):
            moved = sum(a != b for a, b in zip(before, owners, strict=True))
            changes.append(Change(f"key groups of {name}", "as they were", f"{moved} moved", why))
    return replace(decision, groups=groups, changes=(*decision.changes, *changes))


def _with_changes(state: LoopState, decision: Decision) -> Decision:
    """Shares that are given or withdrawn, and paces that move by more than a tenth, as changes with their reasons."""
    changes = [
        Change(f"shares of {name}", _shares(state.shares.get(name)), _shares(decision.shares.get(name)), why)
        for name in dict.fromkeys((*state.shares, *decision.shares))
        if state.shares.get(name) != decision.shares.get(name)
        for why in [next((r for r in decision.reasons if r.startswith(f"{name}: ")), "as the policy proposes")]
    ]
    for name, pace in decision.pace_s.items():
        before = state.pace_s.get(name, 0.0)
        if not _same_pace(pace, before):
            why = "batches start as rarely as the promise allows" if pace else "batches start back to back"
            changes.append(Change(f"pace of {name}", f"{before:.3g} s", f"{pace:.3g} s", why))
    known = {name: state.pace_s.get(name, 0.0) for name in decision.pace_s}
    kept = {name: known[name] if _same_pace(p, known[name]) else p for name, p in decision.pace_s.items()}
    return replace(decision, pace_s=kept, changes=(*decision.changes, *changes))


def _same_pace(pace_s: float, before_s: float) -> bool:
    """A pace that moved by a few percent is not worth a new plan."""
    return abs(pace_s - before_s) <= _PACE_MOVED * max(before_s, 0.05)


def _shares(shares: tuple[float, ...] | None) -> str:
    return "equal" if not shares else ", ".join(f"{share:.0%}" for share in shares)


def _request(situation: Situation, want: Mapping[str, int]) -> Request:
    operators, arrivals = situation.topology.operators, situation.operator_arrivals_per_s
    have = {o.name: situation.running[o.name] for o in operators}
    then = {name: max(want.get(name, count), 1) for name, count in have.items()}
    offered = {o.name: arrivals[o.name] / o.service_per_s for o in operators}
    busiest = max(offered[name] / count for name, count in then.items())
    return Request(
        now_s=situation.now_s,
        observed_at_s=situation.observation.at_s,
        arrivals_per_s=situation.arrivals_per_s,
        rescaling=situation.observation.rescaling,
        starting=situation.observation.starting,
        unmeasured=situation.observation.unmeasured,
        asked=situation.observation.asked,
        have=have,
        want=want,
        utilisation={name: offered[name] / count for name, count in have.items()},
        late=lateness(situation),
        sojourns_s=partial(_sojourns, situation, have, then),
        capacity_want_per_s=situation.arrivals_per_s / busiest if busiest > 0 else math.inf,
    )


def _sojourns(situation: Situation, have: Mapping[str, int], then: Mapping[str, int]) -> tuple[float, float]:
    stations = stations_of(situation)
    before, after = (np.array(list(k.values()), dtype=np.int64) for k in (have, then))
    return stations.total_mean_s(before), stations.total_mean_s(after)


def lateness(situation: Situation) -> float | None:
    """The worst of the measured latencies over their bounds; above 1 the promise is broken."""
    sojourn = situation.observation.sojourn
    if sojourn is None:
        return None
    measured = {"mean": sojourn.mean_s, "p50": sojourn.p50_s, "p95": sojourn.p95_s, "p99": sojourn.p99_s}
    ratios = [
        value / bound for what, bound in situation.goal.latency_bounds.items() if (value := measured[what]) is not None
    ]
    return max(ratios, default=None)
