"""One tick of the control loop: measure -> model, forecast -> plan -> govern -> place.

A pure function of (state, observation, now) that returns (state, decision). The simulator and Spark call the same
function; only the code around it differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from sluicegate.control.capacity import Capacity, Places, capacity_for
from sluicegate.control.governor import govern, govern_pace
from sluicegate.control.group_count import GroupsAsked, with_group_counts
from sluicegate.control.groups import GroupsSeen, moved_for
from sluicegate.control.request import lateness, request_for, with_changes, within_hot_keys
from sluicegate.control.rules import Ledger, Rules
from sluicegate.control.slots import SlotMapping, slots_and_places
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
from sluicegate.measure import Gauges, Smoothing
from sluicegate.model.learned import Learned
from sluicegate.model.traffic import pipeline_rate
from sluicegate.place.placer import Placer
from sluicegate.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Settings:
    """Configuration of the loop: topology, policy, goal, limits, rules, forecaster and placer."""

    topology: Topology
    policy: Policy[Any]
    goal: Goal = field(default_factory=Goal)
    limits: Limits = field(default_factory=Limits)
    rules: Rules = field(default_factory=Rules)
    smoothing: Smoothing = field(default_factory=Smoothing)
    forecaster: Forecaster[Any] | None = None
    forecast_steps: int = 12
    placer: Placer | None = None
    slots: SlotMapping | None = None
    """Set if executors are the slots of a planner that packs threads."""
    every_nth_batch: int = 1
    """The models learn from every n-th batch of an observation (DRS's N_m)."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Sum and count of the rates since the forecaster's last step; it learns their mean once a step."""

    since_s: float
    total: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class LoopState:
    """The complete state of the loop between ticks."""

    settings: Settings
    gauges: Gauges
    learned: Learned
    plan_memory: Any
    forecast_memory: Any = None
    forecast: Forecast | None = None
    bucket: Bucket | None = None
    ledger: Ledger = field(default_factory=Ledger)
    places: Places = field(default_factory=dict)
    groups: Mapping[str, GroupsSeen] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pace_s: Mapping[str, float] = field(default_factory=dict)
    key_groups: Mapping[str, GroupsAsked] = field(default_factory=dict)
    placing: Any = None
    asked_for: tuple[Change, ...] = ()
    """Changes of executors, nodes and places that the last tick requested, also those requested before."""
    situation: Situation | None = None
    """The situation last planned for; ``None`` before the first plan."""


def start(settings: Settings, history_per_s: Sequence[float] = ()) -> LoopState:
    """The initial state; ``history_per_s`` is the load before the first tick, one rate per step of the forecaster.

    >>> from sluicegate.domain import Edge, Operator
    >>> from sluicegate.forecast.catalogue import forecaster
    >>> from sluicegate.policy.papers.drs import Drs
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> settings = Settings(one, Drs(), forecaster=forecaster("arma", step_s=1.0))
    >>> start(settings, [20.0 + step % 7 for step in range(100)]).forecast is not None, start(settings).forecast
    (True, None)
    """
    memory, forecaster = None, settings.forecaster
    if forecaster is not None:
        memory = forecaster.start()
        for rate_per_s in history_per_s:
            memory = forecaster.learn(memory, rate_per_s)
    return LoopState(
        settings=settings,
        gauges=Gauges(settings.topology.names, settings.smoothing),
        learned=Learned.start(settings.topology),
        plan_memory=settings.policy.start(),
        forecast_memory=memory,
        forecast=forecaster.forecast(memory, settings.forecast_steps) if forecaster and len(history_per_s) else None,
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
    observation = _sampled(observation, state.settings.every_nth_batch)
    gauges, seen = state.gauges.read(observation)
    state = replace(state, gauges=gauges, learned=state.learned.after(observation, seen))
    if seen.arrivals_per_s is None or not all(name in seen.running for name in state.settings.topology.names):
        why = "no arrival rate was measured" if seen.arrivals_per_s is None else "some operators do not run yet"
        return state, Decision(now_s, seen.asked, refusals=(Refusal("metrics", f"{why}: what runs stays"),))
    state = _forecast(state, observation, now_s)
    situation = _situation(state, seen, pipeline_rate(state.settings.topology, seen.arrivals_per_s), now_s)
    memory, proposal = state.settings.policy.propose(state.plan_memory, situation)
    return _act(state, memory, situation, proposal)


def _sampled(observation: Observation, every_nth: int) -> Observation:
    """The observation with only every n-th batch of each operator."""
    if every_nth <= 1:
        return observation
    operators = {name: replace(o, batches=o.batches[::every_nth]) for name, o in observation.operators.items()}
    return replace(observation, operators=operators)


def _forecast(state: LoopState, observation: Observation, now_s: float) -> LoopState:
    """Feed the forecaster the mean rate of each of its steps (raw, not smoothed), and forecast once a step."""
    forecaster, rate = state.settings.forecaster, observation.arrivals_per_s
    if forecaster is None or rate is None:
        return state
    before = state.bucket or Bucket(now_s)
    bucket = Bucket(before.since_s, before.total + rate, before.count + 1)
    # tolerate a tick that is slightly early
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
    """Apply the governor's rules to the proposal, then decide executors, nodes, placement and key groups for it."""
    settings = state.settings
    helpful, hot = within_hot_keys(situation, proposal.processors)
    asked, kept, more_groups, notes = with_group_counts(state.key_groups, situation, helpful)
    proposal = replace(proposal, processors=kept)
    request = replace(request_for(situation, proposal.processors), crowded=proposal.crowded)
    ledger, verdict = govern(state.ledger, request, settings.rules, settings.limits)
    late = tuple(Refusal("overdue", why) for why in situation.observation.overdue)
    decision = Decision(
        at_s=situation.now_s,
        running=verdict.running,
        rescales=verdict.rescales,
        refusals=(*hot, *notes, *verdict.refusals, *late),
        reasons=proposal.reasons,
        proposal=proposal,
        shares=proposal.shares,
        key_groups={name: one.count for name, one in asked.items() if one.count},
    )
    ledger, paces = govern_pace(ledger, situation.now_s, state.pace_s, proposal.pace_s, settings.rules)
    decision = replace(decision, pace_s=paces)
    ledger, decision, placing = _with_capacity(state, ledger, situation, proposal, decision)
    asked_for, decision = decision.changes, _without_repeats(state, decision)
    groups, decision = _with_groups(state.groups, situation, decision)
    decision = with_changes(decision, state.shares, state.pace_s)
    decision = replace(decision, changes=(*decision.changes, *more_groups))
    return (
        replace(
            state,
            plan_memory=memory,
            ledger=ledger,
            situation=situation,
            places=decision.places,
            groups=groups,
            shares=decision.shares,
            pace_s=decision.pace_s,
            key_groups=asked,
            placing=placing,
            asked_for=asked_for,
        ),
        decision,
    )


def _without_repeats(state: LoopState, decision: Decision) -> Decision:
    """Drop changes that the previous tick already requested: a node takes many ticks to start."""
    known = {(change.what, change.have, change.want) for change in state.asked_for}
    fresh = tuple(c for c in decision.changes if (c.what, c.have, c.want) not in known)
    return replace(decision, changes=fresh)


def _with_capacity(
    state: LoopState, ledger: Ledger, situation: Situation, proposal: Proposal, decision: Decision
) -> tuple[Ledger, Decision, Any]:
    """Add executors, nodes and placement to the decision, if there is a fleet and a placer."""
    fleet, settings = situation.observation.fleet, state.settings
    if fleet is None or settings.placer is None:
        return ledger, decision, state.placing
    late = lateness(situation)
    running = decision.running
    if settings.slots is not None and proposal.bundles:
        ledger, found, shares = slots_and_places(
            ledger,
            situation.now_s,
            situation.topology,
            settings.slots,
            proposal,
            running,
            fleet,
            state.places,
            settings.rules.settle_down_s,
        )
        decision = replace(decision, shares={**decision.shares, **shares})
        return ledger, _with(decision, found), state.placing
    ledger, found = capacity_for(
        ledger,
        situation.now_s,
        settings.topology,
        settings.placer,
        running,
        fleet,
        state.places,
        proposal.more_nodes,
        proposal.nodes,
        situation,
        state.placing,
        late is not None and late > 1,
        settings.rules.settle_down_s,
    )
    return ledger, _with(decision, found), found.memory


def _with(decision: Decision, found: Capacity) -> Decision:
    return replace(
        decision,
        executors=found.executors,
        nodes=found.nodes,
        leaving=found.leaving,
        places=found.places,
        changes=found.changes,
        refusals=(*decision.refusals, *([Refusal("slots", found.short)] if found.short else [])),
    )


def _with_groups(
    known: Mapping[str, GroupsSeen], situation: Situation, decision: Decision
) -> tuple[Mapping[str, GroupsSeen], Decision]:
    """Add the owners of key groups to the decision; measured loads are ignored while a rescale is under way."""
    seen, groups, changes = situation.observation, dict[str, tuple[int, ...]](), list[Change]()
    memory = dict[str, GroupsSeen]()
    for name, before in seen.groups.items():
        loads = () if seen.rescaling else seen.of(name).group_s
        took_s = [batch.duration_s for batch in seen.of(name).batches]
        memory[name], owners, why = moved_for(
            known.get(name, GroupsSeen()), before, decision.running[name], loads, median(took_s) if took_s else None
        )
        groups[name] = owners
        if owners != tuple(before):
            moved = sum(a != b for a, b in zip(before, owners, strict=True))
            changes.append(Change(f"key groups of {name}", "", f"{moved} of {len(before)} moved", why))
    return memory, replace(decision, groups=groups, changes=(*decision.changes, *changes))
