"""What planners propose and predict, where placers put it, and what the loop decided at one tick, with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain.observation import Sojourn


@dataclass(frozen=True, slots=True)
class Bundle:
    """Threads of one operator that are placed together, with the share of a slot they need in total.

    A ``full`` bundle gets a slot of its own (MBA); other bundles share slots.
    """

    operator: str
    threads: int
    cpu: float
    memory: float
    full: bool = False


@dataclass(frozen=True, slots=True)
class OperatorPrediction:
    """Predicted load and sojourn of one operator under an allocation."""

    processors: int
    arrivals_per_s: float
    utilisation: float
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted latency and throughput of an allocation. ``rate_per_s`` is the highest external rate it sustains."""

    sojourn: Sojourn
    rate_per_s: float
    operators: Mapping[str, OperatorPrediction]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The allocation that a policy proposes, with its reasons.

    ``bundles`` and ``slots`` come from planners that pack threads (LSA, MBA); for the others a processor is a slot.
    ``shares`` routes the rows of an operator over its instances; ``pace_s`` is the interval between its batch starts.
    ``more_nodes`` are requested for their cores, on top of the nodes that the processors need; ``crowded`` means that
    there are too few cores, so that fewer tasks make batches shorter. ``nodes`` is set by policies that decide the
    number of nodes: the processors then follow from the nodes, not the reverse.
    """

    processors: Mapping[str, int]
    reasons: tuple[str, ...]
    feasible: bool = True
    bundles: tuple[Bundle, ...] = ()
    slots: int | None = None
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pace_s: Mapping[str, float] = field(default_factory=dict)
    more_nodes: int = 0
    crowded: bool = False
    nodes: int | None = None

    @property
    def total(self) -> int:
        return sum(self.processors.values())


@dataclass(frozen=True, slots=True)
class Vm:
    """A machine with ``slots`` equal slots."""

    name: str
    slots: int
    rack: str = "rack-1"


@dataclass(frozen=True, slots=True)
class Placement:
    """Which slot runs how many threads of which operator. Slots are named ``VM/NUMBER``, numbers from 1."""

    vms: tuple[Vm, ...]
    slots: Mapping[str, tuple[tuple[str, int], ...]]
    extra_slots: int = 0
    reasons: tuple[str, ...] = ()

    def threads(self, operator: str) -> dict[str, int]:
        """Threads of ``operator`` by slot."""
        found: dict[str, int] = {}
        for slot, groups in self.slots.items():
            count = sum(threads for name, threads in groups if name == operator)
            if count:
                found[slot] = count
        return found


@dataclass(frozen=True, slots=True)
class Rescale:
    """A change of one operator's processors from ``have`` to ``want``."""

    operator: str
    have: int
    want: int
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change of anything but an operator's processors: executors, nodes, task placement, key groups, shares, pace."""

    what: str
    have: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposed change that is not applied; ``rule`` names the governor's rule, ``why`` gives the numbers."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one tick: the complete target state. ``running`` is the processors of each operator.

    ``executors`` and ``nodes`` are target counts, ``leaving`` the nodes to release, ``places`` the host of every
    processor, ``groups`` the task of every key group; each is ``None`` or empty where nothing was decided.
    ``key_groups`` is the new number of key groups of an operator's state, where it changes. ``rescales`` and
    ``changes`` list the differences from the previous state, each with its reason.
    """

    at_s: float
    running: Mapping[str, int]
    rescales: tuple[Rescale, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: tuple[str, ...] = ()
    proposal: Proposal | None = None
    predicted: Prediction | None = None
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pace_s: Mapping[str, float] = field(default_factory=dict)
    executors: int | None = None
    nodes: int | None = None
    leaving: tuple[str, ...] = ()
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    key_groups: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether the processors of any operator change."""
        return bool(self.rescales)
