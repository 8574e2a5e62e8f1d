"""The policies of a replay: configures each by name and plays it on one run, minute by minute.

A policy knows its timing, and noisy measurements of a few sizes.

hindsight and static-peak are computed from the truth and are not played here. Recent peak knows the true mean curve, so
that for it only the load is uncertain (it is a bound to beat); with window and margin chosen in hindsight it could not
be run in practice. All others know only their measurements.

A lane plays one policy on one run, with the same loop that drives a live pipeline: one operator whose processors are
machines. At the start of minute t the policy observes minute t - 1:

    arrivals      the trace's rate               service rate   capacity/machines, as drawn
    utilisation   rows done/capacity             saturated      the capacity, if the pipeline was never idle
    queue         waiting rows: b <- max(0, b + (arrivals - capacity) x 60)

The loop is the one that Spark runs (``control.settings``), with the replay's timing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sluicegate.control.loop import Settings, start, tick
from sluicegate.control.settings import Known, Timing, settings_for
from sluicegate.domain import (
    Edge,
    Forecast,
    Goal,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.lab.replay.world import STEP_S, Floats, Ints, Protocol, Truth
from sluicegate.policy.catalogue import POLICIES, policy_entry, unknown
from sluicegate.policy.peers.keda import Keda
from sluicegate.policy.peers.recent_peak_grid import cheapest_recent_peak

OPERATOR = "pipeline"
BEST_RECENT_PEAK = "recent-peak-hindsight"
BOUNDS = ("hindsight", "static-peak")
ALL = (
    "sluicegate",
    "on-time",
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


@dataclass(frozen=True, slots=True)
class Player:
    """A configured policy. ``open_loop``: its requests depend on the load alone, not on measurements."""

    settings: Settings
    lead_steps: int
    late_steps: int
    watches: bool = True
    open_loop: bool = False
    note: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Facts:
    """The inputs of a run; ``training`` are measured (machines, rows/s), ``draws`` the noise of the capacity."""

    protocol: Protocol
    truth: Truth
    target: float
    rho: float
    training: tuple[tuple[int, float], ...]
    rates_per_s: Floats
    draws: Floats
    validation: tuple[tuple[int, float], ...] = ()


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
    """The catalogue name of a policy's forecaster; ``None`` if it has none."""
    return None if name == BEST_RECENT_PEAK else policy_entry(name).forecaster


def player(name: str, facts: Facts) -> Player:
    """The policy called ``name``, configured with its timing and measurements."""
    protocol, note, options = facts.protocol, None, dict[str, object]()
    if name == BEST_RECENT_PEAK:
        options, note = _best_peak(facts)
    named = "recent-peak" if name == BEST_RECENT_PEAK else name
    lead = 0 if _decides_when_it_starts(named) else protocol.lead_steps
    return Player(
        settings_of(named, facts, options),
        lead,
        protocol.startup_steps - lead,
        watches=_watches(named),
        open_loop=named == "recent-peak",
        note=note,
    )


def settings_of(name: str, facts: Facts, options: dict[str, object] | None = None) -> Settings:
    """Loop settings for one machine pool: only its size is decided; the goal is a share of steps on time."""
    if not facts.training:
        raise BadInput("no training size was measured above 0 rows/s: give more --train sizes, or a smaller sd_per_s")
    # the first measurement gives the initial rate of one machine
    size, rate = facts.training[0]
    pipeline = Topology("replay", (Operator(OPERATOR, rate / size),), (Edge("source", OPERATOR),))
    options = dict(options or {})
    if name == "keda":
        # its default of 10 rows is too low for thousands of rows/s: use a machine's work between two polls
        options |= {"lag_threshold_rows": rate / size * Keda().poll_s, "partitions": facts.truth.most}
    known = Known(
        training=facts.training,
        validation=facts.validation,
        most=facts.truth.most,
        rho=facts.rho,
        curve_per_s=tuple(facts.truth.rising().tolist()),
    )
    goal, limits = Goal(on_time=facts.target), Limits(most=facts.truth.most)
    return settings_for(name, pipeline, goal, limits, timing_of(facts.protocol), known, options)


def timing_of(protocol: Protocol) -> Timing:
    """The protocol's timing in seconds."""
    cycle_s, startup_s = protocol.cycle_steps * STEP_S, protocol.startup_steps * STEP_S
    return Timing(STEP_S, startup_s, cycle_s, all_in_cycles=True)


def _watches(name: str) -> bool:
    """Whether a policy observes every minute; the others observe only minutes at which a decision counts.

    Otherwise the governor would also space out moves that are never made.
    """
    return policy_entry(name).moves in ("own", "steps") and name != "ds2"


def _decides_when_it_starts(name: str) -> bool:
    """Whether it decides at the start of the cycle: uncertainty-aware policies without a forecast do."""
    entry = policy_entry(name)
    return entry.moves == "cycles" and entry.forecaster is None


def _best_peak(facts: Facts) -> tuple[dict[str, object], str | None]:
    """The cheapest window and margin that reach the target on this trace; the best QoS if none does."""
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
    return {"window_steps": point.window_steps, "margin": point.margin}, note


class SharedForecast:
    """A forecaster that returns a precomputed forecast, so that one forecast per step serves every lane."""

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


class ReplayLane:
    """The state of one policy on one run; ``asked`` has the requested machines of each minute so far."""

    def __init__(self, player: Player, facts: Facts, feed: SharedForecast | None) -> None:
        truth = facts.truth
        self.player, self.protocol = player, facts.protocol
        self.rates, self.draws = facts.rates_per_s.tolist(), facts.draws.tolist()
        self.mean, self.sd = truth.mean_per_s.tolist(), truth.sd_per_s.tolist()
        settings = player.settings
        self.state = start(settings if feed is None else replace(settings, forecaster=feed))
        self.target = self.coming = min(truth.needs(self.rates[0] * 1.2), truth.most)
        self.asked: list[int] = []
        self.backlog_rows = 0.0
        self.serving = self.target
        self.capacity = self.done = 0.0
        self.saturated: tuple[int, float] | None = None

    def step(self, t: int) -> None:
        """Play minute ``t``: decide at its start from the observation, then process its rows."""
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
            requested={OPERATOR: self.coming},
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
