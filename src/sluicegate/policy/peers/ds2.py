"""DS2: sizes every operator in one pass, upstream first, by the rate that its upstream will send and its true rate.

    lambda_j = outside rows + sum over upstream i of lambda_i x selectivity(i -> j)
    k_j = ceil(lambda_j / mu_j x (1 + margin))

mu_j is the true rate of one instance: rows processed per second of useful time (waiting for input or for room
downstream is not useful time). Because upstream is sized first, lambda_j is what arrives once nothing is held back,
not what arrives now, and one pass is enough. (Kalavri et al., "Three steps is all you need", OSDI 2018, Eq 7 and 8.)

DS2 needs a graph without loops: on a loop there is no "upstream first". The measured arrivals are then used and the
plan is marked as not DS2's (``feasible=False``). ``margin`` is 0 in the paper; its effect with mu = 100 rows/s:

    | lambda | margin 0 | margin 0.1 | margin 0.2 |
    |    450 |        5 |          5 |          6 |
    |    500 |        5 |          6 |          6 |   at 5 the operator is busy all the time
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require_number
from sluicegate.policy.peers.readings import arrivals_of, propagated_of, service_of, whole
from sluicegate.policy.within_limits import proposal_within


@dataclass(frozen=True, slots=True)
class Ds2:
    """The DS2 policy. ``margin`` is the share of capacity added on top of the formula's result.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> two = Topology("t", (Operator("a", 100.0), Operator("b", 40.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
    >>> seen = Situation(0.0, two, Observation(0.0, 450.0, {"a": 1, "b": 1}), 450.0, {})
    >>> Ds2().propose(None, seen)[1].processors
    {'a': 5, 'b': 6}
    """

    margin: float = 0.0

    def __post_init__(self) -> None:
        require_number(self.margin, "ds2 margin")

    @property
    def name(self) -> str:
        return "ds2"

    def start(self) -> None:
        return None

    def propose(self, memory: None, situation: Situation) -> tuple[None, Proposal]:
        topology = situation.topology
        arrivals = arrivals_of(situation) if topology.has_loop else propagated_of(situation)
        wanted: dict[str, int] = {}
        reasons = [_LOOP] if topology.has_loop else []
        for name in topology.order:
            true_per_s = service_of(situation, name)
            wanted[name] = max(1, whole(arrivals[name] / true_per_s * (1 + self.margin)))
            reasons.append(
                f"{name}: {rate(arrivals[name], 6)} / {rate(true_per_s, 6)} each x {1 + self.margin:g}: {wanted[name]}"
            )
        return None, proposal_within(wanted, tuple(reasons), situation, feasible=not topology.has_loop)


_LOOP = "the pipeline has a loop and DS2 needs a graph without: sized by the arrivals as measured"
