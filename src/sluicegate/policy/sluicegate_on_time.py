"""The policy `on-time`: total machines for a target share of on-time steps, by the on-time rule and a capacity law.

The capacity law is updated at every step, with the capacity that follows from rows done per second of useful time.
Where that is not measured, a saturated step gives its capacity, and an unsaturated one a lower bound: its load
(``capacity_law``). A step counts as late if its load reached the capacity of a saturated operator. The rule
(``on_time``) then trades machines off against the probability of being late. The machines are spread over the operators
so that the pipeline carries the highest rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.model.mst import LARGEST
from sluicegate.model.traffic import visits
from sluicegate.policy.capacity_law import CapacityLaw, capacity_law
from sluicegate.policy.on_time import OnTime, OnTimeMemory, Steps, needed
from sluicegate.policy.papers.uncertainty import online_sample, sustained_samples
from sluicegate.policy.spread import spread
from sluicegate.policy.within_limits import affordable, proposal_within

Samples = tuple[tuple[int, float], ...]
# Margin above the load where there is no forecast (`plan`). Half: no room for a rise. Double: more expensive.
_COLD_MARGIN = 0.2
_TARGET = 0.995
"""The target share of on-time steps where the goal has none. At 0.999 costs are 3% to 38% higher on the traces."""


@dataclass(frozen=True, slots=True)
class OnTimeState:
    """The policy's memory: capacity law, lateness record, and machines last requested."""

    law: CapacityLaw
    judged: OnTimeMemory
    asked: int | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """The total of machines to request, with the reason."""

    machines: int
    reason: str


@dataclass(frozen=True, slots=True)
class OnTimePolicy:
    """The policy, called once a step. ``training`` are measured (machines, rows/s); ``most`` is the largest size."""

    timing: Steps = field(default_factory=Steps)
    training: Samples = ()
    most: int | None = None
    name: str = "on-time"

    def start(self) -> OnTimeState | None:
        return None

    def propose(self, memory: OnTimeState | None, situation: Situation) -> tuple[OnTimeState, Proposal]:
        target = situation.goal.on_time or _TARGET
        state, wanted = wish(memory, situation, target, self.timing, self.training, self.most)
        bounded = replace(situation, limits=affordable(situation.goal, situation.limits))
        return state, proposal_within(
            spread(situation.topology, wanted.machines, bounded.limits), (wanted.reason,), bounded
        )


def wish(
    state: OnTimeState | None, situation: Situation, target: float, timing: Steps, training: Samples, most: int | None
) -> tuple[OnTimeState, Wish]:
    """The machines to request. Between the decisions of a cycle only the state is updated."""
    rule = OnTime(target, timing)
    state = state or _fresh(situation, training, most)
    state = _learned(state, situation, rule)
    curve = state.law.curve()
    running = state.asked or max(sum(situation.running.values()), 1)
    if situation.forecast is None:
        enough = needed(situation.arrivals_per_s * (1 + _COLD_MARGIN), curve)
        reason = f"no forecast: {enough} machines for {rate(situation.arrivals_per_s, 6)} and {_COLD_MARGIN:.0%}"
        return replace(state, asked=enough), Wish(enough, reason)
    if not _decides(situation, timing):
        return state, Wish(running, f"{running} machines until the cycle ends")
    judged, choice = rule.decide(state.judged, situation.forecast, curve, running)
    return replace(state, judged=judged, asked=choice.machines), Wish(choice.machines, choice.reason)


def _fresh(situation: Situation, training: Samples, most: int | None) -> OnTimeState:
    operators = len(situation.topology.operators)
    largest = most or min(situation.limits.budget or LARGEST * operators, situation.limits.most * operators)
    samples = training or sustained_samples(situation.topology, situation.limits) or ((operators, 1.0),)
    return OnTimeState(capacity_law(samples, max(min(largest, LARGEST * operators), 1)), OnTimeMemory())


def _learned(state: OnTimeState, situation: Situation, rule: OnTime) -> OnTimeState:
    machines, load = sum(situation.running.values()), situation.arrivals_per_s
    if machines < 1 or situation.observation.rescaling:
        return state
    flat_out, useful_per_s = online_sample(situation), useful_rate(situation)
    if useful_per_s is not None:
        # noise of the steps of one cycle is correlated: together they count as one sample
        law = state.law.measured(machines, useful_per_s, 1 / rule.timing.cycle_steps)
    elif flat_out is not None:
        law = state.law.late(*flat_out)
    else:
        law = state.law.on_time(machines, load)
    late = flat_out is not None and load >= flat_out[1]
    return replace(state, law=law, judged=rule.judged(state.judged, float(late)))


def useful_rate(situation: Situation) -> float | None:
    """The pipeline rate that the running processors carry, from each operator's rows per second of useful time.

    It is the rate of the bottleneck operator; ``None`` unless all operators that rows reach were measured.
    """
    seen, topology = situation.observation, situation.topology
    reached = [(name, float(v)) for name, v in zip(topology.names, visits(topology), strict=True) if v > 0]
    # the time of a batch includes planning and commit: of operators in batches the law's rate counts, once it is fitted
    batched = {o.name: o.service_per_s for o in topology.operators if o.batch and seen.of(o.name).service_per_s}
    rates = [(batched.get(n, seen.of(n).service_per_s), seen.running.get(n, 0) / v) for n, v in reached]
    carried = [rate * each for rate, each in rates if rate is not None]
    least = min(carried, default=0.0)
    return least if len(carried) == len(reached) and 0 < least < math.inf else None


def _decides(situation: Situation, timing: Steps) -> bool:
    if timing.cycle_steps == 1 or situation.forecast is None:
        return True
    step = round(situation.now_s / situation.forecast.step_s)
    return (step + timing.lead_steps) % timing.cycle_steps == 0
