"""When state is backed up, and what is rolled back after a failure or a change of parallelism (Es-Stream V-C).

Interval: a stateful instance sends its state upstream every CI while its node's load is below alpha; above it the
interval is infinite, so that a loaded node does no backup work. Kept output: the upstream keeps what it emitted since
the last backup.

Our reading: with an infinite interval the kept output has no bound, so a backup is forced once ``most_kept_rows``
rows are kept, loaded node or not. Only the affected operator is rolled back, and of it only the key groups that
change their owner or lost it: the others go on. What the operator had already sent on since the backup is not
sent again, or its downstream would count it twice.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from sluicegate.domain import Topology
from sluicegate.domain.topology import require, require_number
from sluicegate.model.state_move import kept_for_s
from sluicegate.policy.key_groups import GroupMove, Owners, Repartition


@dataclass(frozen=True, slots=True)
class BackupRule:
    """The interval CI (2 s in the paper's figures), alpha, and how many rows an upstream may keep (ours).

    100,000 rows of 92 bytes are 9 MB at an upstream instance, and 50 s of a 2,000 rows/s stream.
    """

    interval_s: float = 2.0
    alpha: float = 0.8
    most_kept_rows: int = 100_000

    def __post_init__(self) -> None:
        require_number(self.interval_s, "backup interval_s", above=True)
        require(0 < self.alpha <= 1, f"alpha is {self.alpha}: give a share of a node, above 0 and at most 1")
        require(self.most_kept_rows >= 1, f"most_kept_rows is {self.most_kept_rows}: give at least 1")


@dataclass(frozen=True, slots=True)
class BackupInterval:
    """Seconds between two backups (``inf``: none is due), and whether the bound on kept rows set it."""

    interval_s: float
    forced: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ReEmit:
    """``origin`` sends the rows again that it kept for these groups since the last backup."""

    origin: str
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rollback:
    """What to undo and redo for ``operator``, in this order: hold its rows, send state, re-emit, let rows flow.

    ``holder`` has the backups; ``sends`` says which group's backup goes to which instance (its ``origin`` is the
    instance that owned the group); ``muted`` are the groups whose outputs, already sent on since the backup, must be
    dropped while the kept rows are worked off again.
    """

    operator: str
    holder: str | None
    sends: tuple[GroupMove, ...]
    re_emits: tuple[ReEmit, ...]
    muted: tuple[int, ...]
    reason: str


def backup_interval(node_load: float, kept_rows_per_s: float, rule: BackupRule | None = None) -> BackupInterval:
    """How often an instance on such a node sends its state upstream.

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


def rollback_for_rescale(topology: Topology, operator: str, plan: Repartition) -> Rollback:
    """Only the groups that change their owner are rolled back to their backup.

    >>> from sluicegate.domain import Edge, Operator
    >>> from sluicegate.policy.key_groups import ranges, repartition
    >>> two = (Operator("a", 9.0), Operator("b", 9.0, stateful=True))
    >>> t = Topology("t", two, (Edge("source", "a"), Edge("a", "b")))
    >>> rollback = rollback_for_rescale(t, "b", repartition(ranges(4, 1), 2))
    >>> rollback.holder, [(send.group, send.target) for send in rollback.sends], rollback.re_emits[0].groups
    ('a', [(2, 1), (3, 1)], (2, 3))
    """
    if not topology.operator(operator).stateful:
        return Rollback(operator, None, (), (), (), f"{operator} has no state: nothing moves, nothing is replayed")
    why = f"{len(plan.moves)} of {len(plan.after)} key groups of {operator} change their owner; only they roll back"
    return _rollback(topology, operator, plan.moves, why)


def rollback_for_failure(topology: Topology, operator: str, owners: Owners, failed: Collection[int]) -> Rollback:
    """The groups of the failed instances are restored where they were; without state there are only rows to send."""
    lost = tuple(GroupMove(group, owner, owner) for group, owner in enumerate(owners) if owner in failed)
    why = f"{len(failed)} instances of {operator} failed: their {len(lost)} of {len(owners)} key groups roll back"
    return _rollback(topology, operator, lost, why)


def _rollback(topology: Topology, operator: str, moves: tuple[GroupMove, ...], why: str) -> Rollback:
    origins = tuple(edge.origin for edge in topology.edges if edge.target == operator and edge.origin != operator)
    groups = tuple(move.group for move in moves)
    stateful = topology.operator(operator).stateful
    return Rollback(
        operator,
        holder=origins[0] if stateful and groups else None,
        sends=moves if stateful else (),
        re_emits=tuple(ReEmit(origin, groups) for origin in origins) if groups else (),
        muted=groups,
        reason=why,
    )
