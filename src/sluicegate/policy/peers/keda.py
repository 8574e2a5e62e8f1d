"""KEDA's Kafka scaler, one scaled object per operator.

    n = ceil(lag / lag threshold),  at most the topic's partitions (more consumers than partitions would idle)

polled every 30 s. Scaling up is immediate; scaling down needs 300 s of smaller sizes and goes to the largest of them.
Our readings: an operator's lag is its queue; if no queue was measured, each operator that reads a source has the
pipeline's whole backlog; an operator whose lag is unknown keeps its size. KEDA itself applies the cool-down to the last
replica and leaves the others to Kubernetes' window, which is as long: both are one here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.domain import Proposal, Situation, is_source
from sluicegate.domain.topology import require, require_number
from sluicegate.policy.peers.hpa import Recommendations, largest_of, noted
from sluicegate.policy.peers.readings import running_of, whole
from sluicegate.policy.within_limits import proposal_within


@dataclass(frozen=True, slots=True)
class KedaMemory:
    """The last poll (time, sizes, reasons), and the recommended sizes within the cool-down."""

    polled_s: float
    wanted: Mapping[str, int]
    reasons: tuple[str, ...]
    recommended: Recommendations


@dataclass(frozen=True, slots=True)
class Keda:
    """The policy. ``lag_threshold_rows`` is the lag one processor may have (KEDA's default 10); lower needs more.

    ``partitions``: of the topic an operator reads (KEDA's default for the most replicas, 100). ``poll_s``: time
    between polls of the lag. ``cool_down_s``: how long smaller sizes must be recommended before scaling down.

    >>> from sluicegate.domain import Edge, Observation, Operator, OperatorObservation, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> behind = Observation(0.0, 450.0, {"a": 4}, {"a": OperatorObservation(queue_rows=75.0)})
    >>> Keda(partitions=16).propose(None, Situation(0.0, one, behind, 450.0, {"a": 450.0}))[1].processors
    {'a': 8}
    """

    lag_threshold_rows: float = 10.0
    partitions: int = 100
    poll_s: float = 30.0
    cool_down_s: float = 300.0

    def __post_init__(self) -> None:
        require_number(self.lag_threshold_rows, "keda lag_threshold_rows", above=True)
        require(self.partitions >= 1, f"keda partitions is {self.partitions}: give at least 1")
        require_number(self.poll_s, "keda poll_s")
        require_number(self.cool_down_s, "keda cool_down_s")

    @property
    def name(self) -> str:
        return "keda"

    def start(self) -> KedaMemory | None:
        return None

    def propose(self, memory: KedaMemory | None, situation: Situation) -> tuple[KedaMemory, Proposal]:
        if memory is None or situation.now_s - memory.polled_s >= self.poll_s:
            memory = self._polled(memory, situation)
        return memory, proposal_within(memory.wanted, memory.reasons, situation)

    def _polled(self, memory: KedaMemory | None, situation: Situation) -> KedaMemory:
        now_s, running, lags = situation.now_s, running_of(situation), _lags_rows(situation)
        past = memory.recommended if memory else ((now_s, running),)
        best = {name: self._recommended(lags.get(name), have) for name, have in running.items()}
        recommended = noted(past, now_s, best, self.cool_down_s)
        wanted: dict[str, int] = {}
        reasons: list[str] = []
        for name, have in running.items():
            held = largest_of(recommended, name)
            wanted[name] = best[name] if best[name] >= have else min(have, held)
            lag = f"lag {lags[name]:g} rows / {self.lag_threshold_rows:g} rows" if name in lags else "lag unknown"
            reasons.append(
                f"{name}: {lag}, {self.partitions} partitions: {best[name]},"
                f" at most {held} in {self.cool_down_s:g} s: {wanted[name]}"
            )
        return KedaMemory(now_s, wanted, tuple(reasons), recommended)

    def _recommended(self, lag_rows: float | None, have: int) -> int:
        if lag_rows is None:
            return have
        return min(self.partitions, max(1, whole(lag_rows / self.lag_threshold_rows)))


def _lags_rows(situation: Situation) -> dict[str, float]:
    """The lags that are known, by operator."""
    topology, observation = situation.topology, situation.observation
    measured = {name: observation.of(name).queue_rows for name in topology.names}
    known = {name: max(0.0, rows) for name, rows in measured.items() if rows is not None}
    if known or observation.backlog_rows is None:
        return known
    readers = dict.fromkeys(edge.target for edge in topology.edges if is_source(edge.origin))
    return dict.fromkeys(readers, max(0.0, observation.backlog_rows))
