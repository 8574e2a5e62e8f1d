"""Builds the loop settings of a policy: its options, forecaster, placer, rules and timing.

Spark, replay, simulate, what-if and `plan` all use it, so that the lab runs the same policy under a name as production.
Only ``Timing`` differs between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from sluicegate.control.loop import Settings
from sluicegate.control.rules import SLIGHT, Rules
from sluicegate.control.slots import SlotMapping
from sluicegate.domain import Goal, Limits, Topology
from sluicegate.domain.topology import require
from sluicegate.errors import BadInput
from sluicegate.forecast.catalogue import forecaster
from sluicegate.measure import Smoothing
from sluicegate.place.catalogue import placer
from sluicegate.place.placer import Placer
from sluicegate.policy.catalogue import PolicyEntry, policy_entry
from sluicegate.policy.in_steps import InSteps
from sluicegate.policy.on_time import Steps as Steps
from sluicegate.policy.over_nodes import OverNodes

if TYPE_CHECKING:
    from sluicegate.policy.catalogue import AnyPolicy

_STEPS_A_CYCLE = 10
"""As in the paper: cycles of ten minutes, one rate per minute."""
_STEADY_S = 30.0
"""Rates over intervals of at least this are means already and not smoothed. Half, double: no loop polls so slowly."""
_CALM_SHARE = 0.8
"""Share of a latency bound above which processors are not removed. Half: unneeded processors stay for long. At 1 or
more: they are removed just before the bound is exceeded."""
_NOT_OPTIONS = frozenset(
    (
        "name",
        "number",
        "general",
        "batch",
        "timing",
        "cycle_steps",
        "startup_steps",
        "lead_steps",
        "slow_start",
        "most",
        "training",
        "curve_per_s",
    )
)


@dataclass(frozen=True, slots=True)
class Timing:
    """Polling interval, start-up time of processors, and cycle length.

    ``interval_s`` is the time between two ticks, ``startup_s`` that from requesting a processor to its first warm
    task (U), ``cycle_s`` that between the decisions of a policy which decides in cycles (S). ``cooldown_s`` (DRS's
    T_ra) and ``settle_down_s`` are the governor's; if they are not given they follow from the others:

        cool-down      1.5 intervals, so that a tick lies between two moves; for a policy with a T_ra, a cycle
        settle down    three intervals, and at least the start-up time of processors

    >>> Timing(60.0, 120.0, 600.0).steps(cycles=True).bound
    (3, 12)
    >>> Timing(2.0, 15.0, 60.0).step_s(cycles=True), Timing(2.0, 15.0, 60.0).step_s(cycles=False)
    (6.0, 2.0)

    With ``all_in_cycles`` the decisions of every policy hold for a cycle (as in the replay's protocols).
    """

    interval_s: float = 10.0
    startup_s: float = 0.0
    cycle_s: float = 60.0
    all_in_cycles: bool = False
    cooldown_s: float | None = None
    settle_down_s: float | None = None

    def __post_init__(self) -> None:
        require(self.interval_s > 0, f"interval is {self.interval_s:g} s: give more than 0")
        require(self.startup_s >= 0, f"start-up is {self.startup_s:g} s: give 0 or more")
        require(self.cycle_s > 0, f"cycle is {self.cycle_s:g} s: give more than 0")

    def step_s(self, cycles: bool) -> float:
        """The forecaster's step: an interval, or at least a tenth of a cycle for policies that decide in cycles."""
        in_cycles = cycles or self.all_in_cycles
        return max(self.interval_s, self.cycle_s / _STEPS_A_CYCLE) if in_cycles else self.interval_s

    def steps(self, cycles: bool) -> Steps:
        """Cycle, start-up and lead in steps."""
        cycles, step_s = cycles or self.all_in_cycles, self.step_s(cycles)
        count = max(round(self.cycle_s / step_s), 1) if cycles else 1
        startup = math.ceil(self.startup_s / step_s - 1e-9)
        return Steps(count, startup, 0 if count == 1 else startup)

    @property
    def slow_start(self) -> bool:
        """Whether processors take longer to start than one interval."""
        return self.startup_s > self.interval_s


@dataclass(frozen=True, slots=True)
class Known:
    """Prior knowledge passed to a policy; each policy takes the fields that it has.

    ``load_per_s`` is the future load, for clairvoyant policies; ``training`` are measured (machines, rows/s),
    ``validation`` those that decide between curves; ``slots_per_node`` is set if machines are nodes that can be started
    and stopped; ``rho`` is the target probability of an uncertainty policy, ``most`` the largest size considered.
    """

    load_per_s: tuple[float, ...] = ()
    training: tuple[tuple[int, float], ...] | None = None
    most: int | None = None
    rho: float | None = None
    curve_per_s: tuple[float, ...] | None = None
    validation: tuple[tuple[int, float], ...] | None = None
    slots_per_node: int | None = None


def settings_for(
    policy: str,
    topology: Topology,
    goal: Goal | None = None,
    limits: Limits | None = None,
    timing: Timing | None = None,
    known: Known | None = None,
    options: Mapping[str, object] | None = None,
    slots: SlotMapping | None = None,
) -> Settings:
    """The loop settings for ``policy``; ``options`` are fields of the policy set by the user.

    ``slots`` is given if executors are the slots to which a thread planner maps.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> made = settings_for("uncertainty-7", one, timing=Timing(2.0, 15.0, 60.0))
    >>> made.forecaster.name, made.forecaster.step_s, made.policy.every_s, made.rules.cooldown_s
    ('arma', 6.0, 60.0, 0.0)
    """
    goal, timing, entry = goal or Goal(), timing or Timing(), policy_entry(policy)
    cycles = _in_cycles(entry)
    made = policy_for(policy, timing, known, options)
    return Settings(
        topology=topology,
        policy=made,
        goal=goal,
        limits=limits or Limits(),
        rules=rules_for(entry, timing, goal, getattr(made, "t_ra_s", None)),
        smoothing=_smoothing(made, timing),
        forecaster=forecaster(entry.forecaster, step_s=timing.step_s(cycles)) if entry.forecaster else None,
        forecast_steps=timing.steps(cycles).bound[1],
        placer=slots.placer if slots is not None else _placer(entry, made),
        slots=slots,
        every_nth_batch=getattr(made, "n_m", 1),
    )


def _placer(entry: PolicyEntry, policy: object) -> Placer:
    """The placer of a policy, configured with the policy's placement options."""
    chosen: Any = placer(entry.mapper)
    told: Mapping[str, object] = getattr(policy, "placing", {})
    found: Placer = replace(chosen, **told) if told else chosen
    return found


def _smoothing(policy: object, timing: Timing) -> Smoothing:
    """The policy's own smoothing; else rates over short intervals are smoothed, those over long ones are not."""
    alpha, window = getattr(policy, "alpha", None), getattr(policy, "w", None)
    usual = 0.5 if timing.interval_s < _STEADY_S else 0.0
    return Smoothing(usual if alpha is None else alpha, window)


def policy_for(
    name: str,
    timing: Timing | None = None,
    known: Known | None = None,
    options: Mapping[str, object] | None = None,
) -> AnyPolicy:
    """The policy called ``name``, with its timing, prior knowledge and the user's options."""
    entry, timing, known = policy_entry(name), timing or Timing(), known or Known()
    cycles = _in_cycles(entry)
    steps = timing.steps(cycles)
    first, last = steps.bound
    told = {
        "timing": steps,
        "cycle_steps": steps.cycle_steps,
        # only finished steps are known, so a cycle's step k is one further ahead than in the paper
        "startup_steps": first,
        "lead_steps": last,
        "slow_start": timing.slow_start,
        "training": known.training,
        "most": known.most,
        "rho": known.rho,
        "curve_per_s": known.curve_per_s,
        "validation": known.validation,
        "slots_per_node": known.slots_per_node,
    }
    policy = _with_fields(entry.build(known.load_per_s), told)
    policy = _with_options(policy, name, options or {})
    if entry.moves == "steps":
        return InSteps(policy, timing.step_s(cycles))
    if entry.moves == "cycles":
        ahead_s = timing.startup_s if entry.forecaster and steps.lead_steps else 0.0
        asked = InSteps(policy, timing.cycle_s, ahead_s)
        nodes = known.slots_per_node if hasattr(policy, "slots_per_node") else None
        return asked if nodes is None else OverNodes(asked, nodes)
    return policy


def retimed(settings: Settings, fresh: Settings) -> Settings:
    """The settings with the timing of ``fresh``, after the start-up time was measured. Memories stay valid."""
    return replace(settings, policy=fresh.policy, rules=fresh.rules, forecast_steps=fresh.forecast_steps)


def rules_for(entry: PolicyEntry, timing: Timing, goal: Goal, t_ra_s: float | None = None) -> Rules:
    """The governor's rules for a policy: all of them, or only those not replaced by the policy's own timing.

    ``t_ra_s`` is the policy's option for the least time between two moves.
    """
    stale_after_s = max(15 * timing.interval_s, 30.0)
    if entry.moves != "governed":
        apart_s = next(s for s in (t_ra_s, timing.cooldown_s, timing.cycle_s) if s is not None)
        return replace(
            Rules.none(), cooldown_s=apart_s if entry.moves == "spaced" else 0.0, stale_after_s=stale_after_s
        )
    cooldown_s = 1.5 * timing.interval_s if timing.cooldown_s is None else timing.cooldown_s
    settle_down_s = timing.settle_down_s
    return Rules(
        cooldown_s=cooldown_s,
        settle_down_s=max(3 * timing.interval_s, timing.startup_s) if settle_down_s is None else settle_down_s,
        dead_band=0.0,  # not needed: changing k at the next batch costs nothing
        pause_s=0.5,
        stale_after_s=stale_after_s,
        calm_share=_CALM_SHARE if goal.cost_per_hour is None else math.inf,
        risen_share=SLIGHT if timing.cooldown_s is None else math.inf,  # a cool-down that was asked for holds always
    )


def _in_cycles(entry: PolicyEntry) -> bool:
    return entry.moves in ("steps", "cycles")


def _with_fields(policy: Any, known: Mapping[str, Any]) -> AnyPolicy:
    own = {one.name for one in fields(policy) if one.init}
    told: AnyPolicy = replace(policy, **{what: v for what, v in known.items() if what in own and v is not None})
    return told


def options_of(name: str) -> dict[str, object]:
    """The options of a policy that a user can set, with their defaults.

    >>> options_of("ds2")
    {'margin': 0.0}
    """
    built = policy_entry(name).build((1.0,))
    return _own_options(built)


def _own_options(policy: Any) -> dict[str, object]:
    """Its fields that are plain numbers, without name, timing and prior knowledge, which users do not set."""
    plain = (int, float, bool, type(None))
    own = {f.name: getattr(policy, f.name) for f in fields(policy) if f.init and f.name not in _NOT_OPTIONS}
    return {what: value for what, value in own.items() if isinstance(value, plain)}


def _with_options(policy: Any, name: str, options: Mapping[str, object]) -> AnyPolicy:
    own = sorted(one.name for one in fields(policy) if one.init and one.name not in ("name", "number"))
    for option, value in options.items():
        if option not in own:
            known = ", ".join(sorted(_own_options(policy))) or "none"
            raise BadInput(f"policy {name!r} has no option {option!r}: it takes {known}")
        if isinstance(value, str) and not isinstance(getattr(policy, option), str):
            raise BadInput(f"option {option} of policy {name!r} is {value!r}: give a number")
    chosen: AnyPolicy = replace(policy, **options)
    return chosen
