"""Computes the allocation of sluicegate's policy for a constant load from the operator costs that a run measured.

A finished run is compared with it; no run starts from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sluicegate.config.typed import goal_from
from sluicegate.control.planning import proposal_at
from sluicegate.control.settings import policy_for
from sluicegate.domain import BatchCosts, Limits, Topology
from sluicegate.policy.demand import situation_at
from sluicegate.runlog.batch_log import BatchRecord
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.graph import RunningGraph

Records = Mapping[str, list[BatchRecord]]


def processors_for(
    rate_per_s: float,
    graph: RunningGraph,
    control: Control,
    topology: Topology,
    records: Records,
    most_tasks: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The policy's allocation for a constant load, with the costs in ``topology`` and the visits in ``records``.

    ``most_tasks`` caps operators that read topics at their number of partitions.
    """
    rows_in = sum(r.rows for n in graph.nodes if set(n.reads) & set(graph.sources) or n.source for r in records[n.name])
    if rate_per_s <= 0 or not rows_in:
        return {}
    most = {node.name: node.key_groups for node in graph.nodes if node.stateful}
    limits = Limits(budget=control.budget, most_of={**most, **(most_tasks or {})})
    situation = situation_at(topology, rate_per_s, goal_from(list(control.slo)), limits)
    arrivals = {name: rate_per_s * sum(r.rows for r in found) / rows_in for name, found in records.items()}
    policy = policy_for("sluicegate", control.timing)
    return dict(proposal_at(policy, replace(situation, operator_arrivals_per_s=arrivals)).processors)


def as_told(topology: Topology, tick: Mapping[str, Any]) -> Topology:
    """The topology with the operator figures of a controller's tick."""
    told = tick["operators"]
    operators = tuple(
        o.with_figures(told[o.name]["service_per_s"], o.arrival_scv, o.service_scv, BatchCosts(**told[o.name]["batch"]))
        for o in topology.operators
    )
    return topology.with_operators(operators)
