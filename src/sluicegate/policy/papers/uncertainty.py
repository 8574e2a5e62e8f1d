"""Uncertainty-aware scheduling of machines, policies 0 to 7 (Eq 4, 8, 14, 18 and 21).

Allocate the fewest machines m with P(MST(m) > lambda) >= rho. The number says which uncertainties count:

    number             0   1   2   3   4   5   6   7
    +1 UA: sigma_tau       x       x       x       x     the curve's residual deviation (Eq 6)
    +2 OL                      x   x           x   x     throughput while under-provisioned refits the curve
    +4 ARMA                            x   x   x   x     the coming cycle's peak with its variance (Eq 14)

Without any variance the probability is 1 or 0, so that policies 0 and 2 reduce to MST(m) > lambda_t (Eq 4).

One call of ``propose`` is one decision: call it once a cycle of ``cycle_steps``, ``lead_steps`` before it starts.
Policies 0 to 3 use lambda_t at the start of the cycle, so new machines start ``startup_steps`` late; 4 to 7 decide that
much earlier: minute k of the cycle is then startup + k steps ahead. A machine is a processor of the pipeline, spread
over its operators so that they carry the highest rate; on a cluster whose nodes can be started and stopped
(``slots_per_node``) it is a node, and the processors are spread over the slots of the nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sluicegate.domain import Forecast, Limits, Proposal, Situation, Topology
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require
from sluicegate.model.mst import LARGEST, MstModel, choose_model
from sluicegate.model.traffic import visits
from sluicegate.policy.spread import spread, sustained_per_s
from sluicegate.policy.within_limits import proposal_within

NODE_SIZES = (1, 2, 3, 4, 6)
TRAINING_SIZES = (3, 4, 6, 8, 24)
Samples = tuple[tuple[int, float], ...]
_KEPT_SAMPLES = 30
"""Number of online samples that are applied again when the curve is retrained."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The load to cover, its variance, and its origin."""

    rate_per_s: float
    variance: float
    origin: str


@dataclass(frozen=True, slots=True)
class UncertaintyMemory:
    """The throughput curve and the samples learned online.

    A curve trained on measurements is kept and refitted. One based on the topology's service rates alone is retrained
    at every decision, since those rates and the visits are still being learned.
    """

    model: MstModel | None = None
    learned: int = 0
    samples: Samples = ()


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The policy. ``training`` and ``validation`` are measured (machines, rows/s); ``most`` is the largest size.

    With ``slots_per_node`` a machine is a node of that many slots, else a processor. Without ``training`` the curve is
    trained on the rates that the topology's service rates sustain at 3, 4, 6, 8 and 24 machines per operator (with
    ``slots_per_node`` at 1, 2, 3, 4 and 6 nodes). Without ``most`` it reaches 128 machines per operator (128 nodes).

    >>> from sluicegate.domain import Edge, Observation, Operator
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> now = Situation(0.0, one, Observation(0.0, 950.0, {"a": 4}), 950.0, {"a": 950.0})
    >>> policy = Uncertainty(0)
    >>> policy.propose(policy.start(), now)[1].processors
    {'a': 10}
    """

    number: int
    rho: float = 0.95
    cycle_steps: int = 10
    startup_steps: int = 2
    training: Samples | None = None
    validation: Samples = ()
    most: int | None = None
    slots_per_node: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.number <= 7, f"uncertainty policy {self.number}: choose 0 to 7")
        require(0.5 <= self.rho < 1, f"rho is {self.rho}: give a probability from 0.5 to below 1, such as 0.95")
        require(self.cycle_steps >= 1, f"cycle_steps is {self.cycle_steps}: give at least 1")
        require(self.startup_steps >= 0, f"startup_steps is {self.startup_steps}: give 0 or more")
        require(self.most is None or self.most >= 1, f"most is {self.most}: give at least 1 machine")
        slots = self.slots_per_node
        require(slots is None or slots >= 1, f"slots_per_node is {slots}: give at least 1")

    @property
    def name(self) -> str:
        return f"uncertainty-{self.number}"

    @property
    def aware(self) -> bool:
        return bool(self.number & 1)

    @property
    def learns(self) -> bool:
        return bool(self.number & 2)

    @property
    def forecasts(self) -> bool:
        return bool(self.number & 4)

    @property
    def lead_steps(self) -> int:
        """Steps between the decision and the start of its cycle."""
        return self.startup_steps if self.forecasts else 0

    @property
    def forecaster(self) -> str | None:
        """The catalogue name of the forecaster that the paper uses."""
        return "arma" if self.forecasts else None

    def start(self) -> UncertaintyMemory:
        return UncertaintyMemory()

    def propose(self, memory: UncertaintyMemory, situation: Situation) -> tuple[UncertaintyMemory, Proposal]:
        model = memory.model if self.training is not None else None
        if model is None:
            model = self._trained(situation.topology, situation.limits, memory.samples)
        if model is None:
            reason = "no rows reach any operator: the least of each is enough"
            return memory, proposal_within({}, (reason,), situation)
        sample = online_sample(situation, self.slots_per_node) if self.learns else None
        if sample is not None:
            model = model.with_sample(*sample)
        demand = self._demand(situation)
        learned = memory.learned + (sample is not None)
        proposal = self._proposal(model, demand, sample, situation, learned)
        samples = (*memory.samples, sample)[-_KEPT_SAMPLES:] if sample is not None else memory.samples
        return UncertaintyMemory(model, learned, samples), proposal

    def _trained(self, topology: Topology, limits: Limits, samples: Samples = ()) -> MstModel | None:
        training = self.training
        if training is None:
            training = sustained_samples(topology, limits, self.slots_per_node)
        if not training:
            return None
        # the curve must cover the validated sizes, even those that may not be chosen
        tried = max((m for m, _ in self.validation), default=1)
        model = choose_model(training, self.validation, largest=max(self._largest(topology), tried))
        for sample in samples:
            model = model.with_sample(*sample)
        return model

    def _largest(self, topology: Topology) -> int:
        each = 1 if self.slots_per_node is not None else len(topology.operators)
        return self.most or LARGEST * each

    def _demand(self, situation: Situation) -> Demand:
        now = max(0.0, situation.arrivals_per_s)
        if not self.forecasts:
            return Demand(now, 0.0, "the present rate")
        if situation.forecast is None:
            return Demand(now, 0.0, "the present rate, as there is no forecast yet")
        return cycle_peak(situation.forecast, self.startup_steps, self.cycle_steps)

    def _proposal(
        self, model: MstModel, demand: Demand, sample: tuple[int, float] | None, situation: Situation, learned: int
    ) -> Proposal:
        judged = model if self.aware else model.certain
        most = self._most(situation)
        machines, reached = judged.fewest(demand.rate_per_s, self.rho, demand.variance, most)
        reasons = [self._reason(judged, machines, demand, most if not reached else None)]
        if sample is not None:
            reasons.append(f"learned online: {sample[0]} machines sustained {rate(sample[1])}")
        if self.training is not None:
            reasons.append(self._curve(model, learned))
        if self.slots_per_node is not None:
            wanted = spread(situation.topology, machines * self.slots_per_node, situation.limits)
            found = proposal_within(wanted, tuple(reasons), situation, feasible=reached)
            return replace(found, nodes=machines, feasible=reached)
        wanted = spread(situation.topology, machines, situation.limits)
        total = sum(wanted.values())
        if total != machines:
            reasons.append(
                f"{total} machines instead of {machines}: the least and the most of each operator ask for it"
            )
        return proposal_within(wanted, tuple(reasons), situation, feasible=reached)

    def _most(self, situation: Situation) -> int:
        """The largest size that may be chosen."""
        limits, names, largest = situation.limits, situation.topology.names, self._largest(situation.topology)
        if self.slots_per_node is not None:
            budget = largest if limits.budget is None else limits.budget // self.slots_per_node
            return max(1, min(largest, budget))
        allowed = sum(limits.most_for(name) for name in names)
        return max(1, min(largest, allowed, limits.budget or largest))

    def _curve(self, model: MstModel, learned: int) -> str:
        """Describes the model's form, samples and variance."""
        sizes = ", ".join(f"{m:g}" for m in model.samples.sizes)
        how = f"chosen by {len(self.validation)} validation samples" if self.validation else "chosen by training error"
        counted = "counted" if self.aware else "not counted by this policy"
        return (
            f"model {model.form} ({how}), fitted to {model.samples.number} samples of {sizes} machines, {learned} of"
            f" them learned online; its sd of {rate(model.sd_per_s)} is {counted}"
        )

    def _reason(self, judged: MstModel, machines: int, demand: Demand, short_of: int | None) -> str:
        sustained = f"{rate(judged.mean_per_s(machines))} (sd {rate(judged.sd_per_s)})"
        probability = judged.probability(machines, demand.rate_per_s, demand.variance)
        load = f"{rate(demand.rate_per_s)} ({demand.origin})"
        if short_of is None:
            return (
                f"{machines} machines sustain {sustained}, above {load}"
                f" with probability {probability:.3f}, wanted {self.rho:g}"
            )
        return (
            f"no size up to {short_of} carries {load} with probability {self.rho:g}: {machines} machines carry most,"
            f" {sustained}, which is enough with probability {probability:.3f}"
        )


def cycle_peak(forecast: Forecast, startup_steps: int, cycle_steps: int) -> Demand:
    """The step of the coming cycle with the largest mean + 2 sigma (Eq 14), as its mean and variance.

    >>> import numpy as np
    >>> coming = Forecast(60.0, np.array([9.0, 5.0, 7.0, 6.0]), np.array([1.0, 1.0, 1.0, 3.0]))
    >>> cycle_peak(coming, startup_steps=2, cycle_steps=3)
    Demand(rate_per_s=6.0, variance=9.0, origin='forecast 4 steps ahead, sd 3 rows/s')
    """
    # the cycle's minute k is startup + k steps ahead, element startup + k - 1; a forecast too short gives its last
    first = min(max(startup_steps - 1, 0), len(forecast.mean_per_s) - 1)
    cycle = slice(first, max(first + 1, startup_steps - 1 + cycle_steps))
    mean, sd = forecast.mean_per_s[cycle], forecast.sd_per_s[cycle]
    h = int((mean + 2 * sd).argmax())
    origin = f"forecast {first + h + 1} steps ahead, sd {rate(sd[h])}"
    return Demand(max(0.0, float(mean[h])), float(sd[h]) ** 2, origin)


def sustained_samples(topology: Topology, limits: Limits, slots_per_node: int | None = None) -> Samples:
    """Training samples from the model: the rate that the topology sustains at some sizes, processors well spread."""
    found: dict[int, float] = {}
    if slots_per_node is not None:
        rates = {m: sustained_per_s(topology, spread(topology, m * slots_per_node, limits)) for m in NODE_SIZES}
        return tuple((m, rate) for m, rate in rates.items() if 0 < rate < math.inf)
    for size in TRAINING_SIZES:
        processors = spread(topology, size * len(topology.operators), limits)
        rate = sustained_per_s(topology, processors)
        if 0 < rate < float("inf"):
            found[sum(processors.values())] = rate
    return tuple(found.items())


def online_sample(situation: Situation, slots_per_node: int | None = None) -> tuple[int, float] | None:
    """(machines, rows/s) of the pipeline if an operator was saturated, by the slowest such operator.

    Its throughput is divided by its visits to give a pipeline rate. ``None`` during a rescale.
    """
    seen, topology = situation.observation, situation.topology
    machines = sum(seen.running.get(name, 0) for name in topology.names)
    if slots_per_node is not None and seen.fleet is not None:
        machines = sum(one.slots for one in seen.fleet.warm) // slots_per_node
    elif slots_per_node is not None:
        machines //= slots_per_node
    if seen.rescaling or machines < 1:
        return None
    carried = [
        saturated / float(v)
        for name, v in zip(topology.names, visits(topology), strict=True)
        if v > 0 and (saturated := seen.of(name).saturated_per_s) is not None
    ]
    return (machines, min(carried)) if carried and 0 < min(carried) < math.inf else None
