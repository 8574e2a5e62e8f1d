"""Dhalion's policy for Heron: operators that cause backpressure grow by the time for which they cause it.

    p' = ceil(p x (1 + b / (1000 - b))),  at most 4 p,     b = backpressure in ms per second

If upstream is blocked for b of 1000 ms it could have sent 1000/(1000 - b) times as much: that is the factor. At
b = 1000 it has a pole, hence the bound. (Floratou et al., "Dhalion", VLDB 2017.)

Scaling down is our reading of the paper's conservative rule: only without backpressure anywhere in the pipeline, an
operator whose queue is nearly empty shrinks by a fifth (at least one). A decrease that was followed by backpressure is
remembered and not repeated while the load is as high as it was then. The policy decides every 5 minutes, so that a
change shows its effect before the next; in between its last proposal is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.policy.peers.readings import arrivals_of, running_of, whole
from sluicegate.policy.within_limits import proposal_within


@dataclass(frozen=True, slots=True)
class Failed:
    """A size to which an operator was lowered, and the load at which it then caused backpressure."""

    size: int
    arrivals_per_s: float


@dataclass(frozen=True, slots=True)
class DhalionMemory:
    """The last decision; ``lowered`` are the operators that were shrunk, ``failed`` those where that failed."""

    looked_s: float
    wanted: Mapping[str, int]
    reasons: tuple[str, ...]
    lowered: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, Failed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dhalion:
    """The policy and its parameters.

    ``most_factor``: the largest growth at once. ``noise_ms_per_s``: backpressure below it is ignored. ``every_s``: time
    between decisions. ``empty_rows``: a queue of at most so many rows per processor counts as nearly empty. ``less``:
    share removed at once. ``as_high``: share of the load of a failed decrease from which on it is not repeated.

    >>> from sluicegate.domain import Edge, Observation, Operator, OperatorObservation, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> held = Observation(0.0, 450.0, {"a": 3}, {"a": OperatorObservation(backpressure=0.4)})
    >>> Dhalion().propose(None, Situation(0.0, one, held, 450.0, {"a": 450.0}))[1].processors  # 3 x (1 + 400/600)
    {'a': 5}
    """

    most_factor: float = 4.0
    noise_ms_per_s: float = 20.0
    every_s: float = 300.0
    empty_rows: float = 1.0
    less: float = 0.2
    as_high: float = 0.9

    def __post_init__(self) -> None:
        require_number(self.most_factor, "dhalion most_factor", least=1.0)
        for what in ("noise_ms_per_s", "every_s", "empty_rows", "as_high"):
            require_number(getattr(self, what), f"dhalion {what}")
        require(0 <= self.less < 1, f"dhalion less is {self.less:g}: give a share from 0, below 1")

    @property
    def name(self) -> str:
        return "dhalion"

    def start(self) -> DhalionMemory | None:
        return None

    def propose(self, memory: DhalionMemory | None, situation: Situation) -> tuple[DhalionMemory, Proposal]:
        if memory is None or situation.now_s - memory.looked_s >= self.every_s:
            memory = self._looked(memory, situation)
        return memory, proposal_within(memory.wanted, memory.reasons, situation)

    def _looked(self, memory: DhalionMemory | None, situation: Situation) -> DhalionMemory:
        running, arrivals = running_of(situation), arrivals_of(situation)
        held = self._held_ms(situation)
        failed = dict(memory.failed) if memory else {}
        if memory:
            failed |= {
                name: Failed(running[name], arrivals[name])
                for name in held
                if memory.lowered.get(name) == running[name]
            }
        if held:
            wanted, reasons = self._raised(running, held)
            return DhalionMemory(situation.now_s, wanted, reasons, {}, failed)
        wanted, reasons = self._lowered(situation, running, arrivals, failed)
        fewer = {name: size for name, size in wanted.items() if size < running[name]}
        # a decrease is remembered until the next one replaces it, so that delayed backpressure still counts against it
        trial = {**(memory.lowered if memory else {}), **fewer}
        return DhalionMemory(situation.now_s, wanted, reasons, trial, failed)

    def _held_ms(self, situation: Situation) -> dict[str, float]:
        """The backpressure of the operators that cause it, in ms per second."""
        seen = {name: situation.observation.of(name).backpressure for name in situation.topology.names}
        held_ms = {name: 1000.0 * min(1.0, share) for name, share in seen.items() if share is not None}
        return {name: ms for name, ms in held_ms.items() if ms > 0 and ms >= self.noise_ms_per_s}

    def _raised(self, running: Mapping[str, int], held: Mapping[str, float]) -> tuple[dict[str, int], tuple[str, ...]]:
        wanted = dict(running)
        reasons: list[str] = []
        for name, ms in held.items():
            factor = min(self.most_factor, 1 + ms / (1000 - ms)) if ms < 1000 else self.most_factor
            wanted[name] = whole(running[name] * factor)
            reasons.append(f"{name}: backpressure {ms:g} ms/s, {running[name]} x {factor:.3g}: {wanted[name]}")
        return wanted, tuple(reasons)

    def _lowered(
        self,
        situation: Situation,
        running: Mapping[str, int],
        arrivals: Mapping[str, float],
        failed: Mapping[str, Failed],
    ) -> tuple[dict[str, int], tuple[str, ...]]:
        wanted = dict(running)
        reasons: list[str] = []
        for name, have in running.items():
            queue = situation.observation.of(name).queue_rows
            fewer = max(1, math.floor(have * (1 - self.less) + 1e-9))
            if queue is None or queue > self.empty_rows * have or fewer == have:
                continue
            wrong = failed.get(name)
            if wrong and fewer <= wrong.size and arrivals[name] >= self.as_high * wrong.arrivals_per_s:
                reasons.append(
                    f"{name}: {wrong.size} were not enough at {rate(wrong.arrivals_per_s, 6)}, now "
                    f"{rate(arrivals[name], 6)}: {have} kept"
                )
                continue
            wanted[name] = fewer
            reasons.append(f"{name}: no back-pressure and {queue:g} rows queued, {have} x {1 - self.less:g}: {fewer}")
        return wanted, tuple(reasons) or ("no back-pressure, and no queue is nearly empty: kept",)
