"""Decides whether a proposed rescale is applied. Every refusal names its rule and gives the numbers.

The rules, in the order in which they are checked:

1. metrics        no arrival rate, or an observation older than ``stale_after_s``: no change; an operator that has not
                  finished a batch does not shrink
2. one at a time  a rescale still under way: no change; if processing continues meanwhile (executors or the next batch
                  are awaited), operators may grow but not shrink
3. bounds         least and most processors, and the budget: the proposal is clamped to them
4. window         an operator shrinks only to the largest proposal of the last ``settle_down_s``
5. calm           while latency is above ``calm_share`` of its bound the total does not fall; unless cores are short or
                  the model says that the processors themselves make batches slower (each task costs time)
6. dead band      an operator's change of at most ``dead_band`` of its processors is skipped, unless its utilisation
                  requires it
7. no escalation  the last increase did not help, though every operator keeps up: no further increase until the load
                  has risen; not for an operator below its least
8. cool-down      T_ra: ``cooldown_s`` since the last move, and since the start; not for growth, if the load has risen
                  by more than ``risen_share`` since the last move
9. it pays        gain over ``horizon_s`` against pause and catch-up, in slot-seconds

Rule 9. A move stops the pipeline for ``pause_s``; with lambda arriving and capacity C it then needs
pause lambda/(C - lambda) to catch up. During both the slots process a backlog:

    cost = (pause + catch-up) x slots            gain = slots released x horizon          (fewer slots)
                                                 gain = slots x horizon x share of E[T] cut (as many or more)

where the share is 1 if a latency bound is exceeded now or an operator cannot keep up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from sluicegate.control.rules import SLIGHT, Attempt, Ledger, Request, Rules, Verdict
from sluicegate.domain import Limits, Refusal, Rescale

_MOST_PATIENCE = 16.0
"""Cap on the growth of the window that holds executors: 20 s become 5 min. Half: bursts every few minutes break the
promise. Double: executors stay for ten minutes after a load has fallen."""
_MISSED_WINDOWS = 3.0
"""Windows within which a released executor that is wanted again counts as released too early. Half: slow waves of the
load move executors. Double: a load that falls for good holds them longer."""


def govern(ledger: Ledger, request: Request, rules: Rules, limits: Limits) -> tuple[Ledger, Verdict]:
    """Decide on one proposal.

    >>> ask = Request(100.0, 100.0, 50.0, False, {"a": 2}, {"a": 4}, {"a": 1.2})
    >>> _, verdict = govern(Ledger(), ask, Rules(cooldown_s=30.0), Limits())
    >>> verdict.refusals[0].why
    'begun 0 s ago, the cool-down is 30 s'
    >>> _, verdict = govern(Ledger(moved_at_s=90.0, moved_per_s=50.0), ask, Rules(cooldown_s=30.0), Limits())
    >>> verdict.refusals[0].why
    'moved 10 s ago, the cool-down is 30 s'
    """
    if ledger.moved_at_s is None:
        ledger = replace(ledger, moved_at_s=request.now_s)
    if request.starting:
        request = _as_asked(request)
    blocked = _metrics(request, rules) or _one_at_a_time(request)
    if blocked:
        return ledger, Verdict(request.stays, (), (blocked,))
    want, cut = _bounded(request, limits)
    want, still = _not_taken_yet(request, want)
    if limits.budget is not None and sum(want.values()) > max(limits.budget, sum(request.have.values())):
        want = dict(request.have)  # the processors of those that stay are not free for others yet
    cut = (*cut, *still)
    ledger = _remember(ledger, request.now_s, want, rules)
    kept, settling = _not_below_recent(ledger, request, want)
    kept, hot = _not_while_late(request, kept, rules)
    kept, idle = _beyond_dead_band(request, kept, rules)
    if limits.budget is not None and sum(kept.values()) > limits.budget:
        kept, settling, hot, idle = want, (), (), ()  # the processors kept by these rules would exceed the budget
    want, notes = kept, (*cut, *settling, *hot, *idle)
    if all(want[name] == stays for name, stays in request.stays.items()):
        return ledger, Verdict(request.stays, (), notes)
    short = any(have < limits.least_for(name) for name, have in request.have.items())
    blocked = None if short else _no_escalation(ledger, request, want, rules)
    blocked = blocked or _cool_down(ledger, request, want, rules)
    blocked = blocked or _must_pay(request, want, rules)
    if blocked:
        return ledger, Verdict(request.stays, (), (*notes, blocked))
    return _moved(ledger, request, want), Verdict(want, _changes(request, want), notes)


def held(
    ledger: Ledger, now_s: float, want: int, have: int, settle_s: float, waited_s: float = 0.0
) -> tuple[Ledger, int]:
    """The target number of executors: ``want`` if it is more than ``have``, else the most wanted within the window.

    The window is ``settle_s``, of which the operators' own window has already taken ``waited_s``.

    If an executor is wanted again soon after one was released, that was too early, since the new one starts cold: the
    window doubles, up to ``_MOST_PATIENCE`` times its length. Every other release halves it again. So a load that only
    varies around its mean keeps the executors of its peaks, and one that falls releases them as fast as at first.

    >>> ledger, found = Ledger(), []
    >>> for at, want in ((0.0, 4), (10.0, 2), (19.0, 1), (29.0, 1), (40.0, 1)):
    ...     ledger, n = held(ledger, at, want, 4, 20.0)
    ...     found.append(n)
    >>> found
    [4, 4, 4, 2, 1]
    """
    patience, left_s = ledger.patience, ledger.executor_left_s
    window_s = patience * settle_s - waited_s
    recent = (*((at, n) for at, n in ledger.executors if now_s - at <= window_s), (now_s, want))
    target = max(want, min(have, max(n for _, n in recent)))
    missed = left_s is not None and now_s - left_s <= _MISSED_WINDOWS * patience * settle_s
    if target > have and missed:
        patience, left_s = min(2 * patience, _MOST_PATIENCE), None
    elif target < have:
        patience = max(patience / 2, 1.0) if left_s is not None and not missed else patience
        left_s = now_s
    return replace(ledger, executors=recent, patience=patience, executor_left_s=left_s), target


def _metrics(request: Request, rules: Rules) -> Refusal | None:
    if request.arrivals_per_s is None:
        return Refusal("metrics", "no arrival rate was measured: what runs stays")
    age = request.now_s - request.observed_at_s
    if age > rules.stale_after_s:
        return Refusal("metrics", f"the observation is {age:.3g} s old, at most {rules.stale_after_s:g} s is trusted")
    return None


def _one_at_a_time(request: Request) -> Refusal | None:
    if not request.rescaling or request.starting:
        return None
    return Refusal("one at a time", "a rescale is still under way: nothing moves until it is in force")


def _as_asked(request: Request) -> Request:
    """The request with the pending allocation counted as running: it is not withdrawn before it takes effect."""
    have = dict(request.stays)
    busy = {name: share * request.have[name] / have[name] for name, share in request.utilisation.items()}
    return replace(request, have=have, asked=have, utilisation=busy)


def _not_taken_yet(request: Request, want: dict[str, int]) -> tuple[dict[str, int], tuple[Refusal, ...]]:
    """Keep operators that have not finished a batch from shrinking, and all of them while a request is pending."""
    less = [name for name, have in request.have.items() if want[name] < have]
    unknown = [name for name in less if name in request.unmeasured]
    notes = [Refusal("metrics", f"no batch of {name} yet: it stays at {request.have[name]}") for name in unknown]
    if request.starting and less:
        why = f"a request is still pending: {', '.join(less)} do not shrink until it is fulfilled"
        notes.append(Refusal("one at a time", why))
    stay = set(less) if request.starting else set(unknown)
    return {name: request.have[name] if name in stay else k for name, k in want.items()}, tuple(notes)


def govern_pace(
    ledger: Ledger, now_s: float, in_force: Mapping[str, float], want: Mapping[str, float], rules: Rules
) -> tuple[Ledger, dict[str, float]]:
    """The paces to apply: a shorter one at once, a longer one only up to the shortest proposal of ``settle_down_s``.

    A slight difference leaves the pace in force. The window keeps a noisy load from changing the pace at every tick;
    a shorter pace is never delayed, since the promise may depend on it.

    >>> rules, ledger = Rules(settle_down_s=10.0), Ledger()
    >>> ledger, first = govern_pace(ledger, 0.0, {"a": 2.0}, {"a": 1.0}, rules)
    >>> ledger, later = govern_pace(ledger, 5.0, first, {"a": 4.0}, rules)
    >>> ledger, settled = govern_pace(ledger, 10.0, later, {"a": 3.9}, rules)
    >>> first, later, settled
    ({'a': 1.0}, {'a': 1.0}, {'a': 3.9})
    """
    recent = (*(entry for entry in ledger.paces if now_s - entry[0] < rules.settle_down_s), (now_s, dict(want)))
    applied = dict[str, float]()
    for name, pace_s in want.items():
        before_s = in_force.get(name, 0.0)
        if pace_s > before_s:
            pace_s = max(min(wanted.get(name, 0.0) for _, wanted in recent), before_s)
        slight = abs(pace_s - before_s) <= SLIGHT * max(before_s, 0.05)
        applied[name] = before_s if slight else pace_s
    return replace(ledger, paces=recent), applied


def _bounded(request: Request, limits: Limits) -> tuple[dict[str, int], tuple[Refusal, ...]]:
    asked = {name: request.want.get(name, have) for name, have in request.have.items()}
    inside = (
        not limits.most_of
        and not limits.least_of
        and limits.least <= min(asked.values())
        and max(asked.values()) <= limits.most
    )
    want = asked if inside else {name: limits.clamp(name, count) for name, count in asked.items()}
    notes = []
    if not inside:
        notes = [
            Refusal("bounds", f"{name}: {request.want[name]} processors wanted, {count} is the bound")
            for name, count in want.items()
            if request.want.get(name, count) != count
        ]
    if limits.budget is not None and sum(want.values()) > limits.budget:
        total, kept = sum(want.values()), sum(request.have.values())
        notes.append(Refusal("bounds", f"{total} processors wanted in all, the budget is {limits.budget}: {kept} stay"))
        want = dict(request.have)
    return want, tuple(notes)


def _remember(ledger: Ledger, now_s: float, want: Mapping[str, int], rules: Rules) -> Ledger:
    """Record the proposals of the window by twelfths of it, only the largest of each, so that fast ticks are cheap."""
    kept = tuple(entry for entry in ledger.wanted if now_s - entry[0] < rules.settle_down_s)
    if kept and now_s - kept[-1][0] < rules.settle_down_s / 12:
        at_s, last = kept[-1]
        largest = {name: max(count, last.get(name, 0)) for name, count in want.items()}
        return replace(ledger, wanted=(*kept[:-1], (at_s, largest)))
    return replace(ledger, wanted=(*kept, (now_s, want)))


def _not_below_recent(
    ledger: Ledger, request: Request, want: dict[str, int]
) -> tuple[dict[str, int], tuple[Refusal, ...]]:
    lower = [name for name, have in request.have.items() if want[name] < have]
    if not lower:
        return want, ()
    out, notes = dict(want), []
    for name in lower:
        recent = max(entry[1].get(name, 0) for entry in ledger.wanted)
        out[name] = min(request.have[name], max(want[name], recent))
        if out[name] != want[name]:
            age = request.now_s - ledger.wanted[0][0]
            notes.append(
                Refusal(
                    "window", f"{name}: {want[name]} wanted, but {recent} were within the last {age:.3g} s: {out[name]}"
                )
            )
    return out, tuple(notes)


def _not_while_late(request: Request, want: dict[str, int], rules: Rules) -> tuple[dict[str, int], tuple[Refusal, ...]]:
    fewer = sum(request.have.values()) - sum(want.values())
    # when all cores are busy, fewer tasks reduce latency
    if fewer <= 0 or request.late is None or request.late <= rules.calm_share or request.crowded:
        return want, ()
    have_s, want_s = request.sojourns_s()
    if want_s < have_s * (1 - rules.helped_share) < math.inf:
        return want, ()
    why = f"latency is at {request.late:.2f}x its bound: {fewer} processors are taken only below {rules.calm_share:g}x"
    return {name: max(count, request.have[name]) for name, count in want.items()}, (Refusal("calm", why),)


def _beyond_dead_band(
    request: Request, want: dict[str, int], rules: Rules
) -> tuple[dict[str, int], tuple[Refusal, ...]]:
    out, notes = dict(want), []
    changes = [(name, have) for name, have in request.have.items() if want[name] != have]
    for name, have in changes:
        change = abs(want[name] - have)
        pressed = want[name] > have and request.utilisation.get(name, 1.0) > rules.must_share
        if change <= rules.dead_band * have and not pressed:
            out[name] = have
            notes.append(
                Refusal(
                    "dead band", f"{name}: {have} -> {want[name]} is {change / have:.1%}, within {rules.dead_band:.0%}"
                )
            )
    return out, tuple(notes)


def _no_escalation(ledger: Ledger, request: Request, want: Mapping[str, int], rules: Rules) -> Refusal | None:
    last, total = ledger.last_raise, sum(want.values())
    if last is None or total <= sum(request.have.values()) or request.late is None or last.late is None:
        return None
    if any(busy >= rules.must_share for busy in request.utilisation.values()):
        return None  # an operator cannot keep up, so more processors do help
    more_load = (request.arrivals_per_s or 0.0) > last.arrivals_per_s * (1 + rules.dead_band)
    helped = request.late < last.late * (1 - rules.helped_share)
    if request.late <= 1 or more_load or helped:
        return None
    return Refusal(
        "no escalation",
        f"raised to {last.processors} processors {request.now_s - last.at_s:.3g} s ago and latency stayed at "
        f"{request.late:.2f}x its bound (was {last.late:.2f}x): more do not help at this load",
    )


def _cool_down(ledger: Ledger, request: Request, want: Mapping[str, int], rules: Rules) -> Refusal | None:
    since = request.now_s - (ledger.moved_at_s if ledger.moved_at_s is not None else request.now_s)
    if since >= rules.cooldown_s or _must_follow(ledger, request, want, rules):
        return None
    what = "begun" if ledger.moved_per_s is None else "moved"
    return Refusal("cool-down", f"{what} {since:.3g} s ago, the cool-down is {rules.cooldown_s:g} s")


def _must_follow(ledger: Ledger, request: Request, want: Mapping[str, int], rules: Rules) -> bool:
    """Whether the last move was for a smaller load than now, so that its effect need not be awaited before growing."""
    if ledger.moved_per_s is None or math.isinf(rules.cooldown_s):
        return False
    risen = (request.arrivals_per_s or 0.0) > ledger.moved_per_s * (1 + rules.risen_share)
    return risen and all(want[name] >= stays for name, stays in request.stays.items())


def _must_pay(request: Request, want: Mapping[str, int], rules: Rules) -> Refusal | None:
    arrivals = request.arrivals_per_s or 0.0
    spare = request.capacity_want_per_s - arrivals
    catch_up = 0.0 if math.isinf(spare) or spare <= 0 else rules.pause_s * arrivals / spare
    have, then = sum(request.have.values()), sum(want.values())
    cost = (rules.pause_s + catch_up) * max(have, then)
    freed = have - then if then < have else then * _share_cut(request)
    gain = freed * rules.horizon_s
    if gain > cost or cost == 0:
        return None
    return Refusal(
        "it pays",
        f"gain {gain:.4g} slot-seconds over {rules.horizon_s:g} s, cost {cost:.4g} "
        f"({rules.pause_s:g} s pause, {catch_up:.3g} s catching up, {max(have, then)} slots)",
    )


def _share_cut(request: Request) -> float:
    """The share of E[T] that the move cuts; 1 if the latency bound is exceeded or an operator cannot keep up."""
    late = request.late is not None and request.late > 1
    if late or any(busy >= 1 for busy in request.utilisation.values()):
        return 1.0
    have_s, want_s = request.sojourns_s()
    if math.isinf(have_s):
        return 1.0
    return max(1 - want_s / have_s, 0.0) if have_s > 0 else 0.0


def _changes(request: Request, want: Mapping[str, int]) -> tuple[Rescale, ...]:
    return tuple(
        Rescale(name, have, want[name], f"{have} -> {want[name]} at {request.utilisation.get(name, 0.0):.0%} busy")
        for name, have in request.have.items()
        if want[name] != have
    )


def _moved(ledger: Ledger, request: Request, want: Mapping[str, int]) -> Ledger:
    raised = sum(want.values()) > sum(request.have.values())
    attempt = Attempt(request.now_s, request.arrivals_per_s or 0.0, request.late, sum(want.values()))
    return replace(
        ledger,
        moved_at_s=request.now_s,
        moved_per_s=request.arrivals_per_s,
        last_raise=attempt if raised else ledger.last_raise,
    )
