"""Builds the observation of a real-time query: arrivals from the broker's offsets, the rest from the output rows.

Stages are modelled as queues with servers, so service times and their variability come from single rows, not batches.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from sluicegate.domain import Observation, OperatorObservation, Sojourn
from sluicegate.domain.births import quantile_s
from sluicegate.runlog.batch_log import DAMAGE, Tail
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.observe.variability import Variability
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.realtime.marks import StageFigures, from_document

_SECONDS = 30
"""Service times are averaged over this many of the last seconds with rows. At half they vary more between two ticks."""
_BATCHES = 12
"""Rows per stage are averaged over this many batches. At half the average varies more."""


@dataclass(slots=True)
class RealTimeObserver:
    """Observes a real-time query; keeps its position in the per-second log between calls."""

    layout: Layout
    graph: RunningGraph
    tail: Tail
    recent: dict[str, deque[StageFigures]] = field(default_factory=dict)
    unevenness: dict[str, Variability] = field(default_factory=dict)
    batches: deque[dict[str, int]] = field(default_factory=lambda: deque(maxlen=_BATCHES))
    last: dict[str, Any] = field(default_factory=dict)
    executors: int | None = None

    @classmethod
    def of(cls, layout: Layout, graph: RunningGraph) -> RealTimeObserver:
        return cls(layout, graph, Tail(layout.stages))

    @property
    def most_tasks(self) -> dict[str, int]:
        """The task limit of the first stage, which reads a topic: one task per partition."""
        first = self.graph.nodes[0]
        return {first.name: first.key_groups}

    @property
    def pause_s(self) -> float | None:
        """The pause of the last rescale, from the commit to the first output row."""
        told = self.last.get("pause_s")
        return float(told) if told is not None else None

    def observe(self, now_s: float) -> Observation:
        """Observe what happened since the last call."""
        lines = list(self._lines())
        self.last = lines[-1] if lines else self.last
        span_s = sum(float(line["span_s"]) for line in lines)
        for line in lines:
            self._take(line)
        arrivals = sum(int(line["came"]) for line in lines) / span_s if span_s > 0 else None
        plan = PlanFile(self.layout.plan).read()
        asked = {node.name: plan.of(node.name).processors for node in self.graph.nodes}
        running = {**asked, **{name: int(k) for name, k in self.last.get("running", {}).items()}}
        operators = {
            node.name: self._operator(
                node.name, None if arrivals is None else arrivals * self.visits(node.name), running[node.name]
            )
            for node in self.graph.nodes
        }
        moving = bool(self.last.get("rescaling")) or (bool(self.last) and running != asked)
        return Observation(
            at_s=now_s,
            arrivals_per_s=arrivals,
            running=running,
            operators=operators,
            sojourn=_sojourn([(float(a), float(w)) for line in lines for a, w in line["ages"]]),
            throughput_per_s=sum(int(line["out"]) for line in lines) / span_s if span_s > 0 else None,
            backlog_rows=sum(one.queue_rows or 0.0 for one in operators.values()),
            rescaling=moving,
            unmeasured=frozenset(name for name in running if name not in self.recent),
            requested=asked,
        )

    def _lines(self) -> list[dict[str, Any]]:
        found = []
        for text in self.tail.lines():
            with contextlib.suppress(*DAMAGE):
                found.append(dict(json.loads(text)))
        return found

    def visits(self, name: str) -> float:
        """Rows that a stage takes per input row; 1 until a batch has been counted."""
        came = sum(batch[self.graph.nodes[0].name] for batch in self.batches)
        return sum(batch[name] for batch in self.batches) / came if came else 1.0

    def _take(self, line: dict[str, Any]) -> None:
        if line["counted"]:
            self.batches.append({name: int(rows) for name, rows in line["counted"].items()})
        for name, told in from_document(line["stages"]).items():
            if told.rows and not line["rescaling"] and not line["cold"]:
                self.recent.setdefault(name, deque(maxlen=_SECONDS)).append(told)
            first = name == self.graph.nodes[0].name
            self.unevenness.setdefault(name, Variability()).take(int(line["came"]) if first else told.rows, ())

    def _operator(self, name: str, arrivals: float | None, k: int) -> OperatorObservation:
        total = sum(self.recent.get(name, ()), StageFigures())
        served = total.service_per_s
        wait_s = total.wait_s / total.rows if total.rows else None
        return OperatorObservation(
            arrivals_per_s=arrivals,
            service_per_s=served,
            arrival_scv=self.unevenness[name].arrival_scv if name in self.unevenness else None,
            service_scv=total.service_scv,
            utilisation=min(arrivals / (k * served), 1.0) if served and arrivals is not None else None,
            queue_rows=arrivals * wait_s if wait_s is not None and arrivals is not None else None,  # Little's law
            sojourn_s=(total.service_s + total.wait_s) / total.rows if total.rows else None,
        )


def _sojourn(ages: list[tuple[float, float]]) -> Sojourn | None:
    if not ages:
        return None
    mean_s = sum(age * w for age, w in ages) / sum(w for _, w in ages)
    return Sojourn(mean_s, quantile_s(ages, 0.5), quantile_s(ages, 0.95), quantile_s(ages, 0.99))
