"""Clamps a planner's processors to the limits, with a reason for each cut.

An operator gets at least ``least`` and at most its ``most`` (``most`` wins if the two contradict each other, as in
``spread``). If the total exceeds the budget it is cut with ``spread``, no operator above its wanted number, so that the
rest carries the highest rate. A plan that was cut is marked infeasible; raising an operator to the least keeps it
feasible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sluicegate.domain import Goal, Limits, Proposal, Situation, Topology
from sluicegate.policy.spread import spread


def within_limits(
    wanted: Mapping[str, int], topology: Topology, limits: Limits
) -> tuple[dict[str, int], tuple[str, ...], bool]:
    """The allowed processors, the reasons for differences from ``wanted``, and whether nothing was cut.

    An operator missing in ``wanted`` gets the least. A budget below the sum of the leasts cannot be met: every operator
    still gets its least, which it needs to run at all, and the reason says so.

    >>> from sluicegate.domain import Edge, Operator
    >>> two = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> within_limits({"a": 4, "b": 8}, two, Limits(budget=6))
    ({'a': 2, 'b': 4}, ('12 processors wanted, the budget is 6: cut back',), False)
    >>> within_limits({"a": 4, "b": 8}, two, Limits(most=7))
    ({'a': 4, 'b': 7}, ('b: 8 wanted, 7 allowed',), False)
    """
    allowed = {name: _allowed(name, wanted, limits) for name in topology.names}
    cuts = tuple(
        f"{name}: {wanted[name]} wanted, {count} allowed"
        for name, count in allowed.items()
        if wanted.get(name, 0) > count
    )
    total = sum(allowed.values())
    if limits.budget is None or total <= limits.budget:
        return allowed, cuts, not cuts
    kept = spread(topology, limits.budget, replace(limits, most_of=allowed))
    return kept, (*cuts, _over_budget(total, sum(kept.values()), limits.budget)), False


def proposal_within(
    wanted: Mapping[str, int], reasons: tuple[str, ...], situation: Situation, feasible: bool = True
) -> Proposal:
    """A proposal of ``wanted`` clamped to the situation's limits; every cut is added to the ``reasons``."""
    processors, cuts, uncut = within_limits(wanted, situation.topology, situation.limits)
    return Proposal(processors, (*reasons, *cuts), feasible and uncut)


def spread_within(total: int, reasons: tuple[str, ...], situation: Situation) -> Proposal:
    """A proposal of ``total`` processors, or as many as the limits allow, spread over the operators."""
    limits, names = situation.limits, situation.topology.names
    room = sum(limits.most_for(name) for name in names)
    if limits.budget is not None:
        room = min(room, limits.budget)
    cut = () if total <= room else (f"{total} processors wanted, {room} allowed",)
    wanted = spread(situation.topology, min(total, room), limits)
    return proposal_within(wanted, (*reasons, *cut), situation, feasible=not cut)


def affordable(goal: Goal, limits: Limits) -> Limits:
    """The limits with the goal's cost ceiling converted to a budget of processors.

    >>> affordable(Goal(cost_per_hour=1.0), Limits(price_per_slot_hour=0.25)).budget
    4
    """
    if goal.cost_per_hour is None or limits.price_per_slot_hour == 0:
        return limits
    paid_for = max(int(goal.cost_per_hour / limits.price_per_slot_hour + 1e-9), 1)
    return replace(limits, budget=paid_for if limits.budget is None else min(limits.budget, paid_for))


def _allowed(name: str, wanted: Mapping[str, int], limits: Limits) -> int:
    least = limits.least_for(name)
    return min(limits.most_for(name), max(least, wanted.get(name, least)))


def _over_budget(total: int, kept: int, budget: int) -> str:
    if kept > budget:
        return f"the budget is {budget}, below the {kept} processors the operators need at least: {kept} kept"
    return f"{total} processors wanted, the budget is {budget}: cut back"
