"""The policies of a replay by name, each told what it may know: its timing, and noisy measurements of few sizes.

Two names are answered from the truth and play no part here: hindsight and static-peak. Recent peak knows the true mean
curve, so that only the load is uncertain to it (it is a bound to beat); with the window and the margin chosen in
hindsight nobody could run it. All others know what they measure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluicegate.control.loop import Settings
from sluicegate.control.settings import Known, Timing, settings_for
from sluicegate.domain import Edge, Goal, Limits, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.lab.replay.protocol import STEP_S, Protocol
from sluicegate.lab.replay.truth import Floats, Truth
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
    """A policy ready to play. ``open_loop``: what it asks for depends on the load alone, not on what it measures."""

    settings: Settings
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
    """The loop for one machine pool: its size is the one thing to decide, a share of steps on time the goal."""
    # the rate of one machine as first measured, until the pipeline shows its own
    size, rate = facts.training[0]
    pipeline = Topology("replay", (Operator(OPERATOR, rate / size),), (Edge("source", OPERATOR),))
    options = dict(options or {})
    if name == "keda":
        # its default of 10 rows suits no stream of thousands a second: a machine's work between two polls does
        options |= {"lag_threshold_rows": rate / size * Keda().poll_s, "partitions": facts.truth.most}
    known = Known(
        training=facts.training,
        most=facts.truth.most,
        rho=facts.rho,
        curve_per_s=tuple(facts.truth.rising().tolist()),
    )
    goal, limits = Goal(on_time=facts.target), Limits(most=facts.truth.most)
    return settings_for(name, pipeline, goal, limits, timing_of(facts.protocol), known, options)


def timing_of(protocol: Protocol) -> Timing:
    """The protocol's steps of a minute, in seconds."""
    cycle_s, startup_s = protocol.cycle_steps * STEP_S, protocol.startup_steps * STEP_S
    return Timing(STEP_S, startup_s, cycle_s, all_in_cycles=True)


def _watches(name: str) -> bool:
    """Whether a policy is shown every minute; the others only those at which a decision counts.

    Where the governor spaces moves it would else space those that nobody makes.
    """
    return policy_entry(name).moves in ("own", "steps") and name != "ds2"


def _decides_when_it_starts(name: str) -> bool:
    """Uncertainty-aware policies without a forecast look at the load when the cycle starts."""
    entry = policy_entry(name)
    return entry.moves == "cycles" and entry.forecaster is None


def _best_peak(facts: Facts) -> tuple[dict[str, object], str | None]:
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
    return {"window_steps": point.window_steps, "margin": point.margin}, note
