"""What stands between a policy's proposal and the decision log.

``within_hot_keys`` caps what a policy wants where a key takes one task, ``request_for`` adds the measurements that the
governor's rules need, and ``with_changes`` writes shares and paces that differ as changes with their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from sluicegate.control.rules import Request
from sluicegate.domain import Change, Decision, Refusal, Situation
from sluicegate.policy.demand import stations_of


def request_for(situation: Situation, want: Mapping[str, int]) -> Request:
    """The request: running and wanted processors with the measurements that the governor's rules need."""
    operators, arrivals = situation.topology.operators, situation.operator_arrivals_per_s
    have = {o.name: situation.running[o.name] for o in operators}
    then = {name: max(want.get(name, count), 1) for name, count in have.items()}
    offered = {o.name: arrivals[o.name] / o.service_per_s for o in operators}
    busiest = max(offered[name] / count for name, count in then.items())
    return Request(
        now_s=situation.now_s,
        observed_at_s=situation.observation.at_s,
        arrivals_per_s=situation.arrivals_per_s,
        rescaling=situation.observation.rescaling,
        starting=situation.observation.starting,
        unmeasured=situation.observation.unmeasured,
        asked=situation.observation.asked,
        have=have,
        want=want,
        utilisation={name: offered[name] / count for name, count in have.items()},
        late=lateness(situation),
        sojourns_s=partial(_sojourns, situation, have, then),
        capacity_want_per_s=situation.arrivals_per_s / busiest if busiest > 0 else math.inf,
    )


def _sojourns(situation: Situation, have: Mapping[str, int], then: Mapping[str, int]) -> tuple[float, float]:
    stations = stations_of(situation)
    before, after = (np.array(list(k.values()), dtype=np.int64) for k in (have, then))
    return stations.total_mean_s(before), stations.total_mean_s(after)


def lateness(situation: Situation) -> float | None:
    """The largest ratio of a measured latency to its bound; above 1 a latency goal is missed."""
    sojourn = situation.observation.sojourn
    if sojourn is None:
        return None
    measured, bounds = sojourn.by_name, situation.goal.latency_bounds
    ratios = [value / bound for what, bound in bounds.items() if (value := measured[what]) is not None]
    return max(ratios, default=None)


def within_hot_keys(situation: Situation, wanted: Mapping[str, int]) -> tuple[dict[str, int], tuple[Refusal, ...]]:
    """``wanted`` capped at ceil(1/h) per operator with a hot key, and a refusal for each cap.

    A key with a share h of the rows takes one task h of the work: with more than 1/h tasks the others wait for that
    one.

    >>> from sluicegate.domain import Edge, HotKey, Observation, Operator, OperatorObservation, Topology
    >>> one = Topology("t", (Operator("count", 9.0, stateful=True),), (Edge("source", "count"),))
    >>> hot = OperatorObservation(hot_key=HotKey("user=7", 0.6))
    >>> seen = Observation(0.0, 9.0, {"count": 1}, {"count": hot})
    >>> kept, notes = within_hot_keys(Situation(0.0, one, seen, 9.0, {"count": 9.0}), {"count": 8})
    >>> kept, notes[0].why
    ({'count': 2}, 'count: key user=7 has 60% of its rows, and one task takes them all: more than 2 processors will \
not help (8 wanted); split that key, or make its rows cheaper')
    """
    kept, notes = dict(wanted), list[Refusal]()
    for name, seen in situation.observation.operators.items():
        if seen.hot_key is None or name not in kept:
            continue
        most = max(math.ceil(1 / seen.hot_key.share - 1e-9), 1)
        if kept[name] > most:
            why = (
                f"{name}: key {seen.hot_key.key} has {seen.hot_key.share:.0%} of its rows, and one task takes them "
                f"all: more than {most} processors will not help ({kept[name]} wanted); split that key, or make its "
                "rows cheaper"
            )
            notes.append(Refusal("hot key", why))
            kept[name] = most
    return kept, tuple(notes)


def with_changes(decision: Decision, shares: Mapping[str, tuple[float, ...]], pace_s: Mapping[str, float]) -> Decision:
    """Add the shares that are given or withdrawn and the paces that differ, each as a change with its reason.

    ``shares`` and ``pace_s`` are those in force.
    """
    changes = [
        Change(f"shares of {name}", _shares(shares.get(name)), _shares(decision.shares.get(name)), why)
        for name in dict.fromkeys((*shares, *decision.shares))
        if shares.get(name) != decision.shares.get(name)
        for why in [next((r for r in decision.reasons if r.startswith(f"{name}: ")), "as the policy proposes")]
    ]
    for name, pace in decision.pace_s.items():
        before = pace_s.get(name, 0.0)
        if pace != before:
            usual = "batches start as rarely as the promise allows" if pace else "batches start back to back"
            why = next((r for r in decision.reasons if r.startswith(f"pace of {name}: ")), usual)
            changes.append(Change(f"pace of {name}", f"{before:.3g} s", f"{pace:.3g} s", why))
    return replace(decision, changes=(*decision.changes, *changes))


def _shares(shares: tuple[float, ...] | None) -> str:
    return "equal" if not shares else ", ".join(f"{share:.0%}" for share in shares)
