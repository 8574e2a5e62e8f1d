"""Measurements of a running pipeline. A quantity that was not measured is ``None``, never NaN or zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sluicegate.domain.fleet import FleetSeen


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished micro-batch: ``rows`` processed by ``processors`` tasks in ``duration_s``.

    ``work_s`` is the summed run time of its tasks, where that was measured.
    """

    rows: float
    processors: int
    duration_s: float
    work_s: float | None = None


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key with a large share of an operator's rows."""

    key: str
    share: float


@dataclass(frozen=True, slots=True)
class OperatorObservation:
    """One operator over the last measuring interval.

    ``service_per_s`` is the true rate of one processor: rows done per second of useful time. ``backpressure`` is the
    share of time, 0 to 1, that this operator held its upstream back. ``saturated_per_s`` is the operator's whole
    throughput, given only if it was the limit (never idle): a sample of the maximum sustainable throughput.
    ``instance_queues`` and ``instance_per_s`` are the rows queued at each instance and its rate, ``group_s`` the
    seconds per batch that each key group takes, where measured; ``hot_key`` a key with far more rows than others.
    """

    arrivals_per_s: float | None = None
    service_per_s: float | None = None
    arrival_scv: float | None = None
    service_scv: float | None = None
    utilisation: float | None = None
    queue_rows: float | None = None
    backpressure: float | None = None
    sojourn_s: float | None = None
    saturated_per_s: float | None = None
    instance_queues: tuple[float, ...] = ()
    instance_per_s: tuple[float, ...] = ()
    batches: tuple[Batch, ...] = ()
    group_s: tuple[float, ...] = ()
    hot_key: HotKey | None = None


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """Load of one node as shares of its capacity, and the processors of each operator it runs.

    ``cores`` is the node's core count (0 where unknown), ``busy_cores`` the cores used by the executors and their child
    processes, ``other_cores`` those used by other processes.
    """

    name: str
    cpu: float
    memory: float = 0.0
    io: float = 0.0
    hosts: Mapping[str, int] = field(default_factory=dict)
    cores: float = 0.0
    busy_cores: float = 0.0
    other_cores: float = 0.0

    @property
    def load(self) -> float:
        """Es-Stream Eq 6: the largest of the three dimensions."""
        return max(self.cpu, self.memory, self.io)


@dataclass(frozen=True, slots=True)
class Sojourn:
    """Time from source to sink."""

    mean_s: float
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None

    @property
    def by_name(self) -> dict[str, float | None]:
        """The mean and the quantiles by the names that bounds have (``Goal.latency_bounds``)."""
        return {"mean": self.mean_s, "p50": self.p50_s, "p95": self.p95_s, "p99": self.p99_s}


@dataclass(frozen=True, slots=True)
class Observation:
    """The whole pipeline at one time; ``running`` is the actual allocation, not the requested one.

    ``arrivals_per_s`` counts the rows of all sources together. ``rescaling`` is true while the requested and the actual
    allocation differ; ``starting`` is true if processing continues meanwhile (only the next batch or new executors are
    awaited). ``overdue`` lists requests that missed their deadline; the loop continues without them. ``groups`` maps
    key groups to tasks, ``unmeasured`` holds the operators that have not finished a batch yet, ``requested`` is the
    allocation last requested.
    """

    at_s: float
    arrivals_per_s: float | None
    running: Mapping[str, int]
    operators: Mapping[str, OperatorObservation] = field(default_factory=dict)
    sojourn: Sojourn | None = None
    throughput_per_s: float | None = None
    backlog_rows: float | None = None
    nodes: tuple[NodeObservation, ...] = ()
    pending_tasks: int | None = None
    running_tasks: int | None = None
    rescaling: bool = False
    starting: bool = False
    overdue: tuple[str, ...] = ()
    fleet: FleetSeen | None = None
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    unmeasured: frozenset[str] = frozenset()
    requested: Mapping[str, int] = field(default_factory=dict)

    @property
    def asked(self) -> Mapping[str, int]:
        """The allocation last requested, or the running one where none was. A refusal does not change it."""
        return {**self.running, **self.requested}

    def of(self, name: str) -> OperatorObservation:
        return self.operators.get(name, _UNSEEN)

    def all_of(self, names: Iterable[str]) -> list[OperatorObservation]:
        """The observation of each operator, in the order of ``names``; an empty one where it was not measured."""
        return [self.operators.get(name, _UNSEEN) for name in names]


_UNSEEN = OperatorObservation()
