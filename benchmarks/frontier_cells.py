"""What the study of traces is made of: cells, each some policies (or the bounds) on one trace under one protocol.

A cell is named by what was asked and carries a digest of what its figures follow from: the sources, the trace's values
and the number of runs. A cell whose digest still holds need not be run again, and tables never mix two versions. What
only our own policies use (``OWN``) is no part of the digest of other policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import sluicegate
from frontier_bounds import bounds, lost_at_the_start
from sluicegate.config.trace_file import read_trace
from sluicegate.lab.replay.players import ALL, BEST_RECENT_PEAK
from sluicegate.lab.replay.replay import ReplayOptions, replay
from sluicegate.lab.replay.world import DEFAULT_POINTS, PROTOCOLS, Floats, truth_of

TARGETS = (0.995, 0.999)
TOLD = (0.6, 0.9, 0.95, 0.98, 0.99, *TARGETS)
PEAK_TOLD = TOLD[2:]
PAPERS = tuple(f"uncertainty-{number}" for number in range(8))
OURS = "on-time"
PEERS = tuple(name for name in ALL if name not in (OURS, "sluicegate", "hindsight", BEST_RECENT_PEAK, *PAPERS))
BOUND, START = "bounds", "start"
# together, so that their forecasts are made once
_GROUPS = (PAPERS[4:], PAPERS[:4], PEERS)
_FOLDERS = ("domain", "measure", "model", "forecast", "policy", "control", "config", "lab/replay")
_CORE = tuple(f"{folder}/**/*.py" for folder in _FOLDERS)
OWN = frozenset(
    f"{folder}/{name}.py"
    for folder, names in {
        "forecast": ("calibrated", "direct", "least_squares"),
        "policy": ("sluicegate", "sluicegate_on_time", "on_time", "late_chance", "capacity_law"),
    }.items()
    for name in names
)


@dataclass(frozen=True, slots=True)
class Row:
    """One policy in one cell: share of steps on time, cost against hindsight and rescales, means over the runs."""

    policy: str
    qos: float
    cost: float
    rescales: float


@dataclass(frozen=True, slots=True)
class Cell:
    """``target`` is what the policies are told; those that heed none are asked once."""

    trace: Path
    protocol: str
    policies: tuple[str, ...]
    target: float
    minutes: int
    runs: int

    @property
    def name(self) -> str:
        told = f" told {self.target:.1%}" if self.policies[0] in (OURS, BEST_RECENT_PEAK) else ""
        return f"{self.trace.stem} {self.protocol} {','.join(self.policies)}{told}"

    def rows(self) -> list[Row]:
        """Run it."""
        values, protocol = load(self.trace, self.minutes), PROTOCOLS[self.protocol]
        truth = truth_of(DEFAULT_POINTS)
        if self.policies == (START,):
            return [Row(*lost_at_the_start(values, protocol, truth, self.runs))]
        if self.policies == (BOUND,):
            return [Row(*found) for found in bounds(values, protocol, truth, self.runs)]
        options = ReplayOptions(self.policies, protocol, self.target, runs=self.runs)
        report = replay([(self.trace.stem, values)], truth, options)[0]
        return [Row(one.policy, one.qos, one.cost_vs_hindsight, one.rescales) for one in report.results]

    def digest(self) -> str:
        """Of everything the figures follow from."""
        ours = self.policies[0] in (OURS, BOUND)
        asked = f"{self.name} {self.minutes} {self.runs} {sources(ours)}".encode()
        return sha256(asked + load(self.trace, self.minutes).tobytes()).hexdigest()[:16]


def cells(traces: Sequence[Path], minutes: int, runs: int, brief: bool = False) -> list[Cell]:
    """All cells of the study, those of the main table first; ``brief``: only those."""
    places = [(trace, protocol) for trace in traces for protocol in PROTOCOLS]

    def every(policies: tuple[str, ...], targets: Sequence[float]) -> Iterator[Cell]:
        return (Cell(*place, policies, target, minutes, runs) for place in places for target in targets)

    main = [*every((OURS,), TARGETS), *every((BEST_RECENT_PEAK,), TARGETS)]
    if brief:
        return main
    others = [cell for group in _GROUPS for cell in every(group, TARGETS[:1])]
    limits = [*every((START,), TARGETS[:1]), *every((BOUND,), TARGETS[:1])]
    told = [*every((OURS,), TOLD[: -len(TARGETS)]), *every((BEST_RECENT_PEAK,), PEAK_TOLD[: -len(TARGETS)])]
    return [*main, *limits, *told, *others]


@cache
def load(trace: Path, minutes: int) -> Floats:
    """The first minutes of a trace."""
    return read_trace(trace).values[:minutes]


@cache
def sources(ours: bool) -> str:
    """A digest of the core's sources."""
    root = Path(sluicegate.__file__).parent
    names = sorted(path.relative_to(root).as_posix() for part in _CORE for path in root.glob(part))
    whole = sha256()
    for name in names:
        if ours or name not in OWN:
            whole.update(name.encode() + (root / name).read_bytes())
    return whole.hexdigest()
