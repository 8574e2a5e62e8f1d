"""The policies of a replay: by name, told what each may know, and played on one run minute by minute.

A policy knows its timing, and noisy measurements of few sizes.

Two names are answered from the truth and play no part here: hindsight and static-peak. Recent peak knows the true mean
curve, so that only the load is uncertain to it (it is a bound to beat); with the window and the margin chosen in
hindsight nobody could run it. All others know what they measure.

A lane plays one policy on one run, through the very loop that drives a live pipeline: one operator whose processors are
machines. At the start of minute t the policy is shown minute t - 1:

    arrivals      the trace's rate               service rate   capacity/machines, as drawn
    utilisation   rows done/capacity             saturated      the capacity, where the pipeline was never idle
    queue         rows that wait: b <- max(0, b + (arrivals - capacity) x 60)

The governor lets everything through, so that each policy behaves as its authors describe it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from sluicegate.control.loop import Settings, start, tick
from sluicegate.control.rules import Rules
from sluicegate.domain import (
    Edge,
    Forecast,
    Goal,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Proposal,
    Situation,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.lab.replay.world import STEP_S, Floats, Ints, Protocol, Truth
from sluicegate.measure.smoothing import Smoothing
from sluicegate.policy.catalogue import POLICIES, policy_entry, unknown
from sluicegate.policy.on_time import Timing
from sluicegate.policy.papers.uncertainty import Uncertainty
from sluicegate.policy.peers.keda import Keda
from sluicegate.policy.peers.recent_peak import RecentPeak, SeenRate
from sluicegate.policy.peers.recent_peak_grid import cheapest_recent_peak, machines_for
from sluicegate.policy.policy import Policy
from sluicegate.policy.within_limits import proposal_within

OPERATOR = "pipeline"
BEST_RECENT_PEAK = "recent-peak-hindsight"
BOUNDS = ("hindsight", "static-peak")
ALL = (
    "sluicegate",
    "recent-peak",
    BEST_RECENT_PEAK,
    *BOUNDS,
    *(f"uncertainty-{number}" for number in range(8)),
    "ds2",
    "flink-autoscaler",
    "dstreams",
    "hpa",
    "keda",
)
# What is looked at once a decision; the others watch every minute.
_ONE_LOOK = ("ds2", *(f"uncertainty-{number}" for number in range(8)))


@dataclass(frozen=True, slots=True)
class Player:
    """A policy ready to play. ``open_loop``: what it asks for depends on the load alone, not on what it measures."""

    policy: Policy[Any]
    lead_steps: int
    late_steps: int
    watches: bool = True
    open_loop: bool = False
    note: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Facts:
    """What players are made from; ``training`` are (machines, rows/s) as measured, ``draws`` the capacity's noise."""

    protocol: Protocol
    truth: Truth
    target: float
    rho: float
    training: tuple[tuple[int, float], ...]
    rates_per_s: Floats
    draws: Floats


@dataclass(frozen=True, eq=False, slots=True)
class KnownCurvePeak:
    """Recent peak with the capacity curve known: the least m with ``curve_per_s[m]`` above the demand."""

    peak: RecentPeak
    curve_per_s: Floats

    @property
    def name(self) -> str:
        return self.peak.name

    def start(self) -> tuple[SeenRate, ...]:
        return self.peak.start()

    def propose(self, memory: tuple[SeenRate, ...], situation: Situation) -> tuple[tuple[SeenRate, ...], Proposal]:
        memory, _ = self.peak.propose(memory, situation)
        largest = max(seen.rate_per_s for seen in memory)
        demand = largest * (1 + self.peak.margin)
        machines = int(machines_for(np.array([demand]), self.curve_per_s)[0])
        reason = f"the largest recent rate {largest:.4g} rows/s x {1 + self.peak.margin:g}: {machines} machines"
        return memory, proposal_within({OPERATOR: machines}, (reason,), situation)


def names_from(text: str) -> tuple[str, ...]:
    """The policies in ``all`` or ``a,b,c``, each once.

    >>> names_from("ds2, hpa,ds2")
    ('ds2', 'hpa')
    """
    given = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    names = dict.fromkeys(name for part in given for name in (ALL if part == "all" else (part,)))
    known = {**POLICIES, BEST_RECENT_PEAK: None}
    for name in names:
        if name not in known:
            raise BadInput(unknown("policy", name, known))
    if not names:
        raise BadInput("no policies: give names with commas between, or all")
    return tuple(names)


def forecaster_of(name: str) -> str | None:
    """The forecaster that a policy goes with, by its catalogue name."""
    return None if name == BEST_RECENT_PEAK else policy_entry(name).forecaster


def player(name: str, facts: Facts) -> Player:
    """The policy called ``name``, told its timing and what was measured."""
    protocol = facts.protocol
    lead = protocol.lead_steps
    late = protocol.startup_steps - lead
    if name in ("recent-peak", BEST_RECENT_PEAK):
        peak, note = (RecentPeak(), None) if name == "recent-peak" else _best_peak(facts)
        return Player(KnownCurvePeak(peak, facts.truth.rising()), lead, late, open_loop=True, note=note)
    policy = policy_entry(name).build(())
    if isinstance(policy, Uncertainty) and not policy.forecasts:
        lead, late = 0, protocol.startup_steps
    return Player(_told(policy, facts), lead, late, watches=name not in _ONE_LOOK)


def _best_peak(facts: Facts) -> tuple[RecentPeak, str | None]:
    """The cheapest window and margin that reach the target on the very trace; the best there is where none does."""
    truth, protocol = facts.truth, facts.protocol
    curve = truth.rising()
    rsd = float(np.mean(truth.sd_per_s[1:] / truth.mean_per_s[1:]))
    answer = cheapest_recent_peak(
        facts.rates_per_s,
        curve,
        facts.target,
        protocol="free" if protocol.free else "cycle",
        cycle_steps=max(protocol.cycle_steps, 10),
        ahead_steps=protocol.startup_steps,
        noise=np.maximum(1 + rsd * facts.draws, 0.0),
        first_step=10,
    )
    point = answer.cheapest or answer.best
    note = None if answer.cheapest else f"no window and margin of the grid reach {facts.target:.2%}: the best is shown"
    return RecentPeak(point.window_steps, point.margin), note


def _told(policy: Policy[Any], facts: Facts) -> Policy[Any]:
    """The policy with those of its fields set that say what it knows and when it decides."""
    protocol, most = facts.protocol, facts.truth.most
    if isinstance(policy, Uncertainty):
        # only finished minutes are known, so the cycle's minute k is one step further ahead than in the paper
        return replace(
            policy,
            rho=facts.rho,
            cycle_steps=protocol.cycle_steps,
            startup_steps=protocol.bound[0],
            training=facts.training,
            most=most,
        )
    if isinstance(policy, Keda):
        # its default of 10 rows suits no stream of thousands a second: a machine's work between two polls does
        size, rate = facts.training[0]
        return replace(policy, lag_threshold_rows=rate / size * policy.poll_s, partitions=most)
    timing = Timing(protocol.cycle_steps, protocol.startup_steps, protocol.lead_steps)
    return _with_fields(policy, {"training": facts.training, "timing": timing, "most": most})


def _with_fields(policy: Any, known: dict[str, Any]) -> Policy[Any]:
    own = {field.name for field in fields(policy) if field.init}
    told: Policy[Any] = replace(policy, **{what: value for what, value in known.items() if what in own})
    return told


class Feed:
    """A forecaster that hands out what another one made: one forecast a step serves every lane."""

    name = "replayed"
    step_s = 1e-9  # every tick is a step

    def __init__(self) -> None:
        self.now: Forecast | None = None

    def start(self) -> None:
        return None

    def learn(self, memory: None, rate_per_s: float) -> None:
        return None

    def forecast(self, memory: None, steps: int) -> Forecast | None:
        return self.now


class Lane:
    """The state of one policy on one run; ``asked`` fills up as minutes pass."""

    def __init__(self, player: Player, facts: Facts, feed: Feed | None) -> None:
        truth = facts.truth
        self.player, self.protocol = player, facts.protocol
        self.rates, self.draws = facts.rates_per_s.tolist(), facts.draws.tolist()
        self.mean, self.sd = truth.mean_per_s.tolist(), truth.sd_per_s.tolist()
        self.state = start(_settings(player, facts, feed))
        self.target = self.coming = min(truth.needs(self.rates[0] * 1.2), truth.most)
        self.asked: list[int] = []
        self.backlog_rows = 0.0
        self.serving = self.target
        self.capacity = self.done = 0.0
        self.saturated: tuple[int, float] | None = None

    def step(self, t: int) -> None:
        """Minute ``t``: decide at its start on what was seen, then let its rows come."""
        decides = self.protocol.decides(t, self.player.lead_steps)
        if t >= 1 and (decides or self.player.watches):
            wanted = self._look(t)
            self.coming = wanted if decides else self.coming
        if t >= self.protocol.cycle_steps and t % self.protocol.cycle_steps == 0:
            self.target = self.coming
        self.asked.append(self.target)
        self._pass(t)

    def _look(self, t: int) -> int:
        now_s = t * STEP_S
        self.state, decision = tick(self.state, self._observation(t, now_s), now_s)
        self.saturated = None
        return min(max(decision.running[OPERATOR], 1), len(self.mean) - 1)

    def _observation(self, t: int, now_s: float) -> Observation:
        rate, capacity = self.rates[t - 1], self.capacity
        limit = self.saturated[1] if self.saturated and self.saturated[0] == self.serving else None
        held = max(0.0, 1 - capacity / rate) if rate > 0 else 0.0
        operator = OperatorObservation(
            arrivals_per_s=rate,
            service_per_s=capacity / self.serving if capacity > 0 else None,
            utilisation=self.done / capacity if capacity > 0 else 1.0,
            queue_rows=self.backlog_rows,
            backpressure=held,
            saturated_per_s=limit,
        )
        return Observation(
            now_s,
            rate,
            {OPERATOR: self.serving},
            {OPERATOR: operator},
            throughput_per_s=self.done,
            backlog_rows=self.backlog_rows,
        )

    def _pass(self, t: int) -> None:
        self.serving = min(self.asked[max(0, t - self.player.late_steps) :])
        self.capacity = max(self.mean[self.serving] + self.sd[self.serving] * self.draws[t], 0.0)
        offered = self.rates[t] + self.backlog_rows / STEP_S
        self.done = min(offered, self.capacity)
        waiting = (offered - self.capacity) * STEP_S
        self.backlog_rows = max(waiting, 0.0)
        if waiting >= 0 and self.capacity > 0:
            self.saturated = (self.serving, self.capacity)

    def asked_for(self) -> Ints:
        return np.array(self.asked, dtype=np.int64)


def _settings(player: Player, facts: Facts, feed: Feed | None) -> Settings:
    # the rate of one machine as first measured, until the pipeline shows its own
    size, rate = facts.training[0]
    pipeline = Topology("replay", (Operator(OPERATOR, rate / size),), (Edge("source", OPERATOR),))
    return Settings(
        topology=pipeline,
        policy=player.policy,
        goal=Goal(on_time=facts.target),
        limits=Limits(most=facts.truth.most),
        rules=Rules.none(),
        smoothing=Smoothing(alpha=0.0),
        forecaster=feed,
        forecast_steps=facts.protocol.bound[1],
    )
