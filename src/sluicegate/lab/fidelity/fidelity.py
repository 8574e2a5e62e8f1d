"""Compares model predictions with measurements: measure operators in a short run, predict allocations, run them.

1. From a short run at several allocations the law of each operator's batches is fitted (``twin.measured_law``).
2. The twin (``simulate.twin``) predicts mean, p95 and rate of allocations with clearly different latency; the law alone
   predicts the mean.
3. Each allocation runs for a while at the same rate, then processes a burst; the measured figures are compared with the
   predicted ones. With several rounds the median counts, so that a pause of the machine in one round has little effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from sluicegate.config.machine import usable_cores
from sluicegate.domain import Topology
from sluicegate.errors import BadInput
from sluicegate.lab.fidelity.settings import (
    Compared,
    Figures,
    Processors,
    Setting,
    allocations,
    least_gap,
    splits,
    spread_out,
    typical,
)
from sluicegate.lab.fidelity.twin import MeasuredLaw, Records, Twin, measured_law, twin_of
from sluicegate.lab.running.app import App
from sluicegate.lab.running.feeding import FEED_S, Feeder
from sluicegate.lab.running.load import constant
from sluicegate.lab.running.run_app import warm_up
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.pace import paced_mean_s
from sluicegate.spark.pipeline.observing import sojourn_of
from sluicegate.spark.pipeline.runtime import Running, start

_WARM_S = 45.0
"""Until the JVM has compiled the code of a batch; the overhead of batches halves meanwhile."""
_LOOK_S = 12.0
_LOGGED_S = 1.0
_SETTLE_SHARE = 0.3
_BURST_S = 3.0
_NEVER_S = 1e9
"""The trigger interval while a burst is appended, so that no batch starts before all sources have their rows."""
_BUSY = (0.8, 1.2, 1.6, 2.4)
"""Candidate loads if no rate is given, as busy processors of the busiest operator; the one at which allocations differ
most is used. Going from one processor to two and four speeds a batch up most; beyond, tasks cost what they gain."""
_MOST_OF_CALM = 3.0
_CORE_S_A_QUERY = 1.0
"""Core-seconds per query and batch. A batch takes about 0.1 s of CPU, each task 0.03 s: most of the cores stay free."""
_SIMULATED_S, _SEED = 2000.0, 1
_PLAYED = 120

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The comparison for one application at one rate and pace."""

    app: str
    rate_per_s: float
    law: MeasuredLaw
    settings: tuple[Compared, ...]
    pace_s: float = 0.0


def measure_fidelity(
    app: App,
    spark: SparkSession,
    folder: Path,
    rate_per_s: float | None = None,
    count: int = 6,
    seconds: float = 25.0,
    say: Say = lambda _: None,
    fuse: bool = True,
    pace_s: float | None = None,
    shares: tuple[float, ...] = (1.0,),
    total: int | None = None,
    most: int | Mapping[str, int] | None = None,
    rounds: int = 1,
) -> Fidelity:
    """Measure and predict ``count`` settings: allocations, at ``shares`` of ``rate_per_s`` per source.

    Each runs for ``seconds`` in each of ``rounds``, in alternating order, so that drift affects all settings alike.

    With ``total`` only allocations of that many processors in all are used, including the one predicted best; ``most``
    caps the processors of every operator, or of those it names, for CPU-bound operators on few cores.

    Operators that read sources start a batch every ``pace_s``, the others when they have input. By default the pace is
    slow enough that this machine's cores are mostly idle: back to back, several queries on few cores slow each other
    down, which a law of single operators does not model.
    """
    if app.rows is None:
        raise BadInput(f"application {app.name!r} makes no rows of its own: there is nothing to compare on")
    with app.brought_up() as ready, start(ready.build(), spark, folder, fuse=fuse) as running:
        pace = _CORE_S_A_QUERY * len(running.graph.nodes) / usable_cores() if pace_s is None else pace_s
        running.set_paces(dict.fromkeys(running.graph.doors, pace))
        say(f"a batch every {pace:.2f} s where rows come in; the rest follows")
        trial = _Trial(app, running, spark.sparkContext.defaultParallelism, pace, count, total, most)
        warm_up(app, running)
        rate, law = trial.learn(rate_per_s, say)
        chosen = _chosen(trial, law, [share * rate for share in shares])
        say(f"{len(chosen)} settings at up to {rate:,.0f} rows/s, {rounds} x {seconds:g} s each")
        found: list[list[Figures]] = [[] for _ in chosen]
        for turn in range(rounds):
            for i in range(len(chosen))[:: -1 if turn % 2 else 1]:
                found[i].append(trial.measure(chosen[i].rate_per_s, chosen[i].processors, seconds))
                say(_line(chosen[i].compared_with(found[i][-1])))
    settings = tuple(one.compared_with(typical(seen)) for one, seen in zip(chosen, found, strict=True))
    return Fidelity(app.name, rate, law, settings, pace)


def _chosen(trial: _Trial, law: MeasuredLaw, rates: list[float]) -> list[Setting]:
    """Simulate settings whose means differ by the law alone; of those choose the ones that differ by the twin."""
    found = [(rate, k) for rate in rates for k in trial.allocations(law, rate)]
    if not found:
        there = trial.slots if trial.total is None else trial.total
        raise BadInput(f"{min(rates):,.0f} rows/s is more than {there} processors carry: give a lower --rate")
    ways = twin_of(law.topology, law.visited, returning=law.returning).ways
    alone = [_law_mean_s(ways, rate, processors, trial.paces) for rate, processors in found]
    twin = twin_of(law.topology, law.visited, law.noise_scv, FEED_S, law.returning)
    told = [(*found[i], _predicted(trial, twin, law, *found[i]), alone[i]) for i in spread_out(alone, _PLAYED)]
    known = [Setting(rate, k, figures, law_s) for rate, k, figures, law_s in told if figures is not None]
    return [known[i] for i in spread_out([one.predicted.mean_s for one in known], trial.count)]


def _law_mean_s(ways: Topology, rate: float, processors: Processors, pace_s: Mapping[str, float]) -> float:
    """The law's mean latency, summed hop by hop along the twin's paths, plus half of the feeder's interval."""
    k = np.array([processors[name] for name in ways.names], dtype=np.int64)
    stations = stations_of(situation_at(ways, rate))
    return paced_mean_s(stations, k, pace_s) + FEED_S / 2


def _predicted(trial: _Trial, twin: Twin, law: MeasuredLaw, rate: float, processors: Processors) -> Figures | None:
    told = twin.predict(rate, processors, _SIMULATED_S, _SEED, trial.paces)
    if told.mean_s is None or told.p95_s is None:
        return None
    return Figures(told.mean_s, told.p95_s, law.burst_per_s(rate * _BURST_S, processors))


@dataclass(slots=True)
class _Trial:
    """A running application that is fed at given rates with given allocations."""

    app: App
    running: Running
    slots: int
    pace_s: float
    count: int
    total: int | None = None
    most_each: int | Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        names = [node.name for node in self.running.graph.nodes]
        if isinstance(self.most_each, Mapping) and (unknown := set(self.most_each) - set(names)):
            raise BadInput(f"--most names {min(unknown)!r}, which is no operator; known are {', '.join(names)}")

    def allocations(self, law: MeasuredLaw, rate: float) -> list[dict[str, int]]:
        busy = law.busy(rate)
        if self.total is None:
            return allocations(busy, self.most, self.slots)
        return splits(busy, self.most, self.total)

    @property
    def most(self) -> dict[str, int]:
        def there(name: str) -> int:
            limit = self.most_each.get(name) if isinstance(self.most_each, Mapping) else self.most_each
            return min(self.slots, limit or self.slots)

        nodes = self.running.graph.nodes
        return {n.name: min(n.key_groups, there(n.name)) if n.stateful else there(n.name) for n in nodes}

    def learn(self, rate_per_s: float | None, say: Say) -> tuple[float, MeasuredLaw]:
        """Fit the law: first at a calm rate, for the service rate of a processor; then at the rate to compare at."""
        say(f"warming up for {_WARM_S:g} s")
        for k in (4, 1, 2):
            self.feed(self.app.calm_per_s, self._even(k), _WARM_S / 3)
        since, fed = time.time(), self._fed()
        say("learning what a row costs")
        self.feed(self.app.calm_per_s, self._even(2), _LOOK_S)
        law = self._law(since, fed)
        rate = rate_per_s or self._telling_rate(law)
        found = sorted(self.allocations(law, rate), key=_total) or [self._even(4)]
        for processors in {_told(k): k for k in (found[0], found[len(found) // 2], found[-1])}.values():
            say(f"learning what a task costs: {_told(processors)}")
            self.feed(rate, processors, _LOOK_S)
        return rate, self._law(since, fed)

    def _telling_rate(self, law: MeasuredLaw) -> float:
        """The candidate rate at which the law's means differ most, capped at ``_MOST_OF_CALM`` times the calm rate."""
        most, one = _MOST_OF_CALM * self.app.calm_per_s, max(law.busy(1.0).values())
        ways = twin_of(law.topology, law.visited, returning=law.returning).ways

        def apart(rate: float) -> float:
            means = [_law_mean_s(ways, rate, k, self.paces) for k in self.allocations(law, rate)]
            return least_gap(means, self.count)

        return max((min(busy / one, most) for busy in _BUSY), key=apart)

    def measure(self, rate: float, processors: Processors, seconds: float) -> Figures:
        began_s = self.feed(rate, processors, seconds)
        settled_s = began_s + _SETTLE_SHARE * seconds
        records = self._records(settled_s, began_s + seconds)
        seen = sojourn_of(r for n in self.running.graph.nodes if n.terminal for r in records[n.name])
        if seen is None:
            raise BadInput(f"nothing came out within {seconds:g} s: give more --seconds")
        return Figures(seen.mean_s, seen.p95_s or seen.mean_s, self._burst(rate))

    @property
    def paces(self) -> dict[str, float]:
        return dict.fromkeys(self.running.graph.doors, self.pace_s)

    def feed(self, rate: float, processors: Processors, seconds: float) -> float:
        """Feed and drain; return the start time. Waits first, so that all operators at the sources start in phase."""
        self.running.set_processors(processors)
        time.sleep(2 * self.pace_s)
        began_s = time.time()
        feeds = {name: self.running.feed(name) for name in self.running.graph.sources}
        feeder = Feeder(self.app, feeds, constant(rate), seconds)
        feeder.start()
        while not feeder.join(1.0):
            self.running.check()
        if feeder.problem is not None:
            raise feeder.problem
        self.running.drain()
        time.sleep(_LOGGED_S)
        return began_s

    def _burst(self, rate: float) -> float:
        """Rows per second and source at which the slowest operator processes a burst that is appended at once."""
        since, rows = time.time(), int(rate * _BURST_S)
        self.running.set_paces(dict.fromkeys(self.paces, _NEVER_S))
        for source in self.running.graph.sources:
            one = self.running.feed(source)
            assert self.app.rows is not None
            one.append(self.app.rows(source, one.rows, rows))
        self.running.set_paces(self.paces)
        self.running.drain()
        time.sleep(_LOGGED_S)
        taken = [sum(r.duration_s for r in found) for found in self._records(since, time.time()).values()]
        return rows / max(taken)

    def _even(self, k: int) -> dict[str, int]:
        return {name: min(k, most) for name, most in self.most.items()}

    def _fed(self) -> float:
        return float(sum(self.running.feed(s).rows for s in self.running.graph.sources))

    def _law(self, since: float, fed: float) -> MeasuredLaw:
        rows = (self._fed() - fed) / len(self.running.graph.sources)
        return measured_law(self.running.graph.topology(), self._records(since, time.time()), rows)

    def _records(self, since: float, until: float) -> Records:
        names = [node.name for node in self.running.graph.nodes]
        return {
            name: [r for r in self.running.records(name) if since <= r.started_s and r.published_s <= until]
            for name in names
        }


def _total(processors: Mapping[str, int]) -> int:
    return sum(processors.values())


def _line(one: Compared) -> str:
    at = f"{one.rate_per_s:,.0f} rows/s, {_told(one.processors)}"
    return f"{at}: predicted {one.predicted.mean_s:.2f} s, measured {one.measured.mean_s:.2f} s"


def _told(processors: Mapping[str, int]) -> str:
    return " ".join(f"{name}={k}" for name, k in processors.items())
