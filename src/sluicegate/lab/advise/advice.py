"""Computes what a logged application would have needed: simulates its law and load under our policy and the peers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sluicegate.control.loop import Settings
from sluicegate.control.settings import Timing, settings_for
from sluicegate.domain import Batch, BatchCosts, Edge, Goal, Limits, Operator, Topology
from sluicegate.domain.births import kept_share, quantile_s
from sluicegate.domain.figures import number_of
from sluicegate.errors import BadInput
from sluicegate.lab.advise.logged import LoggedApplication, LoggedQuery
from sluicegate.lab.advise.walk import OPERATOR, Load, Walked, fewest, fixed, walk
from sluicegate.model.batch_fit import BatchFits, BatchLaw
from sluicegate.model.state_stores import StoresSeen
from sluicegate.model.state_stores import advice as stores_advice

PEERS = ("ds2", "flink-autoscaler", "hpa", "keda", "dstreams", "spark-core")
ENOUGH = 0.99
"""Share of rows within the promise (SLO) from which on it counts as kept."""
_MOST_STEPS = 20_000
_STARTUP_S = 30.0
"""Time from requesting an executor to its first warm task: assumed, since a log does not record requests."""
_COLD = 5
_FEW_BATCHES = 30
_MOST_SLOTS = 10_000


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for one query: what it used, and what would have been enough."""

    name: str
    batches: int
    law: BatchLaw
    promise: dict[str, float]
    kept: float | None
    slots: float
    slot_seconds: float
    advised: Walked
    smallest_fixed: int | None
    peers: dict[str, Walked]
    load: Load
    reasons: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Saved share of the slot-seconds used; negative if more would have been needed."""
        return 1 - self.advised.slot_seconds / self.slot_seconds if self.slot_seconds > 0 else 0.0


def advise(
    app: LoggedApplication, goal: Goal | None, progress: Callable[[float], None] = lambda share: None
) -> tuple[Advice, ...]:
    """One advice per query; without a ``goal`` the latency that the query had becomes the promise."""
    found = []
    for number, query in enumerate(app.queries):
        found.append(_advice(app, query, goal))
        progress((number + 1) / len(app.queries))
    return tuple(found)


def _advice(app: LoggedApplication, query: LoggedQuery, goal: Goal | None) -> Advice:
    law, load = law_of(query), load_of(query)
    had = _had(app, query, load)
    ages = [(b.ended_s, age, rows) for b in query.batches for age, rows in b.born.ages_s(b.ended_s)]
    wanted = goal or _as_it_was(ages)
    if not wanted.latency_bounds:
        raise BadInput("the promise bounds no latency: give for example --slo p95=10s")
    seconds, mean_slots = load.seconds, had / max(load.seconds, 1e-9)
    interval_s = max(min(10.0, seconds / 20), law.overhead_s, 1.0)
    begin_with = max(query.batches[0].processors, 1)
    most = max(math.ceil(mean_slots) * 4, *(b.slots for b in query.batches), 8)
    walked = {
        name: walk(_settings(name, law, wanted, most, interval_s), law, load, interval_s, _STARTUP_S, begin_with)
        for name in ("sluicegate", *PEERS)
    }
    ours = walked.pop("sluicegate")
    kept = kept_share(ages, wanted)
    small = fewest(law, load, wanted, min(most, _MOST_SLOTS), lambda share: share >= ENOUGH)
    return Advice(
        name=query.name,
        batches=len(query.batches),
        law=law,
        promise=wanted.latency_bounds,
        kept=kept,
        slots=mean_slots,
        slot_seconds=had,
        advised=ours,
        smallest_fixed=small,
        peers=walked,
        load=load,
        reasons=_reasons(app, query, law, load, ours, small, goal is None, mean_slots),
    )


def law_of(query: LoggedQuery) -> BatchLaw:
    """Fit o, c and mu to the query's batches; the first ones compile and are left out if there are enough."""
    warm = query.batches[_COLD:] if len(query.batches) > 4 * _COLD else query.batches
    rows = sum(b.rows for b in warm)
    work_s = sum(b.work_s or 0.0 for b in warm) or sum(b.duration_s * b.processors for b in warm)
    rate = max(rows / work_s if work_s > 0 else 1000.0, 1e-3)
    spare_s = [max(b.duration_s - (b.work_s or 0.0) / b.processors, 1e-3) for b in warm]
    prior = Operator(OPERATOR, rate, batch=BatchCosts(float(np.median(spare_s)), 0.02))
    seen = tuple(Batch(float(b.rows), b.processors, b.duration_s, b.work_s) for b in warm)
    return BatchFits.start((prior,), forget=1.0).learn({OPERATOR: seen}).law(OPERATOR)


def load_of(query: LoggedQuery) -> Load:
    """Arrival rates in steps, from the births of rows, and the trigger interval inferred from the batches."""
    points = sorted(point for batch in query.batches for point in batch.born.points)
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1.0)
    step_s = max(1.0, (last - first) / _MOST_STEPS)
    rates = np.zeros(math.ceil((last - first) / step_s) + 1)
    for before, (at_s, rows) in zip([points[0], *points], points, strict=False):
        # the rows of a point were born since the point before
        begin, end = (before[0] - first) / step_s, (at_s - first) / step_s
        low, high = int(begin), max(int(end), int(begin))
        rates[low : high + 1] += rows / (high + 1 - low) / step_s
    begins = [batch.admitted_s for batch in query.batches]
    gaps = [after - before for before, after in pairwise(begins)]
    busy = [b.duration_s for b in query.batches[:-1]]
    idle = [gap for gap, took in zip(gaps, busy, strict=True) if gap > 1.1 * took]
    # batches that start at even intervals although they end early indicate a trigger
    even = len(idle) > len(gaps) / 2 and float(np.std(idle)) < 0.2 * float(np.mean(idle))
    return Load(tuple(rates.tolist()), step_s, float(np.median(idle)) if even else 0.0)


def _had(app: LoggedApplication, query: LoggedQuery, load: Load) -> float:
    """Slot-seconds held while its rows arrived; slots shared by queries are split by task time while it ran."""
    begin = min(at for batch in query.batches for at, _ in batch.born.points)
    end = begin + load.seconds
    times = [*(at for at, _ in app.cores[1:]), math.inf]
    held = sum(
        slots * max(min(until, end) - max(at, begin), 0.0) for (at, slots), until in zip(app.cores, times, strict=True)
    )
    if not app.cores or app.cores[0][0] > begin:
        held += app.cores[0][1] * (min(app.cores[0][0], end) - begin) if app.cores else 0.0
    # not those of the first and the last: the clock may have been set back, or the parts of a log be in another order
    first_s, last_s = min(b.admitted_s for b in query.batches), max(b.ended_s for b in query.batches)
    beside = [
        [b.work_s or 0.0 for b in other.batches if b.ended_s > first_s and b.admitted_s < last_s]
        for other in app.queries
    ]
    all_work = sum(map(sum, beside))
    return held * (query.work_s / all_work if all_work > 0 else 1 / max(sum(map(bool, beside)), 1))


def _as_it_was(ages: list[tuple[float, float, float]]) -> Goal:
    """A p95 promise at the latency that 99% of rows had."""
    return Goal(p95_s=float(f"{max(quantile_s([(age, rows) for _, age, rows in ages], 0.99) or 1.0, 0.1):.2g}"))


def _settings(policy: str, law: BatchLaw, goal: Goal, most: int, interval_s: float) -> Settings:
    operator = Operator(OPERATOR, law.service_per_s, batch=BatchCosts(law.overhead_s, law.per_task_s))
    topology = Topology("advised", (operator,), (Edge("source", OPERATOR),))
    timing = Timing(interval_s, interval_s, settle_down_s=60.0)
    return settings_for(policy, topology, goal, Limits(most=most), timing)


def _reasons(
    app: LoggedApplication,
    query: LoggedQuery,
    law: BatchLaw,
    load: Load,
    ours: Walked,
    small: int | None,
    chosen: bool,
    had: float,
) -> tuple[str, ...]:
    rows = sum(b.rows for b in query.batches)
    modelled = fixed(law, load, max(round(np.median([b.processors for b in query.batches])), 1), Goal(p95_s=1e9))
    measured = quantile_s([a for b in query.batches for a in b.born.ages_s(b.ended_s)], 0.95)
    batches = number_of(len(query.batches), "batch", "batches")
    found = [
        f"{batches} of {rows / len(query.batches):,.0f} rows on average: a batch takes "
        f"{law.overhead_s:.2f} s + {law.per_task_s:.3f} s a task + rows/(tasks x {law.service_per_s:,.0f} rows/s)",
        f"{had:.1f} slots were held on average; {ours.slot_seconds / max(load.seconds, 1e-9):.1f} follow the load, "
        f"at most {ours.most}",
        f"latency: {query.assumed}",
    ]
    if measured and modelled.p95_s:
        found.append(
            f"the law gives a p95 of {modelled.p95_s:.3g} s for the size it had; {measured:.3g} s was measured"
        )
    if small is not None:
        found.append(f"a fixed {number_of(small, 'slot')} would have kept the promise for {ENOUGH:.0%} of rows")
    else:
        found.append("no fixed size keeps the promise: a batch's own cost or one slow batch is above it")
    if chosen:
        found.append("no promise was given: what 99% of rows had is promised again")
    if len(query.batches) < _FEW_BATCHES:
        found.append(f"only {batches}: take this as a first guess")
    if law.service_rsd > 0.2:
        found.append(f"the rate of a task is known within {law.service_rsd:.0%} only: all batches were of similar size")
    if len(app.queries) > 1:
        found.append("slots shared by several queries are counted by each one's share of task time")
    stores = stores_advice(_stores(query), ours.most, rocksdb=query.batches[-1].rocksdb)
    return (*found, stores) if stores else tuple(found)


def _stores(query: LoggedQuery) -> StoresSeen:
    return StoresSeen(
        max(b.state_partitions for b in query.batches),
        max(b.state_rows for b in query.batches),
        float(np.median([b.state_commit_s for b in query.batches])),
        float(np.median([b.duration_s for b in query.batches])),
        max(round(np.median([b.processors for b in query.batches])), 1),
    )
