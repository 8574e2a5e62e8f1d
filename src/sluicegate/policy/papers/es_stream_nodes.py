"""Es-Stream's node rules: which node a new instance goes to, and when nodes are released (Eq 19 to 22).

    SK <= eta and mean R >= phi    bottleneck near: the new instance goes on a new node
    SK >= eta or  mean R <= phi    room: on the least loaded node in use if Eq 22 holds there, else on any node
                                   of the cluster where it holds
    SK >= chi and mean R <= zeta and the rate falls: shrink, nodes taken by scaling out first

    Eq 22: load + use of the new instance <= alpha, for CPU, memory and I/O alike

R is a node's largest dimension (Eq 6), SK and the mean are over the nodes in use: those that host an instance.

Our reading: where the bottleneck and the room condition both hold (SK = eta, R = phi) the bottleneck wins. The new
instance uses the mean of its operator's PRESENT instances (Eq 21 prints the optimal number). A shrink releases as many
nodes as leave the rest below phi and within alpha, so that it does not trigger an immediate scale-out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sluicegate.domain import NodeObservation
from sluicegate.domain.topology import require
from sluicegate.model.skewness import Skewness, skewness

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class NodeThresholds:
    """The paper names these and gives no values; ours:

    eta 0.5    up to this skewness loads count as even (the usual rule of thumb for "fairly symmetrical")
    phi 0.7    mean load above which queues on the nodes grow quickly
    chi 0.0    shrink only if at most half of the nodes carry more than the mean (or if SK is undefined)
    zeta 0.3   below half of phi: with half of the nodes removed the rest are still below phi
    alpha 0.8  most that a node may carry in any dimension, and the load above which no state is backed up
    """

    eta: float = 0.5
    phi: float = 0.7
    chi: float = 0.0
    zeta: float = 0.3
    alpha_cpu: float = 0.8
    alpha_memory: float = 0.8
    alpha_io: float = 0.8

    def __post_init__(self) -> None:
        for what in ("phi", "zeta", "alpha_cpu", "alpha_memory", "alpha_io"):
            share = getattr(self, what)
            require(0 < share <= 1, f"{what} is {share}: give a share of a node, above 0 and at most 1")
        require(self.zeta < self.phi, f"zeta {self.zeta:g} must be below phi {self.phi:g}, or nodes come and go")
        for what in ("eta", "chi"):
            require(math.isfinite(getattr(self, what)), f"{what} is {getattr(self, what)}: give a finite skewness")


@dataclass(frozen=True, slots=True)
class Use:
    """CPU, memory and I/O of one instance, as shares of a node."""

    cpu: float
    memory: float = 0.0
    io: float = 0.0


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """Take a node that is not in use; ``node`` is ``None`` if the cluster has none left and one must be added."""

    node: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Reuse:
    """Put the instance on a node in use."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Shrink:
    """Move the instances off these nodes and release them, in this order."""

    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave the nodes as they are."""

    reason: str


def use_of_a_new_instance(present: Sequence[Use]) -> Use:
    """Eq 21: the mean of the operator's present instances.

    >>> use_of_a_new_instance([Use(0.25), Use(0.75)])
    Use(cpu=0.5, memory=0.0, io=0.0)
    """
    require(bool(present), "no instance runs yet: give the operator's declared use instead")
    n = len(present)
    return Use(sum(u.cpu for u in present) / n, sum(u.memory for u in present) / n, sum(u.io for u in present) / n)


def fits(node: NodeObservation, use: Use, thresholds: NodeThresholds) -> bool:
    """Eq 22: whether the node stays within alpha in every dimension with the new instance."""
    return (
        node.cpu + use.cpu <= thresholds.alpha_cpu + _ROUNDING
        and node.memory + use.memory <= thresholds.alpha_memory + _ROUNDING
        and node.io + use.io <= thresholds.alpha_io + _ROUNDING
    )


def node_for_instance(
    nodes: Sequence[NodeObservation],
    use: Use,
    thresholds: NodeThresholds | None = None,
    full: Collection[str] = (),
) -> ScaleOut | Reuse:
    """The node for one new instance. ``nodes`` is the whole cluster; those named in ``full`` have no slot left.

    >>> busy = [NodeObservation("n1", 0.75, hosts={"a": 3}), NodeObservation("n2", 0.0)]
    >>> node_for_instance(busy, Use(0.25)).reason
    'bottleneck near: mean load 75% >= 70%, skewness 0.00 <= 0.50 (skewness needs 3 nodes, 1 in use: taken as 0): n2'
    """
    limits = thresholds or NodeThresholds()
    used = [node for node in nodes if node.hosts]
    spare = _least_loaded([n for n in nodes if not n.hosts and n.name not in full and fits(n, use, limits)])
    if not used:
        return ScaleOut(spare, f"no node in use yet: {spare}" if spare else "no node in use yet and none has room")
    skew = skewness([node.load for node in used])
    if skew.value <= limits.eta and skew.mean >= limits.phi:
        why = f"bottleneck near: mean load {skew.mean:.0%} >= {limits.phi:.0%}, skewness {_at_most(skew, limits.eta)}"
        return ScaleOut(spare, f"{why}: {spare or 'no free node has room, add one'}")
    return _where_room_is(nodes, used, use, limits, full, skew)


def nodes_to_release(
    nodes: Sequence[NodeObservation],
    rate_falls: bool,
    taken: Sequence[str] = (),
    thresholds: NodeThresholds | None = None,
) -> Shrink | Hold:
    """The nodes to release; ``taken`` are those taken by scaling out, oldest first.

    >>> idle = [NodeObservation(f"n{i}", 0.1, hosts={"a": 1}) for i in range(4)]
    >>> nodes_to_release(idle, rate_falls=True, taken=["n2"]).nodes
    ('n2', 'n0', 'n1')
    """
    limits = thresholds or NodeThresholds()
    used = [node for node in nodes if node.hosts]
    skew = skewness([node.load for node in used])
    state = f"mean load {skew.mean:.0%}, skewness {skew.value:.2f}{_note(skew)}, {len(used)} nodes in use"
    if not rate_falls:
        return Hold(f"the rate does not fall: {state}")
    if not (skew.value >= limits.chi and skew.mean <= limits.zeta):
        return Hold(f"no shrink: {state}; needs at most {limits.zeta:.0%} and at least {limits.chi:.2f}")
    released = _as_many_as_may_go(used, taken, limits)
    if not released:
        return Hold(f"no node can go: {state}; the rest must stay below {limits.phi:.0%} and within alpha")
    return Shrink(released, f"the rate falls: {state}; {len(released)} can go, those taken by scaling out first")


def _where_room_is(
    nodes: Sequence[NodeObservation],
    used: Sequence[NodeObservation],
    use: Use,
    limits: NodeThresholds,
    full: Collection[str],
    skew: Skewness,
) -> ScaleOut | Reuse:
    why = f"room: mean load {skew.mean:.0%}, skewness {skew.value:.2f}{_note(skew)}"
    least = min(used, key=lambda node: node.load)
    if least.name not in full and fits(least, use, limits):
        return Reuse(least.name, f"{why}: {least.name} is the least loaded in use ({least.load:.0%})")
    open_nodes = [node for node in nodes if node.name not in full and fits(node, use, limits)]
    name = _least_loaded(open_nodes)
    why = f"{why}, but {least.name}, the least loaded in use, has no place left ({least.load:.0%})"
    if name is None:
        return ScaleOut(None, f"{why}, nor has any of the cluster's {len(nodes)} nodes: add one")
    if any(node.name == name for node in used):
        return Reuse(name, f"{why}: {name} of the cluster's {len(nodes)} has")
    return ScaleOut(name, f"{why}: {name} of the cluster's {len(nodes)} has")


def _as_many_as_may_go(
    used: Sequence[NodeObservation], taken: Sequence[str], limits: NodeThresholds
) -> tuple[str, ...]:
    """Nodes to release: the newest of ``taken`` first, then the least loaded, while the rest can carry everything."""
    newest = {name: rank for rank, name in enumerate(reversed(taken))}
    by_turn = sorted(used, key=lambda n: (newest.get(n.name, len(newest)), n.load, n.name))
    needed = max(
        sum(n.load for n in used) / limits.phi,
        sum(n.cpu for n in used) / limits.alpha_cpu,
        sum(n.memory for n in used) / limits.alpha_memory,
        sum(n.io for n in used) / limits.alpha_io,
    )
    # Strictly more than enough, as a mean load of exactly phi would already trigger a new node.
    keep = max(1, math.floor(needed + _ROUNDING) + 1)
    return tuple(node.name for node in by_turn[: max(len(used) - keep, 0)])


def _least_loaded(nodes: Sequence[NodeObservation]) -> str | None:
    return min(nodes, key=lambda node: node.load).name if nodes else None


def _note(skew: Skewness) -> str:
    return f" ({skew.note})" if skew.note else ""


def _at_most(skew: Skewness, bound: float) -> str:
    return f"{skew.value:.2f} <= {bound:.2f}{_note(skew)}"
