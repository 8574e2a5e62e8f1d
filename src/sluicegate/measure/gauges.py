"""Smooths the quantities of successive observations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sluicegate.domain import Observation, OperatorObservation, Sojourn
from sluicegate.measure.smoothing import Smoothed, Smoothing

_PER_OPERATOR = 7
_WHOLE = 5


@dataclass(frozen=True, slots=True)
class Gauges:
    """All smoothed quantities of a pipeline whose operators are ``names``."""

    names: tuple[str, ...]
    smoothing: Smoothing = field(default_factory=Smoothing)
    smoothed: Smoothed = field(default_factory=Smoothed)

    def read(self, observation: Observation) -> tuple[Gauges, Observation]:
        """The next gauges, and the observation with its quantities smoothed; counts and batches pass as they are."""
        sojourn = observation.sojourn
        measured: list[float | None] = [observation.arrivals_per_s]
        measured += [None] * 4 if sojourn is None else [sojourn.mean_s, sojourn.p50_s, sojourn.p95_s, sojourn.p99_s]
        seen = observation.all_of(self.names)
        for o in seen:
            measured += (
                o.arrivals_per_s,
                o.service_per_s,
                o.arrival_scv,
                o.service_scv,
                o.utilisation,
                o.queue_rows,
                o.sojourn_s,
            )
        smoothed = self.smoothed.after(measured, self.smoothing)
        return replace(self, smoothed=smoothed), _filled(observation, self.names, seen, smoothed.values)


def _filled(
    observation: Observation, names: tuple[str, ...], seen: list[OperatorObservation], values: list[float | None]
) -> Observation:
    operators = {}
    for i, name in enumerate(names):
        at = _WHOLE + i * _PER_OPERATOR
        arrivals, service, arrival_scv, service_scv, utilisation, queue, sojourn_s = values[at : at + _PER_OPERATOR]
        operators[name] = OperatorObservation(
            arrivals,
            service,
            arrival_scv,
            service_scv,
            utilisation,
            queue,
            seen[i].backpressure,
            sojourn_s,
            seen[i].saturated_per_s,
            seen[i].instance_queues,
            seen[i].instance_per_s,
            seen[i].batches,
            seen[i].group_s,
            seen[i].hot_key,
        )
    mean_s = values[1]
    sojourn = None if mean_s is None else Sojourn(mean_s, values[2], values[3], values[4])
    return replace(observation, arrivals_per_s=values[0], sojourn=sojourn, operators=operators)
