"""What was measured. A quantity that was not measured is ``None``, never NaN or zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sluicegate.domain.fleet import FleetSeen


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished micro-batch: ``rows`` taken in by ``processors`` tasks in ``duration_s``.

    ``work_s`` is how long its tasks ran, all added up, where that was measured.
    """

    rows: float
    processors: int
    duration_s: float
    work_s: float | None = None


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key and its share of an operator's rows, where that is large."""

    key: str
    share: float


@dataclass(frozen=True, slots=True)
class OperatorObservation:
    """One operator over the last measuring interval.

    ``service_per_s`` is the true rate of one processor: rows done per second of useful time. ``backpressure`` is the
    share of time, 0 to 1, that this operator held its upstream back. ``saturated_per_s`` is the operator's whole
    throughput, given only if it was the limit (never idle): a sample of the maximum sustainable throughput.
    ``instance_queues`` and ``instance_per_s`` are the rows that wait at each instance and how fast it is, ``group_s``
    the seconds a batch that each key group takes, where told; ``hot_key`` a key that has far more rows than others.
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
    """Load of one node as shares of what it has, and the processors of each operator it runs.

    ``cores`` are those it has, ``busy_cores`` those that the executors and all below them keep busy, ``other_cores``
    those that others do; 0 cores where nobody told.
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


@dataclass(frozen=True, slots=True)
class Observation:
    """The whole pipeline at one moment; ``running`` is the allocation that really runs, not the one asked for.

    ``arrivals_per_s`` counts the rows of all sources together. ``rescaling`` is true while what was asked for and what
    runs differ; ``starting`` where that stops nothing meanwhile: the next batch or executors are awaited. ``overdue``
    says what was asked for and did not come within its time: the loop goes on without. ``groups`` are the tasks that
    the key groups belong to, ``unmeasured`` the operators of which no batch has ended yet, ``requested`` the
    allocation last asked for.
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
        """What was last asked for; what runs, where nobody said. A refusal leaves this as it is."""
        return {**self.running, **self.requested}

    def of(self, name: str) -> OperatorObservation:
        return self.operators.get(name, _UNSEEN)

    def all_of(self, names: Iterable[str]) -> list[OperatorObservation]:
        """One for each name, in their order."""
        return [self.operators.get(name, _UNSEEN) for name in names]


_UNSEEN = OperatorObservation()
