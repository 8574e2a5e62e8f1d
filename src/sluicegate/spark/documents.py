"""JSON documents that the controller logs for every tick and every move, for status, dashboard and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from sluicegate.control.loop import LoopState
from sluicegate.domain import Decision, Observation, OperatorObservation, Situation
from sluicegate.domain.topology import Operator
from sluicegate.model.traffic import outside_rate
from sluicegate.policy.demand import stations_of
from sluicegate.policy.pace import paced_mean_s
from sluicegate.runlog.failures import Failing
from sluicegate.spark.what_if import band

MOST_LOG_BYTES = 8_000_000
"""A log of ticks or decisions is renamed beyond this size, and the one before it deleted. At half, `report` and the
dashboard go back half as far; at double, a run keeps up to twice as much on the disk."""


def decision_document(
    decision: Decision, number: int, situation: Situation | None = None, failing: Sequence[Failing] = ()
) -> dict[str, object]:
    """A decision as the log and the command line's JSON show it; ``number`` identifies it to users."""
    load = None if situation is None else outside_rate(situation.topology, situation.arrivals_per_s)
    return {
        "number": number,
        "at_s": round(decision.at_s, 3),
        "running": dict(decision.running),
        "rescales": [asdict(rescale) for rescale in decision.rescales],
        "changes": [asdict(change) for change in decision.changes],
        "executors": decision.executors,
        "nodes": decision.nodes,
        "reasons": list(decision.reasons),
        "refusals": [asdict(refusal) for refusal in decision.refusals],
        "arrivals_per_s": load,
        "predicted_mean_s": predicted_mean_s(situation, decision),
        "failing": [one.line(decision.at_s) for one in failing],
    }


def tick_document(
    state: LoopState,
    seen: Observation,
    decision: Decision,
    executors: int | None = None,
    failing: Sequence[Failing] = (),
) -> dict[str, object]:
    """The log line of one tick: load, latency, allocation, refusals, nodes and operators."""
    learned = {o.name: o for o in state.learned.topology.operators}
    return {
        "at_s": round(seen.at_s, 3),
        "arrivals_per_s": seen.arrivals_per_s,
        "throughput_per_s": seen.throughput_per_s,
        "backlog_rows": seen.backlog_rows,
        "sojourn": None if seen.sojourn is None else asdict(seen.sojourn),
        "predicted_mean_s": predicted_mean_s(state.situation, decision),
        "forecast": band(state.forecast),
        "running": dict(decision.running),
        "observed": dict(seen.running),
        "rescaling": seen.rescaling,
        "pace_s": {name: round(pace, 3) for name, pace in decision.pace_s.items()},
        "changes": [asdict(change) for change in decision.changes],
        "refusals": [asdict(refusal) for refusal in decision.refusals],
        "executors": executors,
        "failing": [one.line(seen.at_s) for one in failing],
        "nodes": [asdict(node) for node in seen.nodes],
        "operators": {name: _operator(learned[name], o) for name, o in seen.operators.items()},
    }


def _operator(learned: Operator, seen: OperatorObservation) -> dict[str, object]:
    return {
        "arrivals_per_s": seen.arrivals_per_s,
        "queue_rows": seen.queue_rows,
        "sojourn_s": seen.sojourn_s,
        "utilisation": seen.utilisation,
        "arrival_scv": seen.arrival_scv,
        "service_scv": seen.service_scv,
        "service_per_s": learned.service_per_s,
        "batch": None if learned.batch is None else asdict(learned.batch),
    }


def predicted_mean_s(situation: Situation | None, decision: Decision) -> float | None:
    """The mean latency that the model predicts for the decision and its paces; ``None`` if queues would grow."""
    if situation is None:
        return None
    k = np.array([decision.running[name] for name in situation.topology.names], dtype=np.int64)
    mean_s = paced_mean_s(stations_of(situation), k, decision.pace_s)
    return round(mean_s, 4) if np.isfinite(mean_s) else None
