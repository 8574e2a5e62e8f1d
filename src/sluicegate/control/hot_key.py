"""Caps the processors of an operator with a hot key: all rows of a key go to one task, so more tasks do not help.

A key with a share h of the rows takes one task h of the work. With more than 1/h tasks the others wait for that one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sluicegate.domain import Refusal, Situation


def within_hot_keys(situation: Situation, wanted: Mapping[str, int]) -> tuple[dict[str, int], tuple[Refusal, ...]]:
    """``wanted`` capped at ceil(1/h) per operator with a hot key, and a refusal for each cap.

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
