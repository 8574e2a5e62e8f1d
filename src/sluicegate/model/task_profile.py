"""Rate and usage of a task with tau threads on one slot, from its profile (model-driven scheduling, Section 5 and 6).

    I(tau)      the highest rate it sustains               between two measured points: the straight line
    C(tau)      the share of the slot's CPU at that rate   from 0 threads, 0 of each; beyond the last point: the
    M(tau)      the share of its memory                    last point's value, since nothing was measured there
    T(omega)    the fewest MEASURED threads with I >= omega (over by at most the grid's width)
    tau_hat     the measured threads with the highest rate, omega_hat = I(tau_hat); among equals the fewest

Holding the last value overestimates a task whose rate falls with more threads; measure more points to see that. Usage
is net of the idle slot's: (u - base)/(1 - base), with a base of 2% of CPU and 13% of memory on the paper's machines.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from sluicegate.domain import Operator, ProfilePoint, TaskProfile
from sluicegate.domain.figures import rate
from sluicegate.errors import BadInput

ROUNDING = 1e-9
"""Relative slack when a rate or a share is compared with its bound: sums of shares carry rounding errors."""

ENDPOINT_CPU = 0.10
"""CPU of the one thread of a source or a sink: the paper's fixed allocation. Its memory share is unknown; 0 here."""

_threads = attrgetter("threads")


OFF = 0.25
"""Relative deviation at which a measured rate corrects the profile. Half: noise does. Double: plans are far off."""


class Usage(NamedTuple):
    """Shares of one slot."""

    cpu: float
    memory: float


def profile_of(operator: Operator) -> TaskProfile:
    """The operator's profile; without one, the single point that its service rate and usage give.

    A thread cannot use more than the slot it runs on, so shares above 1 count as the whole slot.

    >>> profile_of(Operator("parse", 310.0, cpu=0.85)).points
    (ProfilePoint(threads=1, rate_per_s=310.0, cpu=0.85, memory=0.0),)
    """
    if operator.profile is not None:
        return operator.profile
    point = ProfilePoint(1, operator.service_per_s, min(operator.cpu, 1.0), min(operator.memory, 1.0))
    return TaskProfile(operator.name, (point,))


def corrected(operator: Operator, rsd: float = 0.0) -> tuple[TaskProfile, str | None]:
    """The operator's profile, corrected by its observed rate, and the reason for the correction, if any.

    A profile stores the rate of one task at which it was measured. If the operator's learned rate deviates from it by
    more than ``OFF`` plus twice its relative standard error, all rates are scaled in proportion.

    >>> from dataclasses import replace
    >>> profile = TaskProfile("parse", (ProfilePoint(1, 300.0, 0.85, 0.1),), service_per_s=320.0)
    >>> found, why = corrected(Operator("parse", 160.0, profile=profile))
    >>> found.points[0].rate_per_s, why
    (150.0, 'profile of parse: measured at 320 rows/s a task, observed 160 rows/s: its rates are taken times 0.50')
    """
    profile = profile_of(operator)
    if profile.service_per_s is None:
        return profile, None
    ratio = operator.service_per_s / profile.service_per_s
    if abs(ratio - 1) <= OFF + 2 * rsd:
        return profile, None
    points = tuple(ProfilePoint(p.threads, p.rate_per_s * ratio, p.cpu, p.memory) for p in profile.points)
    why = (
        f"profile of {operator.name}: measured at {rate(profile.service_per_s)} a task, observed "
        f"{rate(operator.service_per_s)}: its rates are taken times {ratio:.2f}"
    )
    return TaskProfile(profile.task, points, operator.service_per_s), why


def rate_per_s(profile: TaskProfile, threads: int) -> float:
    """I(tau): the highest rate ``threads`` on one slot sustain.

    >>> table = TaskProfile("table", (ProfilePoint(1, 3.0, 0.01, 0.01), ProfilePoint(3, 6.0, 0.02, 0.01)))
    >>> [rate_per_s(table, threads) for threads in (0, 1, 2, 3, 99)]
    [0.0, 3.0, 4.5, 6.0, 6.0]
    """
    low, high, weight = _between(profile, threads)
    return _blend(low.rate_per_s if low else 0.0, high.rate_per_s, weight)


def usage(profile: TaskProfile, threads: int) -> Usage:
    """C(tau) and M(tau): CPU and memory that ``threads`` on one slot use at their highest rate.

    >>> table = TaskProfile("table", (ProfilePoint(1, 3.0, 0.1, 0.25), ProfilePoint(3, 6.0, 0.3, 0.5)))
    >>> usage(table, 2), usage(table, 9)
    (Usage(cpu=0.2, memory=0.375), Usage(cpu=0.3, memory=0.5))
    """
    low, high, weight = _between(profile, threads)
    return Usage(
        _blend(low.cpu if low else 0.0, high.cpu, weight), _blend(low.memory if low else 0.0, high.memory, weight)
    )


def usage_at(profile: TaskProfile, threads: int, arrivals_per_s: float) -> Usage:
    """Usage of ``threads`` on one slot at ``arrivals_per_s``: proportional to the rate, capped at their highest."""
    most = rate_per_s(profile, threads)
    share = min(1.0, arrivals_per_s / most) if most > 0 else 0.0
    cpu, memory = usage(profile, threads)
    return Usage(cpu * share, memory * share)


def fewest_threads(profile: TaskProfile, wanted_per_s: float) -> int | None:
    """T(omega): the fewest measured threads that sustain ``wanted_per_s`` on one slot; ``None`` if none do.

    >>> pi = TaskProfile("pi", (ProfilePoint(1, 105.0, 0.92, 0.02), ProfilePoint(2, 110.0, 0.95, 0.04)))
    >>> fewest_threads(pi, 100.0), fewest_threads(pi, 106.0), fewest_threads(pi, 111.0)
    (1, 2, None)
    """
    enough = wanted_per_s * (1 - ROUNDING)
    return next((point.threads for point in profile.points if point.rate_per_s >= enough), None)


def peak(profile: TaskProfile) -> ProfilePoint:
    """The point of tau_hat and omega_hat.

    >>> pi = TaskProfile("pi", (ProfilePoint(1, 105.0, 0.92, 0.02), ProfilePoint(2, 110.0, 0.95, 0.04)))
    >>> peak(pi).threads
    2
    """
    return max(profile.points, key=lambda point: (point.rate_per_s, -point.threads))


def best_within(profile: TaskProfile, threads: int) -> ProfilePoint:
    """The measured point with the highest rate among those of at most ``threads`` (at least 1)."""
    fits = [point for point in profile.points if point.threads <= threads]
    return max(fits or profile.points[:1], key=lambda point: (point.rate_per_s, -point.threads))


def net_share(used: float, idle: float) -> float:
    """Usage net of the idle slot's, as a share of what the idle slot leaves free.

    >>> round(net_share(0.772, idle=0.02), 4), net_share(0.01, idle=0.02)
    (0.7673, 0.0)
    """
    if not 0 <= idle < 1:
        raise BadInput(f"an idle slot that uses {idle}: give a share of the slot from 0 to below 1")
    return min(max((used - idle) / (1 - idle), 0.0), 1.0)


def _between(profile: TaskProfile, threads: int) -> tuple[ProfilePoint | None, ProfilePoint, float]:
    """The measured points around ``threads`` and its relative position (0 to 1) between them."""
    points = profile.points
    at = bisect_right(points, threads, key=_threads)
    if at == 0:
        return None, points[0], max(threads, 0) / points[0].threads
    low, high = points[at - 1], points[min(at, len(points) - 1)]
    return low, high, (threads - low.threads) / (high.threads - low.threads) if high is not low else 0.0


def _blend(low: float, high: float, weight: float) -> float:
    return low + (high - low) * weight if weight else low
