"""Mc-Stream's resource level (algorithm 4): move hot instances while goals are missed, pack cold ones while nodes idle.

    late                 the hottest instance goes where algorithm 3 sends it, if that node ends up less loaded than
                         the one it leaves; the busiest edge's two ends go onto one node
    utilisation too low  the coldest instance goes to a node that already runs its vertex

Our reading: all instances of a vertex have equal weight in the paper, so hot and cold would tie; here each is weighted
by its measured load. The paper's loops run until targets are met, which is known only after the next measurement: a
budget of moves bounds them (and with it the time of a re-deployment, Eq 8), and no instance moves twice. Packing breaks
algorithm 3's sibling rule on purpose while utilisation is low. After a move algorithms 1 and 2 should run again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sluicegate.domain import Placement, Topology
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require
from sluicegate.place.live_placement import Instance, LivePlacement
from sluicegate.place.mc_stream import choose, upstream_of


@dataclass(frozen=True, slots=True)
class OnlineRules:
    """The paper gives no values; ours:

    most_moves 4            per call: each costs a replica's start, and its effect is measured before the next call
    least_utilisation 0.3   of the VMs in use, below which instances are packed
    most_load 0.8           of a VM after an instance was packed onto it, or moved to the other end of its edge
    least_relief 0.05       of a VM: how much less loaded the new VM of a hot instance must be than the old one
    least_faster 1.25       a VM so many times as fast takes a hot instance though it is loaded more; redirection too
                            takes smaller differences of speed as transient
    """

    most_moves: int = 4
    least_utilisation: float = 0.3
    most_load: float = 0.8
    least_relief: float = 0.05
    least_faster: float = 1.25

    def __post_init__(self) -> None:
        require(self.most_moves >= 0, f"most_moves is {self.most_moves}: give 0 or more")
        for what in ("least_utilisation", "most_load", "least_relief"):
            share = getattr(self, what)
            require(0 <= share <= 1, f"{what} is {share}: give a share of a VM, 0 to 1")
        require(self.least_faster > 1, f"least_faster is {self.least_faster}: give a ratio of speeds above 1")


@dataclass(frozen=True, slots=True)
class Measured:
    """Load of each instance, by operator and slot, as a share of a slot; rows per second of each edge; VMs' speeds."""

    loads: Mapping[tuple[str, str], float]
    edges_per_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)


class Cause(Enum):
    HOT_INSTANCE = "hot instance"
    HOT_EDGE = "hot edge"
    COLD_INSTANCE = "cold instance"


@dataclass(frozen=True, slots=True)
class Move:
    """A move of one instance from the slot ``origin`` to the slot ``target``."""

    operator: str
    threads: int
    origin: str
    target: str
    cause: Cause
    reason: str


@dataclass(frozen=True, slots=True)
class Redeployment:
    """The moves in order, the placement after them, and the VMs they leave without an instance."""

    moves: tuple[Move, ...]
    placement: Placement
    released: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    instance: Instance
    slot: int
    cause: Cause
    reason: str


def redeploy(
    topology: Topology, placement: Placement, measured: Measured, late: bool, rules: OnlineRules | None = None
) -> Redeployment:
    """Run algorithm 4; ``late``: throughput or latency misses its target.

    >>> from sluicegate.domain import Edge, Operator, Vm
    >>> t = Topology("t", (Operator("a", 9.0, cpu=0.5),), (Edge("source", "a"),))
    >>> now = Placement((Vm("n1", 1), Vm("n2", 1)), {"n1/1": (("a", 1),), "n2/1": (("a", 1),)})
    >>> found = redeploy(t, now, Measured({("a", "n1/1"): 0.1, ("a", "n2/1"): 0.2}), late=False)
    >>> found.moves[0].origin, found.moves[0].target, found.released
    ('n1/1', 'n2/1', ('n1',))
    """
    rules, live = rules or OnlineRules(), LivePlacement(topology, placement, measured.loads, measured.speeds)
    at_first = live.utilisation()
    moves = tuple(_moves(topology, live, measured, late, rules))
    state = f"{'late' if late else 'on time'}, utilisation {at_first:.0%} (packed below {rules.least_utilisation:.0%})"
    reason = f"algorithm 4: {state}: {len(moves)} of at most {rules.most_moves} moves"
    if late and not moves:
        reason += "; no node would be less loaded, add one" if measured.loads else "; no instance's load was measured"
    return Redeployment(moves, live.placement(reason), live.released(), reason)


def _moves(
    topology: Topology, live: LivePlacement, measured: Measured, late: bool, rules: OnlineRules
) -> Iterator[Move]:
    """Apply moves one by one, each to the placement that results from the previous ones."""
    upstream, edges = upstream_of(topology), measured.edges_per_s
    left, relieving = rules.most_moves, set[int]()
    finders: list[Callable[[], _Candidate | None]] = []
    if late:
        finders = [
            lambda: _hot_instance(live, upstream, edges, rules),
            lambda: _hot_edge(live, edges, rules, relieving),
        ]
    while left and finders:
        found = finders[0]()
        # Alternate as in the paper: an instance, then an edge; a finder without a candidate is dropped.
        finders = finders[1:] + (finders[:1] if found else [])
        if found:
            left -= 1
            if found.cause is Cause.HOT_INSTANCE:
                relieving.add(live.ledger.slots.vm[found.slot])
            yield _move(live, found)
    while left and not late and live.utilisation() < rules.least_utilisation:
        found = _cold_instance(live, rules)
        if found is None:
            return
        left -= 1
        yield _move(live, found)


def _hot_instance(
    live: LivePlacement,
    upstream: Mapping[str, frozenset[str]],
    edges_per_s: Mapping[tuple[str, str], float],
    rules: OnlineRules,
) -> _Candidate | None:
    """The hottest instance above the mean that algorithm 3 can send to a node less loaded than its own."""
    for one in _above_mean(live):
        here = live.vm_of(one)
        elsewhere = [vm for vm in live.open_slots(one.bundle) if vm != here]
        others = _other_ends(one.bundle.operator, edges_per_s)
        relief = {vm for vm in elsewhere if _relieves(live, one, vm, others, rules)}
        feeds = upstream.get(one.bundle.operator, frozenset())
        chosen = choose(live.ledger, one.bundle, feeds, relief) if relief else None
        if chosen is not None:
            slot, rule = chosen
            there = live.load_with(live.ledger.slots.vm[slot], one)
            why = (
                f"{one.load:.0%} of a slot; its node is {live.load_of(here):.0%} loaded, the other {there:.0%}; {rule}"
            )
            return _Candidate(one, slot, Cause.HOT_INSTANCE, why)
    return None


def _other_ends(operator: str, edges_per_s: Mapping[tuple[str, str], float]) -> set[str]:
    ends = (set(edge) for edge, sent_per_s in edges_per_s.items() if operator in edge and sent_per_s > 0)
    return set().union(*ends) - {operator}


def _relieves(live: LivePlacement, one: Instance, vm: int, others: Collection[str], rules: OnlineRules) -> bool:
    """Whether the VM is so much faster that rows take less there, or would be less loaded than the old one is.

    Unless the old one is loaded too much, an instance is not parted from the ``others``, the ends of its edges, nor
    moved to a slower VM, which has the least load once it has lost its instances: the next call would undo both.
    """
    here, faster, load = live.vm_of(one), live.faster_on(vm, one), live.load_with(vm, one)
    if faster >= rules.least_faster and load <= rules.most_load:
        return True
    hosts = live.ledger.hosts
    parted = any(hosts[here][name] and not hosts[vm][name] for name in others)
    stays = (parted or faster * rules.least_faster <= 1) and live.load_of(here) <= rules.most_load
    return not stays and load < live.load_of(here) - rules.least_relief


def _above_mean(live: LivePlacement) -> list[Instance]:
    mean = sum(one.load for one in live.may_move) / max(len(live.may_move), 1)
    hot = [one for one in live.may_move if one.load >= mean > 0]
    return sorted(hot, key=lambda one: (-one.load, one.bundle.operator, one.slot))


def _hot_edge(
    live: LivePlacement, edges_per_s: Mapping[tuple[str, str], float], rules: OnlineRules, relieving: Collection[int]
) -> _Candidate | None:
    """A downstream instance of the busiest edge that can move to a VM with an upstream instance, as it has none yet.

    VMs that have just taken a hot instance are excluded: following it there would only move the overload.
    """
    for (origin, target), sent_per_s in sorted(edges_per_s.items(), key=lambda item: (-item[1], item[0])):
        if origin == target or sent_per_s <= 0:
            continue
        ends = [one for one in live.may_move if one.bundle.operator == target]
        for one in sorted(ends, key=lambda one: (-one.load, one.slot)):
            if live.ledger.hosts[live.vm_of(one)][origin]:
                continue
            room = live.open_slots(one.bundle)
            beside = [
                vm
                for vm in room
                if live.ledger.hosts[vm][origin]
                and not live.ledger.hosts[vm][target]
                and vm not in relieving
                and live.load_with(vm, one) <= rules.most_load
            ]
            if beside:
                slot = room[min(beside, key=live.load_of)]
                return _Candidate(one, slot, Cause.HOT_EDGE, f"{rate(sent_per_s)} from {origin} stay on one node")
    return None


def _cold_instance(live: LivePlacement, rules: OnlineRules) -> _Candidate | None:
    """The coldest instance with a sibling on another node at least as loaded as its own, the fullest first."""
    for one in sorted(live.may_move, key=lambda one: (one.load, one.bundle.operator, one.slot)):
        here = live.vm_of(one)
        if live.ledger.hosts[here][one.bundle.operator] > 1:
            continue
        room = live.open_slots(one.bundle)
        packable = [
            vm
            for vm in room
            if vm != here
            and live.ledger.hosts[vm][one.bundle.operator]
            and live.load_of(vm) >= live.load_of(here)
            and live.load_with(vm, one) <= rules.most_load
        ]
        if packable:
            slot = room[max(packable, key=live.load_of)]
            why = f"{one.load:.0%} of a slot; utilisation {live.utilisation():.0%} is low: packed beside its sibling"
            return _Candidate(one, slot, Cause.COLD_INSTANCE, why)
    return None


def _move(live: LivePlacement, candidate: _Candidate) -> Move:
    one, names = candidate.instance, live.ledger.slots.names
    live.move(one, candidate.slot)
    origin, target = names[one.slot], names[candidate.slot]
    reason = f"{one.bundle.operator} {origin} -> {target}, {candidate.cause.value}: {candidate.reason}"
    return Move(one.bundle.operator, one.bundle.threads, origin, target, candidate.cause, reason)
