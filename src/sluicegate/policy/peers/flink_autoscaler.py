"""The autoscaler of Flink's Kubernetes operator: capacity for the load at a target utilisation, plus catch-up.

    target = backlog/catch_up + rate x restart/catch_up + rate/utilisation_target
    p' = ceil(target / true rate x p),   true rate = p mu,  so  p' = ceil(target/mu)

rate and mu are means over the metrics window; downstream the rate is what upstream will send, as in DS2. Nothing
changes while the operator's capacity p mu lies between the needs at utilisation 1.0 and at utilisation 0.4 (with the
backlog's catch-up, without the restart, which occurs only with a change). Scaling up is immediate; scaling down needs
an hour of smaller recommendations and goes to the largest of them, in steps of at most 60%.

A change restarts the job: measurements are discarded, those of the first ``stabilisation_s`` are not used, and nothing
is decided before the window is full. Our readings: backlog is an operator's queue and what upstream's queues will send
it; the rounding of p' to divisors of the number of key groups is left out; a size that would have to exceed
``parallelism_most`` is not feasible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import Edge, Proposal, Situation, Topology, is_source
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.model.traffic import visits
from sluicegate.policy.peers.readings import running_of, service_of, whole
from sluicegate.policy.within_limits import proposal_within

# Relative tolerance at the edges of the utilisation band, for floating-point rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: the pipeline's rate, and the true rate of one processor of each operator."""

    at_s: float
    rate_per_s: float
    service_per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Fewer:
    """Smaller sizes recommended continuously since ``since_s``; ``sizes`` holds those of the last hour, descending."""

    since_s: float
    sizes: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class FlinkMemory:
    """The policy's memory; ``since_s`` is when the current ``running`` was first observed."""

    since_s: float = 0.0
    running: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    fewer: Mapping[str, Fewer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlinkAutoscaler:
    """The autoscaler as a policy, with its defaults.

    ``utilisation_target``: target busy share; lower keeps more in reserve. ``utilisation_least`` and ``_most``: the
    band in which nothing changes. ``window_s``: averaging time of the measurements; longer is smoother and slower.
    ``stabilisation_s``: time after a change that is not measured. ``catch_up_s``: time in which a backlog must be
    drained; shorter needs more. ``restart_s``: how long a change stops the job. ``scale_down_s``: how long less must be
    recommended before scaling down. ``scale_down_factor``: the largest share removed at once. ``parallelism_least`` and
    ``_most``: bounds of each operator.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> at = lambda now_s: Situation(now_s, one, Observation(now_s, 450.0, {"a": 4}), 450.0, {"a": 450.0})
    >>> policy = FlinkAutoscaler()
    >>> memory, first = policy.propose(policy.start(), at(0.0))
    >>> first.total, policy.propose(memory, at(1200.0))[1].total  # 450 x 300/1800 + 450/0.7 = 717.9 rows/s
    (4, 8)
    """

    utilisation_target: float = 0.7
    utilisation_least: float = 0.4
    utilisation_most: float = 1.0
    window_s: float = 900.0
    stabilisation_s: float = 300.0
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    scale_down_s: float = 3600.0
    scale_down_factor: float = 0.6
    parallelism_least: int = 1
    parallelism_most: int = 200

    def __post_init__(self) -> None:
        ordered = 0 < self.utilisation_least <= self.utilisation_target <= self.utilisation_most
        require(ordered, "flink utilisation: need 0 < least <= target <= most")
        require_number(self.catch_up_s, "flink catch_up_s", above=True)
        for what in ("window_s", "stabilisation_s", "restart_s", "scale_down_s"):
            require_number(getattr(self, what), f"flink {what}")
        require(0 <= self.scale_down_factor <= 1, "flink scale_down_factor: give a share, 0 to 1")
        require(1 <= self.parallelism_least <= self.parallelism_most, "flink parallelism: need 1 <= least <= most")

    @property
    def name(self) -> str:
        return "flink-autoscaler"

    def start(self) -> FlinkMemory:
        return FlinkMemory()

    def propose(self, memory: FlinkMemory, situation: Situation) -> tuple[FlinkMemory, Proposal]:
        memory = _measured(self, memory, situation)
        age_s = situation.now_s - memory.since_s
        ready_s = self.stabilisation_s + self.window_s
        if age_s < ready_s or not memory.samples:
            reason = f"measured for {age_s:g} s of the {ready_s:g} s needed since the last change: kept"
            return memory, proposal_within(memory.running, (reason,), situation)
        backlog, rates = _backlog_rows(situation), _rates_per_s(memory, situation.topology)
        fewer: dict[str, Fewer] = {}
        wanted: dict[str, int] = {}
        reasons: list[str] = []
        uncapped = True
        for name in situation.topology.names:
            asked, reason = _recommended(self, memory, name, rates[name], backlog[name])
            best = min(max(asked, self.parallelism_least), self.parallelism_most)
            if asked > best:
                uncapped, reason = False, f"{reason}, at most {best} per operator"
            if best < memory.running[name]:
                fewer[name] = _noted(self, memory.fewer.get(name), situation.now_s, best)
                best, wait = _lowered(self, fewer[name], situation.now_s, memory.running[name])
                reason = f"{reason}, {wait}"
            wanted[name] = best
            reasons.append(f"{name}: {reason}")
        return replace(memory, fewer=fewer), proposal_within(wanted, tuple(reasons), situation, feasible=uncapped)


def _measured(settings: FlinkAutoscaler, memory: FlinkMemory, situation: Situation) -> FlinkMemory:
    """The memory with this measurement; reset after a change, since old rates belong to the old job."""
    now_s, running = situation.now_s, running_of(situation)
    if running != memory.running:
        memory = FlinkMemory(now_s, running)
    if now_s < memory.since_s + settings.stabilisation_s or situation.observation.rescaling:
        return memory
    true_per_s = {name: service_of(situation, name) for name in running}
    kept = tuple(sample for sample in memory.samples if sample.at_s >= now_s - settings.window_s)
    return replace(memory, samples=(*kept, Sample(now_s, max(0.0, situation.arrivals_per_s), true_per_s)))


def _rates_per_s(memory: FlinkMemory, topology: Topology) -> dict[str, float]:
    """The window's mean rate as it arrives at each operator."""
    mean = sum(sample.rate_per_s for sample in memory.samples) / len(memory.samples)
    return {name: mean * v for name, v in zip(topology.names, visits(topology).tolist(), strict=True)}


def _recommended(
    settings: FlinkAutoscaler, memory: FlinkMemory, name: str, rate_per_s: float, backlog_rows: float
) -> tuple[int, str]:
    """The size by the formula (within the band: the current one), and the reason."""
    have = memory.running[name]
    true_per_s = sum([sample.service_per_s[name] for sample in memory.samples]) / len(memory.samples)
    catch_up = backlog_rows / settings.catch_up_s
    capacity = have * true_per_s
    low, high = catch_up + rate_per_s / settings.utilisation_most, catch_up + rate_per_s / settings.utilisation_least
    if low * (1 - _ROUNDING) <= capacity <= high * (1 + _ROUNDING):
        return have, f"{rate(capacity, 6)} are between {rate(low, 6)} and {rate(high, 6)}: {have} kept"
    target = catch_up + rate_per_s * settings.restart_s / settings.catch_up_s + rate_per_s / settings.utilisation_target
    asked = whole(target / true_per_s)
    return asked, f"{rate(target, 6)} / {rate(true_per_s, 6)} each: {asked}"


def _noted(settings: FlinkAutoscaler, before: Fewer | None, now_s: float, size: int) -> Fewer:
    if before is None:
        return Fewer(now_s, ((now_s, size),))
    # only the largest matters, so earlier sizes that are not larger are dropped
    recent = tuple(old for old in before.sizes if old[0] >= now_s - settings.scale_down_s and old[1] > size)
    return Fewer(before.since_s, (*recent, (now_s, size)))


def _lowered(settings: FlinkAutoscaler, fewer: Fewer, now_s: float, have: int) -> tuple[int, str]:
    """The smaller size if recommended for long enough: the largest recommendation, limited by the factor."""
    waited_s = now_s - fewer.since_s
    if waited_s < settings.scale_down_s:
        return have, f"recommended for {waited_s:g} of {settings.scale_down_s:g} s: {have} kept"
    largest = max(size for _, size in fewer.sizes)
    floor = whole(have * (1 - settings.scale_down_factor))
    return max(largest, floor), f"at most {largest} in {settings.scale_down_s:g} s, at least {floor} at once"


def _backlog_rows(situation: Situation) -> dict[str, float]:
    """Backlog of each operator: its own queue, and what the queues upstream will send it.

    If no queue was measured, the pipeline's backlog is assumed to be at the sources.
    """
    topology, observation = situation.topology, situation.observation
    rows = {name: max(0.0, observation.of(name).queue_rows or 0.0) for name in topology.names}
    if all(observation.of(name).queue_rows is None for name in topology.names):
        shares = sum(topology.share_of(source) for source in topology.sources)
        per_share = max(0.0, observation.backlog_rows or 0.0) / shares if shares > 0 else 0.0
        for edge in topology.edges:
            if is_source(edge.origin):
                rows[edge.target] += per_share * topology.share_of(edge.origin) * edge.selectivity
    outgoing: dict[str, list[Edge]] = {}
    for edge in topology.inner_edges:
        outgoing.setdefault(edge.origin, []).append(edge)
    passed: set[str] = set()
    for name in topology.order:
        passed.add(name)
        for edge in outgoing.get(name, ()):
            if edge.target not in passed:  # rows on a loop are not counted twice
                rows[edge.target] += rows[name] * edge.selectivity
    return rows
