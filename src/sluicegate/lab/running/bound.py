"""Explains why a run missed its promise (SLO), with numbers: slots, key groups, a governor rule, or the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from sluicegate.domain import Goal
from sluicegate.runlog.run_record import measured_s
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.graph import RunningGraph

GOOD_SHARE = 0.95
"""From this share of rows within the promise on, no explanation is given."""
_MOSTLY = 0.5
_BUSY = 0.9

Tick = Mapping[str, Any]


def bound_by(kept_share: float | None, goal: Goal, ticks: Sequence[Tick], graph: RunningGraph, control: Control) -> str:
    """The limiting factor while the run was late, as a sentence; '' if the promise was kept or no tick was late."""
    if kept_share is None or kept_share >= GOOD_SHARE:
        return ""
    late = [tick for tick in ticks if _late(tick, goal)]
    if not late:
        return ""
    if control.dry_run:
        return "--dry-run only advises: no processor was added or taken"
    return _slots(late, graph, control) or _key_groups(late, graph) or _rule(late) or _machine(late)


def _late(tick: Tick, goal: Goal) -> bool:
    seen = ((measured_s(dict(tick), what), bound_s) for what, bound_s in goal.latency_bounds.items())
    return any(value is not None and value > bound_s for value, bound_s in seen)


def _mostly(late: Sequence[Tick], holds: Sequence[bool]) -> bool:
    return sum(holds) >= _MOSTLY * len(late)


def _slots(late: Sequence[Tick], graph: RunningGraph, control: Control) -> str:
    slots = control.budget
    if slots is None or not _mostly(late, [sum(tick["running"].values()) >= slots for tick in late]):
        return ""
    return (
        f"{_count(slots, 'slot')} for {_count(len(graph.nodes), 'operator')}: no processor was free to add; give more "
        "with --budget, --master local[N] or --executors"
    )


def _key_groups(late: Sequence[Tick], graph: RunningGraph) -> str:
    for node in graph.nodes:
        if node.stateful and _mostly(late, [tick["running"].get(node.name, 0) == node.key_groups for tick in late]):
            return (
                f"{node.name} held {node.key_groups} processors, as many as it has key groups: `sluicegate explain` "
                "shows whether more groups were asked for; or declare more key_groups and start in a new folder"
            )
    return ""


def _rule(late: Sequence[Tick]) -> str:
    """The rule that refused most moves during late observations, with its latest reason."""
    refusals = [refusal for tick in late for refusal in tick.get("refusals") or ()]
    if not refusals:
        return ""
    rule, times = Counter(refusal["rule"] for refusal in refusals).most_common(1)[0]
    if times < _MOSTLY * len(late):
        return ""
    why = next(refusal["why"] for refusal in reversed(refusals) if refusal["rule"] == rule)
    return f"the rule {rule!r} held changes back at {times} of {len(late)} late observations, last: {why}"


def _machine(late: Sequence[Tick]) -> str:
    measured = fmean(value for tick in late if (value := measured_s(dict(tick))) is not None)
    predicted = [float(tick["predicted_mean_s"]) for tick in late if tick.get("predicted_mean_s") is not None]
    held = round(fmean(sum(tick["running"].values()) for tick in late))
    told = f"predicted {fmean(predicted):.2g} s" if predicted else "no prediction, as queues grew"
    busy = [float(node["cpu"]) for tick in late for node in tick.get("nodes") or ()]
    cores = f"; the cores were {fmean(busy):.0%} busy: more cores are needed" if busy and fmean(busy) >= _BUSY else ""
    return (
        f"with {_count(held, 'processor')} the mean was {measured:.2g} s in the {len(late)} late observations "
        f"({told}), and the policy asked for no more{cores}"
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
