"""Runs an application under the control loop on Spark, from the first row to the checked answer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from sluicegate.errors import BadInput, StillWaiting
from sluicegate.lab.running.app import App
from sluicegate.lab.running.feeding import Feeder
from sluicegate.lab.running.load import Load
from sluicegate.lab.running.outcome import Outcome, outcome_of
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.layout import Layout
from sluicegate.spark.act.fleet import Fleet
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.fusion import groups_of
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.supervisor import Supervisor

Tick = dict[str, Any]
WARM_UP_ROWS = (20, 20, 20, 20, 20, 20, 60, 20, 120)
"""Rows of the warm-up batches: the first compile; the last differ in size, so that the cost of a row can be fitted."""
_LOGGED_S = 1.0
"""Wait until the last batch is in the log."""
_FINISH_S = 120.0
"""Deadline for draining in-flight rows at the end of a run that is fed from outside."""
_FLEET_S = 60.0
"""Deadline for executors and nodes to start; then the load begins without them."""
_FIRST_LOOK_S = 60.0
"""Deadline for the first tick of the controller; then the load begins without it."""
_ROUNDS_WITH_THE_FLEET = 4
"""Warm-up batches on new executors, each with one second of load."""
_MOST_TICKS = 4000
"""Controller ticks held in memory; beyond it every second one is dropped, repeatedly."""
Progress = Callable[[float, Tick | None], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Hooks around a run.

    ``fleet`` creates the context that scales executors and nodes to the plan, if any; ``beside`` creates a context that
    is open while the run's folder is fed; ``progress`` is called twice a second. Once ``leave`` is set feeding stops,
    in-flight rows are drained and the run is judged. ``promised`` maps the duration of a warm, nearly empty batch on
    this machine to the promise (SLO) of the run; without it the one of ``Control`` holds. ``warm_up_rounds`` are the
    rows of the batches before the load; fewer do where the application has run in the same session.
    """

    fleet: Callable[[Running], Fleet] | None = None
    beside: Callable[[Path], AbstractContextManager[object]] | None = None
    progress: Progress | None = None
    leave: threading.Event = field(default_factory=threading.Event)
    promised: Callable[[float], tuple[str, ...]] | None = None
    warm_up_rounds: Sequence[int] = WARM_UP_ROWS


def run_app(
    app: App,
    spark: SparkSession,
    folder: Path,
    load: Load,
    seconds: float,
    control: Control,
    fuse: bool = True,
    around: Surroundings | None = None,
    processors: Mapping[str, int] | None = None,
) -> Outcome:
    """Feed ``app`` for ``seconds`` of ``load`` under ``control``, wait for the last row, and check the answer.

    Each operator begins with one task, or with ``processors``; every policy has to find its allocation under the load.
    If ``seconds`` is infinite the run lasts until ``around.leave`` is set, at the initial rate of the load.

    An interrupted run stops between two batches and resumes when it is started again in the same folder.
    """
    around = around or Surroundings()
    with (
        app.brought_up() as ready,
        start(pipeline := ready.build(), spark, folder, begin_with(processors or {}, pipeline, fuse), fuse) as running,
        around.fleet(running) if around.fleet else nullcontext() as fleet,
    ):
        warm_up(app, running, around.leave, around.warm_up_rounds)
        if around.promised is not None:
            control = replace(control, slo=around.promised(small_batch_s(running)))
        if fleet is not None:
            _bring_up(fleet, app, running, load(0.0), around.leave)
        feeds = {name: running.feed(name) for name in running.graph.sources}
        feeder = Feeder(app, feeds, load, seconds) if app.rows and feeds else None
        with (
            Supervisor(running.layout, control) as supervisor,
            around.beside(folder) if around.beside else nullcontext(),
        ):
            running.also_check.append(supervisor.check)
            supervisor.wait_for_a_look(_FIRST_LOOK_S, around.leave)
            began_s = time.time()
            ticks, interrupted = watch(running, feeder, seconds, around, partial(_finish, running, feeder))
        if supervisor.deaths:
            running.restarts.append(
                f"the controller died {len(supervisor.deaths)} times, see {running.layout.controller_log.name}"
            )
        fed = feeder.fed if feeder else {name: running.feed(name).rows for name in feeds}
        fed = {**fed, **running.rows_read}
        answer = app.check(fed, _kept_sinks(running, pipeline)) if app.check else None
        peak_per_s = feeder.peak_per_s if feeder else max((t["arrivals_per_s"] or 0.0 for t in ticks), default=0.0)
        found = outcome_of(app, running, control, fed, answer, began_s, peak_per_s, ticks)
        return replace(found, interrupted=interrupted)


def begin_with(asked: Mapping[str, int], pipeline: Pipeline, fuse: bool) -> dict[str, int]:
    """Initial processors of every query: 1 or as asked; for operators fused into one query the largest of theirs."""
    groups = groups_of(pipeline, fuse)
    known = [*pipeline.steps, *(group.name for group in groups if group.name not in pipeline.steps)]
    for name in asked:
        if name not in known:
            raise BadInput(f"processors of {name!r}: no such operator; there is {', '.join(known)}")
    found = {g.name: asked.get(g.name) or max(asked.get(step.name, 1) for step in g.steps) for g in groups}
    for group in groups:
        if group.stateful and found[group.name] > group.key_groups:
            raise BadInput(
                f"processors of {group.name!r} is {found[group.name]}: it has {group.key_groups} key groups, give at "
                "most as many"
            )
    return found


def small_batch_s(running: Running) -> float:
    """Median duration of a warm, nearly empty batch of the slowest operator; 0 if none was seen."""
    time.sleep(_LOGGED_S)
    found = [
        [record.duration_s for record in running.records(node.name) if not record.cold] for node in running.graph.nodes
    ]
    return max((median(durations) for durations in found if durations), default=0.0)


def _kept_sinks(running: Running, pipeline: Pipeline) -> dict[str, DataFrame]:
    return {sink.name: running.read(sink.stream) for sink in pipeline.sinks.values() if sink.keep_s}


def warm_up(
    app: App, running: Running, leave: threading.Event | None = None, rounds: Sequence[int] = WARM_UP_ROWS
) -> None:
    """Pass a few rows through every operator, so that measured latency excludes Spark compiling its first batches."""
    if app.rows is None:
        return
    feeds = {name: running.feed(name) for name in running.graph.sources}
    for rows in rounds:
        if leave is not None and leave.is_set():
            raise KeyboardInterrupt
        for name, feed in feeds.items():
            feed.append(app.rows(name, feed.rows, rows))
        running.drain()


def _bring_up(fleet: Fleet, app: App, running: Running, rate_per_s: float, leave: threading.Event) -> None:
    """Wait for the initial executors and warm them up with batches of one second of load."""
    fleet.wait_until_complete(_FLEET_S)
    warm_up(app, running, leave, (max(int(rate_per_s), 1),) * _ROUNDS_WITH_THE_FLEET)


class Runs(Protocol):
    """A running pipeline of batches, or a real-time query."""

    layout: Layout

    def check(self) -> None: ...


def watch(
    running: Runs, feeder: Feeder | None, seconds: float, around: Surroundings, finish: Callable[[], None]
) -> tuple[list[Tick], bool]:
    """Wait until the load has ended and its last row is out; return the controller's ticks and whether it was cut."""
    tail, ticks, began_s = Tail(running.layout.ticks), list[Tick](), time.time()
    for _ in tail.lines():
        pass  # skip ticks of an earlier run in this folder
    if feeder is not None:
        feeder.start()
    try:
        while not around.leave.is_set() and _goes_on(feeder, began_s + seconds):
            running.check()
            ticks.extend(json.loads(line) for line in tail.lines())
            if len(ticks) > _MOST_TICKS:
                del ticks[1::2]
            if around.progress is not None:
                around.progress(min((time.time() - began_s) / seconds, 1.0), ticks[-1] if ticks else None)
    finally:
        cut = around.leave.is_set()
        if feeder is not None:
            feeder.stop()
    if feeder is not None and feeder.problem is not None:
        raise feeder.problem
    finish()
    ticks.extend(json.loads(line) for line in tail.lines())
    return ticks, cut


def _finish(running: Running, feeder: Feeder | None) -> None:
    """Stop admitting rows and drain; with a deadline if the run is fed from outside."""
    running.admit_no_more(edges=feeder is None)
    if feeder is not None:
        running.drain()
        return
    try:
        running.drain(_FINISH_S)
    except StillWaiting as problem:
        running.restarts.append(f"{problem}; they are kept, and processed at the next start in this folder")


def _goes_on(feeder: Feeder | None, until_s: float) -> bool:
    """Wait up to half a second; return whether there is load left."""
    if feeder is not None:
        return not feeder.join(0.5)
    time.sleep(0.5)
    return time.time() < until_s
