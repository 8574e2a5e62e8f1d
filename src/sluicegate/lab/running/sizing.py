"""How many processors sluicegate's policy holds for a given load, by what a run has measured of its operators."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sluicegate.config.goal_text import goal_from
from sluicegate.control import loop
from sluicegate.domain import BatchCosts, Limits, Topology
from sluicegate.policy.demand import situation_at
from sluicegate.runlog.batch_log import BatchRecord
from sluicegate.runlog.layout import Layout
from sluicegate.spark.controller import Control, settings_of
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.pipeline.observing import Observer

Records = Mapping[str, list[BatchRecord]]


def processors_for(
    rate_per_s: float,
    graph: RunningGraph,
    control: Control,
    topology: Topology,
    records: Records,
    most_tasks: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The policy's answer to a constant load, with the costs in ``topology`` and the visits that the records show.

    ``most_tasks`` bounds operators that read topics with so many partitions.
    """
    rows_in = sum(r.rows for n in graph.nodes if set(n.reads) & set(graph.sources) or n.source for r in records[n.name])
    if rate_per_s <= 0 or not rows_in:
        return {}
    most = {node.name: node.key_groups for node in graph.nodes if node.stateful}
    limits = Limits(budget=control.budget, most_of={**most, **(most_tasks or {})})
    situation = situation_at(topology, rate_per_s, goal_from(list(control.slo)), limits)
    arrivals = {name: rate_per_s * sum(r.rows for r in found) / rows_in for name, found in records.items()}
    policy = settings_of(graph, replace(control, policy="sluicegate")).policy
    _, proposal = policy.propose(policy.start(), replace(situation, operator_arrivals_per_s=arrivals))
    return dict(proposal.processors)


def learned_so_far(layout: Layout, graph: RunningGraph, control: Control) -> Topology:
    """The operators as the loop would know them from the batches that are logged."""
    now_s = time.time()
    state = loop.start(settings_of(graph, control))
    state, _ = loop.tick(state, Observer.of(layout, graph).observe(now_s), now_s)
    return state.learned.topology


def as_told(topology: Topology, tick: Mapping[str, Any]) -> Topology:
    """The operators as a controller's tick told them."""
    told = tick["operators"]
    operators = tuple(
        o.with_figures(told[o.name]["service_per_s"], o.arrival_scv, o.service_scv, BatchCosts(**told[o.name]["batch"]))
        for o in topology.operators
    )
    return topology.with_operators(operators)
