"""Model-based allocation (model-driven scheduling, Algorithm 3).

    while rate >= omega_hat:   a full bundle: tau_hat threads, a whole slot (all CPU, all memory); rate -= omega_hat
    the rest:                  tau' = T(rest) threads with C(tau'), M(tau');  tau' = 1: C(1) rest/I(1), M(1) rest/I(1)

A slot at omega_hat gains nothing from more threads, so a full bundle gets it alone, whatever it actually uses. Our
reading: a bundle is marked full here, if its rate is omega_hat or above; the mappers only use the mark. The paper's
mapper checks for tau_hat pending threads instead, which with tau_hat = 1 gives every rest a slot of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.domain import Bundle, ProfilePoint, Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.model.task_profile import best_within, fewest_threads, peak, usage, usage_at
from sluicegate.policy.allotment import Packer, Part, Want, propose, spare_threads, whole_units


@dataclass(frozen=True, slots=True)
class Mba(Packer):
    """Model-based allocation as a policy."""

    @property
    def name(self) -> str:
        return "mba"

    def propose(self, memory: None, situation: Situation) -> tuple[None, Proposal]:
        return None, propose(situation, allot, self.endpoint)


def allot(want: Want) -> Part:
    """Allot full bundles and a bundle for the rest to one operator.

    >>> from sluicegate.domain import TaskProfile
    >>> blob = TaskProfile("blob", (ProfilePoint(1, 2.0, 0.07, 0.24), ProfilePoint(50, 30.0, 0.77, 0.31)))
    >>> [(b.threads, b.cpu, b.full) for b in allot(Want("blob", blob, 50.0, least=1, most=999)).bundles]
    [(50, 1.0, True), (50, 0.77, False)]
    """
    top = peak(want.profile)
    full, rest = whole_units(want.arrivals_per_s, top.rate_per_s, want.most // top.threads)
    bundles = (Bundle(want.operator, top.threads, 1.0, 1.0, full=True),) * full
    carried = full * top.rate_per_s
    left = want.most - full * top.threads
    if rest > 0 and left > 0:
        last, more = _partial(want, rest, left)
        bundles += (last,)
        carried += more
    bundles += spare_threads(want, sum(bundle.threads for bundle in bundles))
    return Part(bundles, min(carried, want.arrivals_per_s), _how(want, top, full, bundles))


def _partial(want: Want, rest_per_s: float, left: int) -> tuple[Bundle, float]:
    """The bundle for the rest within ``left`` threads, and the rate it carries."""
    threads = fewest_threads(want.profile, rest_per_s)
    if threads is None or threads > left:
        best = best_within(want.profile, left)
        threads, rest_per_s = best.threads, min(best.rate_per_s, rest_per_s)
    cpu, memory = usage_at(want.profile, 1, rest_per_s) if threads == 1 else usage(want.profile, threads)
    return Bundle(want.operator, threads, cpu, memory), rest_per_s


def _how(want: Want, top: ProfilePoint, full: int, bundles: tuple[Bundle, ...]) -> str:
    others = bundles[full:]
    return (
        f"{want.operator}: {rate(want.arrivals_per_s)} by {full} full slots of {top.threads} threads "
        f"({rate(top.rate_per_s)} each) and {sum(b.threads for b in others)} threads with "
        f"{sum(b.cpu for b in others):.1%} CPU, {sum(b.memory for b in others):.1%} memory of a slot"
    )
