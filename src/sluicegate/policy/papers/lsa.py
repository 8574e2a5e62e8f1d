"""Linear scaling allocation, the baseline (model-driven scheduling, Algorithm 2).

The single-thread profile on a slot of its own is assumed to hold for every further thread:

    one thread with C(1), M(1) per full I(1) of the rate, and one for the rest with C(1) rest/I(1), M(1) rest/I(1)

It ignores that threads of a task on one slot interfere with or help each other, so it rents more and achieves less.
Each thread is a bundle of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.domain import Bundle, Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.policy.allotment import Packer, Part, Want, propose, spare_threads, whole_units


@dataclass(frozen=True, slots=True)
class Lsa(Packer):
    """Linear scaling allocation as a policy."""

    @property
    def name(self) -> str:
        return "lsa"

    def propose(self, memory: None, situation: Situation) -> tuple[None, Proposal]:
        return None, propose(situation, allot, self.endpoint)


def allot(want: Want) -> Part:
    """Allot threads to one operator by its single-thread profile point.

    >>> from sluicegate.domain import ProfilePoint, TaskProfile
    >>> blob = TaskProfile("blob", (ProfilePoint(1, 2.0, 0.07, 0.24), ProfilePoint(50, 30.0, 0.77, 0.31)))
    >>> part = allot(Want("blob", blob, 51.0, least=1, most=999))
    >>> len(part.bundles), part.bundles[0], part.bundles[-1]
    (26, Bundle(operator='blob', threads=1, cpu=0.07, memory=0.24, full=False), \
Bundle(operator='blob', threads=1, cpu=0.035, memory=0.12, full=False))
    """
    one = want.profile.points[0]
    full, rest = whole_units(want.arrivals_per_s, one.rate_per_s, want.most)
    bundles = (Bundle(want.operator, 1, one.cpu, one.memory),) * full
    carried = full * one.rate_per_s
    if rest > 0 and full < want.most:
        share = rest / one.rate_per_s
        bundles += (Bundle(want.operator, 1, one.cpu * share, one.memory * share),)
        carried += rest
    bundles += spare_threads(want, len(bundles))
    how = (
        f"{want.operator}: {rate(want.arrivals_per_s)} by {len(bundles)} threads of {rate(one.rate_per_s)}, "
        f"each {one.cpu:.1%} CPU and {one.memory:.1%} memory of a slot"
    )
    return Part(bundles, min(carried, want.arrivals_per_s), how)
