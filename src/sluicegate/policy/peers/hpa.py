"""Kubernetes' horizontal pod autoscaler, one deployment per operator.

    n' = ceil(n x utilisation / target),   n' = n while |utilisation/target - 1| <= 10%

every 15 s. Scaling up is immediate, scaling down goes only to the largest n' of the last 5 minutes. (Its default limit
of doubling in 15 s never binds here: a utilisation of at most 1 over a target of 0.5 or more gives at most twice n.)
Replicas that are not ready yet do not change n again: while a request has not taken effect, it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.topology import require, require_number
from sluicegate.policy.peers.readings import processors_of, running_of, utilisation_of, whole
from sluicegate.policy.within_limits import proposal_within

Recommendations = tuple[tuple[float, Mapping[str, int]], ...]
"""Recommendations of the stabilisation window with their times: a decrease goes no lower than the largest of them."""


def noted(past: Recommendations, now_s: float, best: Mapping[str, int], window_s: float) -> Recommendations:
    """The recommendations within the window, with the newest appended.

    >>> noted(((0.0, {"a": 5}), (10.0, {"a": 3})), 300.0, {"a": 2}, window_s=300.0)
    ((10.0, {'a': 3}), (300.0, {'a': 2}))
    """
    return (*((at_s, sizes) for at_s, sizes in past if at_s > now_s - window_s), (now_s, best))


def largest_of(recommended: Recommendations, name: str) -> int:
    """The largest size recommended for one operator."""
    return max(sizes.get(name, 0) for _, sizes in recommended)


@dataclass(frozen=True, slots=True)
class HpaMemory:
    """The last evaluation (time, sizes, reasons), and the recommendations of the stabilisation window."""

    looked_s: float
    wanted: Mapping[str, int]
    reasons: tuple[str, ...]
    recommended: Recommendations


@dataclass(frozen=True, slots=True)
class Hpa:
    """The policy. ``target`` is the target busy share (Kubernetes' default 0.8); ``tolerance`` the tolerated relative
    deviation.

    ``period_s``: the time between evaluations. ``stabilisation_s``: for how long a larger recommendation prevents a
    decrease; longer is more stable and more expensive.

    >>> from sluicegate.domain import Edge, Observation, Operator, OperatorObservation, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> busy = Observation(0.0, 450.0, {"a": 4}, {"a": OperatorObservation(utilisation=1.0)})
    >>> Hpa(target=0.5).propose(None, Situation(0.0, one, busy, 450.0, {"a": 450.0}))[1].processors
    {'a': 8}
    """

    target: float = 0.8
    tolerance: float = 0.1
    period_s: float = 15.0
    stabilisation_s: float = 300.0

    def __post_init__(self) -> None:
        require(0 < self.target <= 1, f"hpa target is {self.target:g}: give a share above 0, at most 1")
        for what in ("tolerance", "period_s", "stabilisation_s"):
            require_number(getattr(self, what), f"hpa {what}")

    @property
    def name(self) -> str:
        return "hpa"

    def start(self) -> HpaMemory | None:
        return None

    def propose(self, memory: HpaMemory | None, situation: Situation) -> tuple[HpaMemory, Proposal]:
        if memory is None or situation.now_s - memory.looked_s >= self.period_s:
            memory = self._looked(memory, situation)
        return memory, proposal_within(memory.wanted, memory.reasons, situation)

    def _looked(self, memory: HpaMemory | None, situation: Situation) -> HpaMemory:
        now_s, running = situation.now_s, running_of(situation)
        # the initial allocation counts as recommended, so that a start is not followed by an immediate decrease
        past = memory.recommended if memory else ((now_s, running),)
        best = {name: self._recommended(situation, name) for name in running}
        recommended = noted(past, now_s, best, self.stabilisation_s)
        wanted: dict[str, int] = {}
        reasons: list[str] = []
        for name, have in running.items():
            held = largest_of(recommended, name)
            wanted[name] = best[name] if best[name] >= have else min(have, held)
            reasons.append(
                f"{name}: {have} x {utilisation_of(situation, name):.3g} / {self.target:g}: {best[name]},"
                f" at most {held} in {self.stabilisation_s:g} s: {wanted[name]}"
            )
        return HpaMemory(now_s, wanted, tuple(reasons), recommended)

    def _recommended(self, situation: Situation, name: str) -> int:
        have, ratio = processors_of(situation, name), utilisation_of(situation, name) / self.target
        if (asked := situation.observation.asked.get(name, have)) > have:
            return asked
        if abs(ratio - 1) <= self.tolerance + 1e-9:
            return have
        return max(1, whole(have * ratio))
