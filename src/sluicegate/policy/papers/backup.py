"""Decides how often state is backed up (Es-Stream V-C).

Interval: a stateful instance sends its state upstream every CI while its node's load is below alpha; above it the
interval is infinite, so that a loaded node does no backup work. Kept output: the upstream keeps its output since the
last backup.

Our reading: with an infinite interval the kept output is unbounded, so a backup is forced once ``most_kept_rows``
rows are kept, whatever the node's load.

On Spark every batch commits state, so the interval is the pace of a stateful operator's batches, and a failure rolls
back only the current batch of that operator. Rows wait for half the interval on average, so it is also bounded by a
share of the latency goal. Repair (Eq 26): with lambda/k rows a second replayed at mu by each instance,
SR = CI lambda/(k mu) <= ``repair_s`` bounds CI; the read rate of an edge is far above mu.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.domain import Goal, Situation
from sluicegate.domain.topology import require, require_number
from sluicegate.model.state_move import kept_for_s

_DELAY_SHARE = 0.3
"""Largest interval as a share of a latency bound: it delays rows by half of it. At double the pace alone may exceed the
bound."""
_MOST_INTERVAL_S = 60.0
"""Interval if nothing else bounds it: state is committed at least once a minute."""


@dataclass(frozen=True, slots=True)
class BackupRule:
    """The interval CI (2 s in the paper's figures), alpha, and how many rows an upstream may keep (ours).

    100,000 rows of 92 bytes are 9 MB at an upstream instance, and 50 s of a 2,000 rows/s stream. ``repair_s`` bounds
    the time that a repair may take.
    """

    interval_s: float = 2.0
    alpha: float = 0.8
    most_kept_rows: int = 100_000
    repair_s: float = math.inf

    def __post_init__(self) -> None:
        require_number(self.interval_s, "backup interval_s", above=True)
        require(0 < self.alpha <= 1, f"alpha is {self.alpha}: give a share of a node, above 0 and at most 1")
        require(self.repair_s > 0, f"repair_s is {self.repair_s}: give seconds, above 0")
        require(self.most_kept_rows >= 1, f"most_kept_rows is {self.most_kept_rows}: give at least 1")


@dataclass(frozen=True, slots=True)
class BackupInterval:
    """Seconds between two backups (``inf``: none is due), and whether the bound on kept rows set it."""

    interval_s: float
    forced: bool
    reason: str


def backup_interval(node_load: float, kept_rows_per_s: float, rule: BackupRule | None = None) -> BackupInterval:
    """The backup interval of an instance on a node with this load.

    >>> backup_interval(0.5, 900.0).interval_s, round(backup_interval(0.9, 900.0).interval_s, 1)
    (2.0, 111.1)
    """
    rule = rule or BackupRule()
    loaded = node_load >= rule.alpha
    wish = math.inf if loaded else rule.interval_s
    interval = kept_for_s(wish, kept_rows_per_s, rule.most_kept_rows)
    sign = ">=" if loaded else "<"
    why = f"node load {node_load:.0%} {sign} {rule.alpha:.0%}: {'no backup' if loaded else f'every {wish:g} s'}"
    if interval < wish:
        why += f", but after {interval:.3g} s {rule.most_kept_rows:,} rows are kept upstream: a backup is forced then"
    return BackupInterval(interval, interval < wish, why)


def backup_paces(
    situation: Situation, processors: Mapping[str, int], rule: BackupRule | None = None
) -> dict[str, BackupInterval]:
    """The interval of every stateful operator, by the load of the nodes that host it; none without measured load.

    >>> from sluicegate.domain import Edge, NodeObservation, Observation, Operator, Topology
    >>> one = Topology("t", (Operator("count", 100.0, stateful=True),), (Edge("source", "count"),))
    >>> def paces(load):
    ...     seen = Observation(0.0, 80.0, {"count": 1}, nodes=(NodeObservation("n1", load, hosts={"count": 1}),))
    ...     now = Situation(0.0, one, seen, 80.0, {"count": 80.0})
    ...     return backup_paces(now, {"count": 1}, BackupRule(repair_s=4.0))
    >>> paces(0.5)["count"].interval_s, paces(0.9)["count"].interval_s
    (2.0, 5.0)
    """
    rule, nodes = rule or BackupRule(), situation.observation.nodes
    found = dict[str, BackupInterval]()
    for operator in situation.topology.operators:
        hosting = [node for node in nodes if node.hosts.get(operator.name)] or list(nodes)
        if operator.stateful and hosting:
            arrivals = max(situation.operator_arrivals_per_s.get(operator.name, 0.0), 0.0)
            busy = arrivals / (operator.service_per_s * max(processors.get(operator.name, 1), 1))
            found[operator.name] = _within_bounds(
                backup_interval(max(node.load for node in hosting), arrivals, rule), busy, situation.goal, rule
            )
    return found


def _within_bounds(asked: BackupInterval, busy: float, goal: Goal, rule: BackupRule) -> BackupInterval:
    """The interval capped by Eq 26 and by the latency goal."""
    bounds = {
        f"a repair within {rule.repair_s:g} s": rule.repair_s / busy if busy > 0 else math.inf,
        "a commit at least once a minute": _MOST_INTERVAL_S,
        "the promised latency": min((_DELAY_SHARE * b for b in goal.latency_bounds.values()), default=math.inf),
    }
    what, bound_s = min(bounds.items(), key=lambda item: item[1])
    if asked.interval_s <= bound_s:
        return asked
    return BackupInterval(bound_s, True, f"{asked.reason}; {what} allows {bound_s:.3g} s")
