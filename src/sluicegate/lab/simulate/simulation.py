"""Simulates a pipeline at a steady load (or along a trace) and reports latencies with confidence intervals.

The run is split into 200 windows; totals are copied after each, so every figure is a difference of two copies. The
first tenth of steady runs is dropped as warm-up; a run along a trace is measured from its start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain import Operator, Topology
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require_number
from sluicegate.lab.simulate.build import build
from sluicegate.lab.simulate.kernel import advance
from sluicegate.lab.simulate.placing import hosts_of, thread_per_s
from sluicegate.lab.simulate.records import BATCHED, Counts, Floats, Net, Records, rows_inside
from sluicegate.lab.simulate.scenario import Behaviour, Discipline, Load, Mode, Scenario, scenario
from sluicegate.lab.simulate.statistics import WARM_UP_WINDOWS, WINDOWS, growth_per_s, quantile, ratio
from sluicegate.model.traffic import solve


def offered_loads(scenario: Scenario, seconds: float) -> dict[str, float]:
    """Offered rate over capacity by operator, for the mean arrival rate over the first ``seconds``.

    A shared queue is served by all its processors together; an instance's own queue by one. Back-pressure can make
    a network unstable below these loads; only the simulation shows that.

    >>> from sluicegate.domain import Edge, Operator, Topology
    >>> from sluicegate.lab.simulate.scenario import Behaviour, scenario, weighted
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> offered_loads(scenario(one, 12.0, {"a": 2}), 60.0)
    {'a': 0.6}
    >>> offered_loads(scenario(one, 12.0, {"a": 2}, behaviour=Behaviour(routing={"a": weighted(3, 1)})), 60.0)
    {'a': 0.9}
    """
    rates = {source: arrivals.mean_per_s(seconds) for source, arrivals in scenario.arrivals.items()}
    arrivals = solve(scenario.topology, rates)
    return {
        operator.name: _offered(scenario, operator, float(rate))
        for operator, rate in zip(scenario.topology.operators, arrivals, strict=True)
    }


def _offered(scenario: Scenario, operator: Operator, arrivals_per_s: float) -> float:
    speeds = _thread_rates(scenario, operator)
    routing = scenario.routing(operator.name)
    if operator.name in scenario.batches:
        return arrivals_per_s / (len(speeds) * min(speeds))
    if routing.discipline is Discipline.SHARED:
        return arrivals_per_s / sum(speeds)
    shares = routing.shares(len(speeds))
    return max(arrivals_per_s * share / speed for share, speed in zip(shares, speeds, strict=True))


def _thread_rates(scenario: Scenario, operator: Operator) -> list[float]:
    placement = scenario.behaviour.placement
    if placement is None:
        return [operator.service_per_s] * scenario.allocation[operator.name]
    return [thread_per_s(scenario, placement, operator.name, slot) for slot in hosts_of(placement, operator.name)]


_MOST_ROWS = 8_000_000
"""Size of the row pool at which an unstable run is aborted: the process stays below a gigabyte."""

_ADDED = ("arrivals", "waited", "busy", "held", "blocked", "batches", "batch_time")

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """One operator over the measured time.

    ``mean_s`` is a row's mean time at the operator, from entering its queue until it is served and, under
    back-pressure, has left (``ci95_s``: half width of its interval). ``utilisation`` is the share of its processors'
    time spent on rows; ``queue`` the mean number of waiting rows; ``backpressure`` the share of time in which it
    blocked a sender; ``blocked`` the share of its processors' time in which they were blocked themselves. ``batch_s``
    is the mean duration of its micro-batches, if it runs in batches.
    """

    processors: int
    mean_s: float | None
    ci95_s: float | None
    utilisation: float
    queue: float
    arrivals_per_s: float
    backpressure: float = 0.0
    blocked: float = 0.0
    batch_s: float | None = None


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """A run, measured after its warm-up.

    ``mean_s`` is DRS Eq 4: per input, the sum of the sojourns of all its descendant rows at all operators (including
    time held outside by back-pressure); ``ci95_s`` is the half width of its 95% confidence interval, so the
    interval is ``mean_s`` plus or minus ``ci95_s``. ``completion_mean_s``, ``p50_s``, ``p95_s``, ``p99_s`` are of the
    time from an input's birth until the last of its rows is done. On chains, and wherever a row takes exactly one
    path, both means are the same time from entry to exit.

    In an unstable steady run (``stable`` is false) these figures are ``None``; ``growth_per_s`` is how fast the backlog
    grows, and ``reasons`` says why. ``simulated_s`` is shorter than requested only if the backlog exceeded the limit.
    """

    mean_s: float | None
    ci95_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    completion_mean_s: float | None
    operators: Mapping[str, OperatorResult]
    arrivals_per_s: float
    completed: int
    events: int
    simulated_s: float
    warm_up_s: float
    stable: bool
    growth_per_s: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Recording:
    """Copies of the totals at the bounds of the measured windows, one more than the number of windows."""

    window_s: float
    warm_up_s: float
    nodes: Records
    totals: Records
    inside: Floats
    histogram: Counts

    @property
    def measured_s(self) -> float:
        return (len(self.totals) - 1) * self.window_s

    def added(self, what: str) -> float:
        return float(self.totals[what][-1] - self.totals[what][0])


def simulate(
    topology: Topology,
    load: Load,
    allocation: Mapping[str, int],
    seconds: float,
    seed: int,
    *,
    mode: Mode = "queue",
    behaviour: Behaviour | None = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Simulate ``seconds`` of a pipeline; the same seed gives the same result.

    ``load`` is the pipeline's rate in rows per second (Poisson, or with the ``arrival_scv`` of the operator a source
    feeds), or ``Arrivals``. ``progress`` is called with the share done, 0 to 1.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> result = simulate(one, 15.0, {"a": 2}, seconds=20_000, seed=1)
    >>> abs(result.mean_s - 0.2286) < 0.01, result.stable, result.events
    (True, True, 600328)
    """
    require_number(seconds, "seconds", above=True)
    order = scenario(topology, load, allocation, mode, behaviour)
    net = build(order, seed)
    net, recording = _record(net, order, seconds, progress)
    return _result(order, recording, int(net.totals["events"][0]))


def _record(net: Net, order: Scenario, seconds: float, progress: Progress | None) -> tuple[Net, Recording]:
    start = WARM_UP_WINDOWS if _steady(order) else 0
    copies: list[tuple[Records, Records, float]] = []
    before: Counts = net.histogram.copy()
    for window in range(WINDOWS + 1):
        net, finished = advance(net, seconds * window / WINDOWS, _MOST_ROWS)
        if not finished:
            break
        if window == start:
            before = net.histogram.copy()
        if window >= start:
            copies.append((net.nodes.copy(), net.totals.copy(), float(rows_inside(net))))
        if progress is not None:
            progress(window / WINDOWS)
    if not copies:
        copies.append((net.nodes.copy(), net.totals.copy(), float(rows_inside(net))))
    nodes, totals, inside = zip(*copies, strict=True)
    window_s = seconds / WINDOWS
    made = np.stack(nodes), np.concatenate(totals), np.array(inside), net.histogram - before
    return net, Recording(window_s, start * window_s, *made)


def _steady(order: Scenario) -> bool:
    return all(arrivals.steady for arrivals in order.arrivals.values())


def _result(order: Scenario, recording: Recording, events: int) -> SimulationResult:
    totals, measured_s = recording.totals, recording.measured_s
    reasons = _troubles(order, recording)
    told = not (reasons and _steady(order))
    mean = ratio(_steps(totals["total"]), _steps(totals["completed"])) if told else None
    completed = recording.added("completed")
    counted = recording.histogram if told else np.zeros_like(recording.histogram)
    return SimulationResult(
        mean_s=mean.mean if mean else None,
        ci95_s=mean.half_width if mean else None,
        p50_s=quantile(counted, 0.50),
        p95_s=quantile(counted, 0.95),
        p99_s=quantile(counted, 0.99),
        completion_mean_s=recording.added("completion") / completed if mean else None,
        operators={
            name: _operator(recording, index, order.allocation[name]) for index, name in enumerate(order.topology.names)
        },
        arrivals_per_s=recording.added("inputs") / measured_s if measured_s else 0.0,
        completed=int(completed),
        events=events,
        simulated_s=recording.warm_up_s + measured_s,
        warm_up_s=recording.warm_up_s,
        stable=not reasons,
        growth_per_s=growth_per_s(recording.inside, recording.window_s),
        reasons=reasons,
    )


def _steps(values: NDArray[np.generic]) -> Floats:
    """The increment in each window."""
    return np.diff(values.astype(np.float64))


def _troubles(order: Scenario, recording: Recording) -> tuple[str, ...]:
    """Why the run has no steady state: an overloaded operator, or a backlog that grows more than by chance."""
    seconds = recording.warm_up_s + recording.measured_s
    reasons = [
        f"{name} is offered {load:.3g} of what its {order.allocation[name]} processors can do: rows pile up"
        for name, load in offered_loads(order, max(seconds, recording.window_s)).items()
        if load >= 1
    ]
    if not reasons and order.behaviour.capacity:
        growth = growth_per_s(recording.inside, recording.window_s)
        let_in_per_s = recording.added("inputs") / max(recording.measured_s, recording.window_s)
        chance = 5 * math.sqrt(4 * let_in_per_s / seconds) + 0.005 * let_in_per_s
        if growth > chance:
            reasons.append(f"back-pressure lets less than {rate(let_in_per_s)} in: {rate(growth)} pile up outside")
    return tuple(reasons)


def _operator(recording: Recording, index: int, processors: int) -> OperatorResult:
    node = recording.nodes[:, index]
    took_s = max(recording.measured_s, recording.window_s)
    added = {what: float(node[what][-1] - node[what][0]) for what in _ADDED}
    sojourn = ratio(_steps(node["sojourn"]), _steps(node["done"]))
    batched = node["discipline"][0] == BATCHED and added["batches"] > 0
    return OperatorResult(
        processors=processors,
        mean_s=sojourn.mean if sojourn else None,
        ci95_s=sojourn.half_width if sojourn else None,
        utilisation=added["busy"] / (processors * took_s),
        queue=added["waited"] / took_s,
        arrivals_per_s=added["arrivals"] / took_s,
        backpressure=added["held"] / took_s,
        blocked=added["blocked"] / (processors * took_s),
        batch_s=added["batch_time"] / added["batches"] if batched else None,
    )
