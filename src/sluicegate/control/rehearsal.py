"""Runs the loop on synthetic measurements, which calls every compiled function that a controller needs.

After an installation that compiles the models (about 20 s of CPU time, then cached); the result is discarded.
"""

from __future__ import annotations

from sluicegate.control import loop
from sluicegate.control.loop import Settings
from sluicegate.domain import Batch, Decision, Observation, OperatorObservation, Sojourn


def rehearse(settings: Settings, interval_s: float, looks: int = 4) -> Decision:
    """Run ``looks`` ticks with a rising load and return the last decision; from the third on there is a forecast.

    >>> from sluicegate.control.settings import settings_for
    >>> from sluicegate.domain import Edge, Operator, Topology
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> rehearse(settings_for("drs", one), 2.0).proposal is not None
    True
    """
    state = loop.start(settings)
    for look in range(1, looks + 1):
        state, decision = loop.tick(state, _made_up(settings, look * interval_s, 50.0 * look), look * interval_s)
    return decision


def _made_up(settings: Settings, at_s: float, per_s: float) -> Observation:
    names = settings.topology.names
    batches = (Batch(per_s, 1, 1.0 + per_s / 1000), Batch(2 * per_s, 2, 1.0 + per_s / 500))
    seen = OperatorObservation(per_s, 100.0, utilisation=0.5, queue_rows=0.0, sojourn_s=1.0, batches=batches)
    return Observation(
        at_s,
        per_s,
        dict.fromkeys(names, 1),
        dict.fromkeys(names, seen),
        Sojourn(1.0, 1.0, 2.0, 3.0),
        throughput_per_s=per_s,
        backlog_rows=0.0,
    )
