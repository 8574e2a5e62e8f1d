"""Simulated measurements under a constant load, by the queueing model, as input of ``settle``.

    utilisation = min(1, (lambda + backlog/step) / (k mu))        queue = backlog + lambda E[Q]   (Erlang, GI/G/k)
    backpressure = 1 - k mu/lambda where lambda > k mu, else 0    sojourn = E[Q] + backlog/(k mu) + 1/mu
    backlog after a step = max(0, backlog + (lambda - k mu) step)
    pending tasks = queued work, in tasks of one second each

Every operator receives its full share of the load, also while an upstream operator is behind: only the converged
allocation matters, not the order in which queues fill. Near saturation E[Q] takes long to build up, so it is capped at
one step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain import Observation, Operator, OperatorObservation, Sojourn, Topology
from sluicegate.model.erlang import mean_wait_s
from sluicegate.model.traffic import visits


@dataclass(frozen=True, slots=True)
class SteadyLoad:
    """A pipeline at a constant ``rate_per_s``, measured every ``step_s``; ``visits`` are per row of that rate.

    >>> from sluicegate.domain import Edge
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> load = steady_load(one, 450.0, step_s=60.0)
    >>> behind = load.backlog_after({"a": 4}, {"a": 0.0})
    >>> behind, load.observe(60.0, {"a": 5}, behind).of("a").utilisation
    ({'a': 3000.0}, 1.0)
    """

    topology: Topology
    rate_per_s: float
    step_s: float
    visits: Mapping[str, float]
    arrivals_per_s: Mapping[str, float]
    # cache of waits by operator and size: a converged policy needs the same ones repeatedly
    waits_s: dict[tuple[str, int], float] = field(default_factory=dict)

    def observe(self, at_s: float, running: Mapping[str, int], backlog: Mapping[str, float]) -> Observation:
        operators = {o.name: self._operator(o, running[o.name], backlog[o.name]) for o in self.topology.operators}
        busy = sum((seen.utilisation or 0.0) * running[name] for name, seen in operators.items())
        waiting_s = sum((seen.queue_rows or 0.0) / (seen.service_per_s or 1.0) for seen in operators.values())
        carried = [running[o.name] * o.service_per_s / v for o in self.topology.operators if (v := self.visits[o.name])]
        return Observation(
            at_s=at_s,
            arrivals_per_s=self.rate_per_s,
            running=dict(running),
            operators=operators,
            sojourn=self._sojourn(operators),
            throughput_per_s=min([self.rate_per_s, *carried]),
            backlog_rows=sum(seen.queue_rows or 0.0 for seen in operators.values()),
            pending_tasks=math.floor(waiting_s),
            running_tasks=math.ceil(busy - 1e-9),
        )

    def backlog_after(self, running: Mapping[str, int], backlog: Mapping[str, float]) -> dict[str, float]:
        """The backlog after one step with ``running``."""
        return {
            o.name: max(
                0.0, backlog[o.name] + (self.arrivals_per_s[o.name] - running[o.name] * o.service_per_s) * self.step_s
            )
            for o in self.topology.operators
        }

    def _operator(self, operator: Operator, processors: int, backlog_rows: float) -> OperatorObservation:
        arrivals, capacity = self.arrivals_per_s[operator.name], processors * operator.service_per_s
        wait_s = self._wait_s(operator, processors)
        utilisation = min(1.0, (arrivals + backlog_rows / self.step_s) / capacity)
        return OperatorObservation(
            arrivals_per_s=arrivals,
            service_per_s=operator.service_per_s,
            arrival_scv=operator.arrival_scv,
            service_scv=operator.service_scv,
            utilisation=utilisation,
            queue_rows=backlog_rows + arrivals * wait_s,
            backpressure=1 - capacity / arrivals if arrivals > capacity else 0.0,
            sojourn_s=wait_s + backlog_rows / capacity + 1 / operator.service_per_s,
            saturated_per_s=capacity if utilisation >= 1 else None,
        )

    def _wait_s(self, operator: Operator, processors: int) -> float:
        key = (operator.name, processors)
        if key not in self.waits_s:
            arrivals = self.arrivals_per_s[operator.name]
            wait_s = mean_wait_s(
                arrivals, operator.service_per_s, processors, operator.arrival_scv, operator.service_scv
            )
            self.waits_s[key] = min(wait_s, self.step_s) if math.isfinite(wait_s) else 0.0
        return self.waits_s[key]

    def _sojourn(self, operators: Mapping[str, OperatorObservation]) -> Sojourn | None:
        """DRS Eq 3: the sum of the operators' sojourns, weighted by visits."""
        entering = sum(self.topology.share_of(source) for source in self.topology.sources)
        if entering <= 0:
            return None
        total_s = sum(self.visits[name] * (seen.sojourn_s or 0.0) for name, seen in operators.items())
        return Sojourn(total_s / entering)


def steady_load(topology: Topology, rate_per_s: float, step_s: float) -> SteadyLoad:
    """The constant load of ``rate_per_s`` on a pipeline."""
    visited = dict(zip(topology.names, visits(topology).tolist(), strict=True))
    return SteadyLoad(topology, rate_per_s, step_s, visited, {name: rate_per_s * v for name, v in visited.items()})
