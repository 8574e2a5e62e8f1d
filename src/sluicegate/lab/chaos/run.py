"""Runs an application under a varying load and faults, waits for each recovery, and checks the result."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluicegate.errors import BadInput
from sluicegate.lab.chaos import to_database
from sluicegate.lab.chaos.database import Database, served
from sluicegate.lab.chaos.disk import small_disk
from sluicegate.lab.chaos.driven import application
from sluicegate.lab.chaos.driver import Driver, DriverEnded
from sluicegate.lab.chaos.faults import NOTHING, ChaosFault
from sluicegate.lab.chaos.hurt import Hurt, hurt_in
from sluicegate.lab.chaos.invariants import broken
from sluicegate.lab.chaos.load import JumpingLoad
from sluicegate.lab.chaos.network import Namespaces
from sluicegate.lab.chaos.passing import Passing
from sluicegate.lab.chaos.processes import Process, executors_of
from sluicegate.lab.chaos.schedule import PlannedFault, schedule
from sluicegate.lab.chaos.spoiling import Spoiled
from sluicegate.lab.chaos.verdict import RECOVERS_WITHIN_S, ChaosVerdict, FaultSeen, Progress
from sluicegate.lab.running.app import App
from sluicegate.runlog.files import owner_only_folder
from sluicegate.runlog.layout import Layout
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.state import read_state
from sluicegate.spark.pipeline.graph import RunningGraph, read_graph
from sluicegate.spark.pipeline.verify import verify

_ANSWERS_WITHIN_S = 700.0
_MOST_STARTS = 5
"""Start attempts before a driver counts as failed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which application to run, for how long, with which faults; ``most`` caps the number of faults."""

    app: str
    seconds: float
    seed: int
    faults: Sequence[ChaosFault]
    master: str = "local[4]"
    executors: str = ""
    calm_per_s: float | None = None
    most: int | None = None
    cluster: Cluster | None = None
    disk_mb: int | None = None
    """Size of a separate small disk for the run; without it no disk is filled."""
    network: Namespaces | None = None
    """The network that the cluster's nodes are in, if they are namespaces."""


@dataclass(slots=True)
class Victim:
    """The target of faults: the running application and everything around it."""

    driver: Driver
    layout: Layout
    graph: RunningGraph
    load: JumpingLoad
    cluster: Cluster | None = None
    hurt: Hurt | None = None
    """Clock and disk faults of the driver; ``None`` if they are not available (no C compiler)."""
    database: Database | None = None
    """The database that its sink writes to, if it has one."""
    network: Namespaces | None = None
    spoiled: list[Spoiled] = field(default_factory=list)

    def roots(self) -> list[int]:
        """Pids of the processes whose descendants run tasks."""
        return [self.driver.pid, *(node.pid for node in self.nodes())]

    def nodes(self) -> list[Process]:
        state = read_state(self.cluster.folder) if self.cluster else None
        return [Process(w.pid, 0, "", w.name) for w in state.workers if w.alive] if state else []

    def executors(self) -> list[Process]:
        return [executor for node in self.nodes() for executor in executors_of(node.pid)]

    def kill_and_replace(self, node: Process) -> bool:
        """SIGKILL a node and start one of its size, as a smaller one might have no room for an executor.

        ``False`` if its size is not known, since the master does not answer or has lost it: then nothing is done.
        """
        status = self.cluster.status() if self.cluster is not None else None
        known = {worker.name: worker for worker in status.workers if worker.cores} if status else {}
        size = known.get(node.command)
        if self.cluster is None or size is None:
            return False
        node.send(signal.SIGKILL)
        self.cluster.add_workers(1, size.cores, f"{size.memory_mb}m")
        return True


def chaos(asked: Asked, folder: Path, progress: Progress = lambda line: None) -> ChaosVerdict:
    """Inject faults for ``asked.seconds``, end the load, compare the sinks with an independently computed answer."""
    app = application(asked.app)
    if app.rows is None or app.check is None:
        raise BadInput(f"application {app.name!r} brings no rows or no answer of its own: nothing could be judged")
    layout, logs = Layout((folder / "run").absolute()), folder / "drivers"
    for needed in (folder, logs):
        owner_only_folder(needed)
    with (
        small_disk(layout.folder, asked.disk_mb) if asked.disk_mb else nullcontext(),
        served() if asked.app == to_database.NAME else nullcontext() as database,
    ):
        return _judged(asked, app, layout, folder, database, progress)


def _judged(
    asked: Asked, app: App, layout: Layout, folder: Path, database: Database | None, progress: Progress
) -> ChaosVerdict:
    logs = folder / "drivers"
    command = ("sluicegate.lab.chaos.driven", str(layout.folder), asked.app, asked.master, asked.executors)
    hurt = hurt_in(folder.absolute(), layout.folder)
    inside = {**(hurt.environment if hurt else {}), **({to_database.VARIABLE: database.address} if database else {})}
    driver = Driver(command, logs, folder.absolute() / "points", inside, waits=True)
    try:
        driver.start()
        if asked.cluster is None:
            driver.stand_by()
        graph = read_graph(layout)
        assert graph is not None
        calm_per_s = asked.calm_per_s if asked.calm_per_s is not None else app.calm_per_s
        with JumpingLoad(app, layout, graph, calm_per_s, _slots(asked), asked.seed) as load:
            victim = Victim(driver, layout, graph, load, asked.cluster, hurt, database, asked.network)
            seen = _hurt(asked, victim, progress)
        if load.problem is not None:
            raise load.problem
        if hurt is not None:
            hurt.step(0.0)
        answer = _answered(victim, load.fed)
        driver.reap()
    finally:
        driver.end()
    wrong = [*broken(layout, graph), *_said(driver), *(f"outlived its driver: {c}" for c in driver.left())]
    if answer is None:
        wrong.append("no driver gave an answer")
    found: Mapping[str, Any] = answer or {}
    return ChaosVerdict(
        tuple(seen),
        sum(load.fed.values()),
        found.get("lost"),
        found.get("duplicated"),
        found.get("wrong_keys"),
        bool(found.get("exact")),
        str(found.get("note", "")),
        tuple(wrong),
        driver.starts,
        load.moves,
    )


def _hurt(asked: Asked, victim: Victim, progress: Progress) -> list[FaultSeen]:
    began_s, seen, open_ones = time.monotonic(), list[FaultSeen](), list[FaultSeen]()
    wait_s = 0.0
    for planned in schedule(asked.faults, asked.seed):
        time.sleep(wait_s)
        if time.monotonic() - began_s > asked.seconds or len(seen) >= (asked.most or len(seen) + 1):
            break
        if planned.fault.name == NOTHING and not _recovered(open_ones, victim, began_s, progress):
            return seen
        if planned.fault.name == NOTHING:
            open_ones.clear()
        if not victim.driver.runs:  # ended by an earlier fault; this one needs a live target
            _bring_back(victim, open_ones, progress)
        done = _do(planned, victim, began_s, progress)
        wait_s = 0.0 if done is None else planned.wait_s
        if done is None:  # the run has no such target
            continue
        seen.append(done)
        open_ones.append(done)
        if not planned.together:
            if not _recovered(open_ones, victim, began_s, progress):
                return seen
            open_ones.clear()
    _recovered(open_ones, victim, began_s, progress)
    return seen


def _do(planned: PlannedFault, victim: Victim, began_s: float, progress: Progress) -> FaultSeen | None:
    at_s = time.monotonic() - began_s
    target = planned.fault.do(victim, random.Random(planned.seed))
    if target is None:
        return None
    progress(f"{at_s:7.1f} s  {planned.fault.name}: {target}")
    return FaultSeen(at_s, planned.fault.name, target)


def _recovered(open_ones: list[FaultSeen], victim: Victim, began_s: float, progress: Progress) -> bool:
    """Wait until all rows fed so far, and at least one fed from now on, have passed a running driver; whether in time.

    After a fault of the controller it must also have ticked again.
    """
    fed, until_s, now_s = victim.load.fed, time.monotonic() + RECOVERS_WITHIN_S, time.time()
    steered = any(one.kind.startswith("controller") for one in open_ones)
    passing: Passing | None = None
    victim.load.feed_soon()
    while not (victim.driver.runs and passing and passing.done()) or (steered and not _looked(victim.layout, now_s)):
        if time.monotonic() > until_s:
            progress(f"{'':9}  not recovered within {RECOVERS_WITHIN_S:g} s")
            return False
        if not victim.driver.runs:
            _bring_back(victim, open_ones, progress)
        if passing is None and all(rows > fed[source] for source, rows in victim.load.fed.items()):
            passing = Passing(victim.layout, victim.graph)
        time.sleep(0.1)
    for one in open_ones:
        one.recovered_s = time.monotonic() - began_s - one.at_s
        progress(f"{'':9}  {one.kind} recovered in {one.recovered_s:.1f} s")
    if victim.cluster is None:  # on a cluster a standby would hold cores that the driver needs
        victim.driver.stand_by()
    return True


def _looked(layout: Layout, since_s: float) -> bool:
    """Whether a controller has logged a tick since."""
    return layout.ticks.exists() and layout.ticks.stat().st_mtime >= since_s


def _bring_back(victim: Victim, open_ones: list[FaultSeen], progress: Progress) -> None:
    """Start the driver until it runs. Files it refuses are repaired if that is exact, else restored from a backup."""
    for _ in range(_MOST_STARTS):
        victim.driver.reap()
        if _said_why(victim, open_ones, progress):
            _mend(victim, progress)
        try:
            victim.driver.start()
            return
        except DriverEnded:
            _said_why(victim, open_ones, progress)
            _mend(victim, progress)
    raise DriverEnded(f"the driver does not start any more: {victim.driver.ended[-1].word}")


def _said_why(victim: Victim, open_ones: list[FaultSeen], progress: Progress) -> bool:
    """Record the reason that the last driver printed; ``False`` if it printed none, as when it was killed."""
    last = victim.driver.ended[-1] if victim.driver.ended else None
    if last is None or not last.lines:
        return False
    if open_ones and last.word not in open_ones[-1].lines:
        open_ones[-1].lines.append(last.word)
        progress(f"{'':9}  it said: {last.word}")
    return True


def _mend(victim: Victim, progress: Progress) -> None:
    if not victim.spoiled:
        return
    found = verify(victim.layout.folder, repair=True)
    for line in found.repaired:
        progress(f"{'':9}  repaired: {line}")
    if not found.sound or not found.repaired:
        for one in victim.spoiled:
            if one.restore():
                progress(f"{'':9}  restored: {one.path.relative_to(victim.layout.folder)}")
        victim.spoiled.clear()


def _answered(victim: Victim, fed: Mapping[str, int]) -> dict[str, Any] | None:
    for _ in range(_MOST_STARTS):
        if not victim.driver.runs:
            _bring_back(victim, [], lambda line: None)
        found = victim.driver.answer(fed, _ANSWERS_WITHIN_S)
        if found is not None:
            return found
        victim.driver.reap()
        _mend(victim, lambda line: None)
    return None


def _said(driver: Driver) -> list[str]:
    """Violations of: a driver that ends with an error prints one line, and none prints a stack trace."""
    wrong = [f"driver {n + 1} left {one.traces} traces" for n, one in enumerate(driver.ended) if one.traces]
    mute = [n + 1 for n, one in enumerate(driver.ended) if one.code > 0 and not one.lines]
    return wrong + [f"driver {n} ended with an error and said nothing" for n in mute]


def _slots(asked: Asked) -> int:
    inside = asked.master.partition("[")[2].rstrip("]")
    return int(inside) if inside.isdigit() else 4
