"""Measures one operator: trials of tau tasks at a rate in one executor slot, until the time is over.

The paper's trial, adapted to batches. A trial begins with a backlog of ``LONGEST_S`` seconds of its load, as if it had
arrived before; then the load starts. If a batch of that load takes less time than the load took to arrive, later
batches are shorter and latency falls; if not, they grow without bound. At the border between the two, latency stays at
1.5 ``LONGEST_S``. The slope is that of the line from there to the mean latency of the batches that end in the second
half of the trial (the first half is warm-up and cut), and a trial is stable if it is at most 0.001, as in the paper. So
I(tau) is the highest rate whose batches stay below ``LONGEST_S``:

    I(tau) = tau mu (1 - (o + c tau)/LONGEST)

Without the initial backlog a trial at 90% of that rate would still be growing towards its steady state when it ends;
and a line through single batches would measure a pause of the machine, not the rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from threading import Event

from pyspark.sql import SparkSession

from sluicegate.errors import Infeasible
from sluicegate.lab.profile.batch_law import overhead_of
from sluicegate.lab.profile.bench import Bench, Input, bench_for
from sluicegate.lab.profile.choosing import LEAST_PER_S, Bracket, Next, believed, counts, known_of, next_trial, reached
from sluicegate.lab.profile.slot import Slot, SlotSize, Used
from sluicegate.lab.profile.trials import Trial, TrialFile
from sluicegate.lab.running.app import App
from sluicegate.runlog.batch_log import BatchRecord
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.pipeline.runtime import Running, start

LONGEST_S = 2.0
"""Seconds of load in the initial backlog of a trial. At 1 s the overhead of a batch takes twice the share of the rate,
at 4 s trials take twice as long."""
TRIAL_S = 4 * LONGEST_S
_FEED_S = 0.2
_LOOK_S = 0.1
_LOGGED_S = 3.0
_IDLE_S = 3.0
_STUCK_S = (30.0, 120.0)
"""A batch that takes as long as the whole measurement, within these bounds, ends it with an error; the backlog of a
hopeless trial is processed in less."""
_HOPELESS = 2.5
"""A trial ends early when a batch takes longer than this many LONGEST_S."""
_WARM_ROWS = (10, 10, 20, 20, 40)
_FEW_ROWS = 5
_FIRST_S = 1.0
"""The first rate is estimated from a batch of at least this duration."""

Progress = Callable[[str, float], None]
"""Called with a progress text and the elapsed share of the time."""


class Stuck(Infeasible):
    """A batch of the operator did not end within the deadline."""


class TooLarge(Infeasible):
    """The operator needs more memory than the slot has."""


@dataclass(frozen=True, slots=True)
class Idle:
    """CPU and memory of the idle slot, and the duration of a nearly empty batch."""

    cpu: float
    memory_bytes: int
    overhead_s: float


@dataclass(frozen=True, slots=True)
class OperatorMeasured:
    """All trials; ``ended`` says why no larger thread count was tried, or what cut the measurement short."""

    trials: tuple[Trial, ...]
    idle: Idle
    known: tuple[Bracket, ...]
    recorded: bool
    core: int
    ended: str
    complete: bool


@dataclass(slots=True)
class Watch:
    """Time limit for trials, progress callback, and the event that asks to stop."""

    minutes: float
    progress: Progress = lambda what, share: None
    leave: Event = field(default_factory=Event)
    began_s: float | None = None
    """When the first trial could begin; ``None`` during start and warm-up, which do not count."""

    @property
    def share(self) -> float:
        return min(self._passed_s / (60 * self.minutes), 1.0)

    @property
    def left_s(self) -> float:
        return 60 * self.minutes - self._passed_s

    @property
    def _passed_s(self) -> float:
        return 0.0 if self.began_s is None else time.monotonic() - self.began_s

    @property
    def stuck_s(self) -> float:
        least_s, most_s = _STUCK_S
        return min(max(60 * self.minutes, least_s), most_s)

    def tell(self, what: str) -> None:
        self.progress(what, self.share)


def measure_operator(
    app: App, operator: str, spark: SparkSession, size: SlotSize, folder: Path, file: TrialFile, watch: Watch
) -> OperatorMeasured:
    """Run trials until all brackets are narrow, the time is over or a stop is asked for; trials in ``file`` count."""
    trials = file.read()
    with app.brought_up() as ready:
        watch.tell(f"recording what reaches {operator}")
        bench = bench_for(ready, operator, spark, folder / "before")
        slot = Slot(spark, size)
        with start(bench.pipeline, spark, folder / "bench", fuse=False, retry_for_s=0.0, when_stopped="raise") as run:
            stand = Stand(bench, run, slot, watch)
            idle, first_per_s = stand.warm_up()
            watch.began_s = time.monotonic()  # on a busy machine Spark's start alone may take minutes
            most = _most(size, run, operator)
            return _trials(stand, trials, file, idle, first_per_s, most)


def _most(size: SlotSize, running: Running, operator: str) -> int:
    node = running.graph.node(operator)
    return min(size.tasks, node.key_groups) if node.stateful else size.tasks


def _trials(
    stand: Stand, trials: list[Trial], file: TrialFile, idle: Idle, first_per_s: float, most: int
) -> OperatorMeasured:
    watch, ended, complete = stand.watch, "", False
    while True:
        counted = believed(trials)
        known = [
            known_of(k, counted, overhead_of(stand.bench.operator, trials, k, idle.overhead_s), LONGEST_S)
            for k in counts(most)
        ]
        coming = next_trial(known, first_per_s)
        if coming is None:
            ended, complete = _why_ended(known, stand.bench.operator), True
            break
        if watch.leave.is_set() or watch.left_s < TRIAL_S:
            ended = "stopped by Ctrl-C" if watch.leave.is_set() else f"the {watch.minutes:g} minutes were over"
            break
        watch.tell(f"{_tasks(coming.threads)} at {coming.rate_per_s:,.4g} rows/s")
        try:
            trial = stand.trial(coming)
        except (TooLarge, Stuck) as problem:
            if not any(one.low_per_s for one in known):
                raise
            ended = str(problem)
            break
        trials.append(trial)
        file.add(trial)
    return OperatorMeasured(
        tuple(trials), idle, tuple(reached(known)), stand.bench.recorded, stand.slot.core, ended, complete
    )


def _why_ended(known: Sequence[Bracket], operator: str) -> str:
    tried = reached(known)
    if not tried[0].low_per_s:
        raise Infeasible(
            f"operator {operator!r} is unstable with 1 task even at {LEAST_PER_S:g} rows/s: its batches grow longer "
            f"than {LONGEST_S:g} s; make its rows cheaper, or its first batch quicker"
        )
    last = tried[-1]
    if len(tried) < len(known):
        return f"the peak rate is flat from {tried[-2].threads} to {last.threads} tasks"
    return f"{last.threads} tasks are all that the slot or the operator's key groups allow"


@dataclass(slots=True)
class Stand:
    """The running operator with its feeds and its slot."""

    bench: Bench
    running: Running
    slot: Slot
    watch: Watch
    _fed: dict[str, int] = field(default_factory=dict)
    _feeds: dict[str, Feed] = field(default_factory=dict)
    _sent: int = 0

    def warm_up(self) -> tuple[Idle, float]:
        """Warm up; return the idle base, and the first rate to try with one task."""
        self.watch.tell("warming up")
        self._feeds = {name: self.running.feed(name) for name in self.bench.inputs}
        self._fed = dict.fromkeys(self._feeds, 0)
        for rows in _WARM_ROWS:
            if self._batch(rows)[1] > 2 * LONGEST_S:
                break  # the rows themselves are slow, not the cold start
        self.slot.pin()
        small = [self._batch(_FEW_ROWS)[1]]
        while len(small) < 3 and small[-1] <= LONGEST_S:
            small.append(self._batch(_FEW_ROWS)[1])
        overhead_s = median(small)
        before = self.slot.used()
        time.sleep(_IDLE_S)
        after = self.slot.used()
        cpu = (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s)
        return Idle(cpu, after.memory_bytes, overhead_s), self._first(overhead_s)

    def _first(self, overhead_s: float) -> float:
        if overhead_s > LONGEST_S:  # even a few rows take longer than any stable batch
            return max(_FEW_ROWS / overhead_s, LEAST_PER_S)
        rows = 40
        while True:
            taken, seconds = self._batch(rows)
            if seconds - overhead_s > _FIRST_S or rows > 200_000:
                capacity = taken / max(seconds - overhead_s, 1e-3)
                return max(0.9 * capacity * max(1 - overhead_s / LONGEST_S, 0.1), LEAST_PER_S)
            rows = int(rows * min(max(1.3 * _FIRST_S / max(seconds - overhead_s, 0.02), 1.5), 10.0))

    def _batch(self, rows: int) -> tuple[int, float]:
        """Feed ``rows`` rows with the current task count and return rows and seconds of the last batch."""
        self._leave()
        began_s = time.time()
        self._append(float(rows), began_s, began_s)
        self._drained(1)
        seen = self._logged(began_s)
        return (seen[-1].rows, seen[-1].duration_s) if seen else (rows, LONGEST_S)

    def _logged(self, since_s: float) -> list[BatchRecord]:
        """The batches since then; waits up to ``_LOGGED_S`` until all rows sent are in the log."""
        until = time.monotonic() + _LOGGED_S
        while True:
            seen = [r for r in self._records(since_s) if r.rows]
            if sum(r.rows for r in seen) >= self._sent or time.monotonic() > until:
                self._sent = 0
                return seen
            time.sleep(_LOOK_S / 2)

    def _leave(self) -> None:
        if self.watch.leave.is_set():
            raise KeyboardInterrupt

    def trial(self, coming: Next) -> Trial:
        operator = self.bench.operator
        self.running.set_processors({operator: coming.threads})
        self.slot.pin()
        idle_since, began_s = self.slot.used(), time.time()
        self._append(coming.rate_per_s * LONGEST_S, began_s - LONGEST_S, began_s)
        ended_s, most_bytes = self._feed(coming, began_s)
        fed = self.slot.used()
        self._drained(coming.threads)
        after = self.slot.used()
        seen = self._logged(began_s)
        points = points_of(seen, ended_s)
        cpu = (fed.cpu_s - idle_since.cpu_s) / (fed.at_s - idle_since.at_s)
        return Trial(
            threads=coming.threads,
            rate_per_s=coming.rate_per_s,
            latency_slope=latency_slope(points, began_s, ended_s - began_s),
            latency_s=round(fmean(s for _, s in points), 4) if points else None,
            cpu=round(cpu, 4),
            memory_bytes=max(most_bytes, fed.memory_bytes),
            cpu_s=round(after.cpu_s - idle_since.cpu_s, 3),
            batches=tuple((r.rows, r.processors, round(r.duration_s, 4)) for r in seen),
            seconds=round(after.at_s - idle_since.at_s, 2),
        )

    def _feed(self, coming: Next, began_s: float) -> tuple[float, int]:
        """Feed until the trial ends or batches run away; return the time of the end and the peak memory."""
        at_s, owed, most, looked_s = began_s, 0.0, 0, began_s
        while (now_s := time.time()) - began_s < TRIAL_S:
            time.sleep(max(at_s + _FEED_S - now_s, 0.0))
            until_s = time.time()
            owed += coming.rate_per_s * (until_s - at_s)
            self._append(float(int(owed)), at_s, until_s)
            owed, at_s = owed - int(owed), until_s
            if until_s - looked_s >= 2 * _FEED_S:
                looked_s = until_s
                self.running.check()
                most = max(most, self._memory(coming.threads).memory_bytes)
                self.watch.tell(f"{_tasks(coming.threads)} at {coming.rate_per_s:,.4g} rows/s")
                if self._runs_away(began_s, until_s):
                    break
        return at_s, most

    def _runs_away(self, began_s: float, now_s: float) -> bool:
        """Whether the current batch, or a finished one, is far longer than any stable batch."""
        ended = self._records(began_s)
        since_s = max((r.started_s + r.duration_s for r in ended), default=began_s)
        longest_s = max([r.duration_s for r in ended], default=0.0)
        return max(now_s - since_s, longest_s) > _HOPELESS * LONGEST_S

    def _memory(self, threads: int) -> Used:
        used = self.slot.used()
        if used.memory_bytes > self.slot.size.memory_bytes:
            self.slot.kill()
            raise TooLarge(
                f"operator {self.bench.operator!r} with {_tasks(threads)} uses {used.memory_bytes / 2**20:,.0f} MB"
                f" and the slot has {self.slot.size.memory_mb} MB: give more --slot-memory, or fewer --slot-tasks"
            )
        return used

    def _drained(self, threads: int) -> None:
        """Wait until every row is processed; a batch that does not end in time is ``Stuck``."""
        seen, since_s = len(self.running.records(self.bench.operator)), time.monotonic()
        while not self.running.idle():
            self.running.check()
            self._memory(threads)
            time.sleep(_LOOK_S)
            if time.monotonic() - since_s > self.watch.stuck_s:
                ended = len(self.running.records(self.bench.operator))
                if ended == seen:
                    self.slot.kill()  # or stopping the query would wait for the task
                    raise Stuck(
                        f"operator {self.bench.operator!r} with {_tasks(threads)}: a batch has not ended within "
                        f"{self.watch.stuck_s:g} s; see what it waits for"
                    )
                seen, since_s = ended, time.monotonic()

    def _append(self, rows: float, since_s: float, until_s: float) -> None:
        """Append ``rows`` in all, split over the inputs by share, with births spread evenly between the two times."""
        for name, one in self.bench.inputs.items():
            count = _share(rows, one)
            if count:
                self._put(name, one, count, since_s, until_s)

    def _put(self, name: str, one: Input, count: int, since_s: float, until_s: float) -> None:
        parts = min(count, 4)
        born = [(since_s + (until_s - since_s) * (i + 0.5) / parts, count / parts) for i in range(parts)]
        self._feeds[name].append(one.rows(self._fed[name], count), born)
        self._fed[name] += count
        self._sent += count

    def _records(self, since_s: float) -> list[BatchRecord]:
        return [r for r in self.running.records(self.bench.operator) if r.started_s >= since_s - _LOOK_S]


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _share(rows: float, one: Input) -> int:
    return max(round(rows * one.share), 1) if rows and one.share else 0


def latency_slope(points: Sequence[tuple[float, float]], began_s: float, seconds: float) -> float | None:
    """Slope from a trial's initial latency to the mean of its second half; ``None`` if no batch ended there.

    >>> latency_slope([(2.0, 2.5), (5.0, 2.0), (7.0, 2.2)], began_s=0.0, seconds=8.0)
    -0.15
    """
    late = [(at_s - began_s, latency_s) for at_s, latency_s in points if at_s - began_s > seconds / 2]
    if not late:
        return None
    return round((fmean(y for _, y in late) - 1.5 * LONGEST_S) / fmean(x for x, _ in late), 5)


def points_of(records: Sequence[BatchRecord], until_s: float) -> list[tuple[float, float]]:
    """(Publish time, mean latency) of each batch that started before ``until_s``."""
    return [(r.published_s, _mean_age_s(r)) for r in records if r.rows and r.started_s <= until_s]


def _mean_age_s(record: BatchRecord) -> float:
    ages: Sequence[tuple[float, float]] = record.born.ages_s(record.published_s)
    weight = sum(w for _, w in ages)
    return sum(age * w for age, w in ages) / weight if weight else 0.0
