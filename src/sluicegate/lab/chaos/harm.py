"""What each fault does, and to which processes or files of a run."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from sluicegate.lab.chaos.disk import full, is_small, out_of_files
from sluicegate.lab.chaos.handles import out_of_handles
from sluicegate.lab.chaos.hurt import failed, slowed, stepped
from sluicegate.lab.chaos.processes import (
    Process,
    below,
    controllers_of,
    daemons_of,
    java_of,
    workers_of,
)
from sluicegate.lab.chaos.spoiling import log_overwritten, plan_spoiled, spoil
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.fault_point import FAILS
from sluicegate.spark.act.fleet import read_fleet

if TYPE_CHECKING:
    from sluicegate.lab.chaos.run import Victim

_STOPPED_S = (0.5, 4.0)
_FULL_S = (1.0, 6.0)
_LOST_S = (35.0, 50.0)
"""Longer than the driver of a chaos run on a cluster waits for an executor that does not answer."""
_STOPS_S = 150.0
"""A driver that was asked to stop gives its batches two minutes."""
_DRAINS_WITHIN_S, _ASKS_EVERY_S = 20.0, 0.25
_DRAINING_S = (0.0, 2.0)
"""After an executor was told to leave; an idle one has left 2 s later."""
_REACHED_S = 60.0
"""An armed fault point that no batch has reached within this time is disarmed."""

Find = Callable[["Victim"], list[Process]]
Do = Callable[["Victim", random.Random], str | None]
"""Injects the fault and returns a description of its target; ``None`` if the run has no such target."""


def _one(found: list[Process], rng: random.Random) -> Process | None:
    return rng.choice(sorted(found, key=lambda process: process.pid)) if found else None


def killed(find: Find) -> Do:
    def do(victim: Victim, rng: random.Random) -> str | None:
        process = _one(find(victim), rng)
        if process is None:
            return None
        victim.driver.look()
        process.send(signal.SIGKILL)
        return f"process {process.pid}"

    return do


def stopped(find: Find) -> Do:
    """SIGSTOP a process, and SIGCONT it after ``_STOPPED_S``."""

    def do(victim: Victim, rng: random.Random) -> str | None:
        process, pause_s = _one(find(victim), rng), rng.uniform(*_STOPPED_S)
        if process is None:
            return None
        process.send(signal.SIGSTOP)
        try:
            time.sleep(pause_s)
        finally:
            process.send(signal.SIGCONT)
        return f"process {process.pid} for {pause_s:.1f} s"

    return do


def killed_at(point: str, move: bool = False) -> Do:
    """Kill the driver when a batch reaches a fault point; with ``move`` change the tasks (k) of an operator first."""

    def do(victim: Victim, rng: random.Random) -> str | None:
        if point == "between-manifests" and not any(len(node.writes) > 1 for node in victim.graph.nodes):
            return None
        moved = victim.load.move_one(rng) if move else ""
        victim.driver.look()
        (victim.driver.points / point).touch()
        victim.load.feed_soon()
        done = _ended(victim, point)
        return f"{done}, {moved}" if done and moved else done

    return do


def fails_at(point: str) -> Do:
    """Let a batch fail at a fault point, as if there were no room on the disk; the driver stays."""

    def do(victim: Victim, rng: random.Random) -> str | None:
        if point == "between-manifests" and not any(len(node.writes) > 1 for node in victim.graph.nodes):
            return None
        armed = victim.driver.points / point
        armed.write_text(FAILS)
        victim.load.feed_soon()
        return f"{point} fails" if _reached(victim, point) else None

    return do


def _reached(victim: Victim, point: str) -> bool:
    """Wait until an armed fault point that ends no driver is reached; disarm it if that takes too long."""
    armed, until_s = victim.driver.points / point, time.monotonic() + _REACHED_S
    while armed.exists() and victim.driver.runs and time.monotonic() < until_s:
        time.sleep(0.02)
    reached = not armed.exists()
    armed.unlink(missing_ok=True)
    return reached


def _ended(victim: Victim, point: str) -> str | None:
    """Wait until the driver has ended at an armed fault point; disarm it and return ``None`` if not reached in time."""
    armed, until_s = victim.driver.points / point, time.monotonic() + _REACHED_S
    while victim.driver.runs and time.monotonic() < until_s:
        time.sleep(0.05)
    if armed.exists():
        armed.unlink(missing_ok=True)
        return None
    return point


def kill_repartition(victim: Victim, rng: random.Random) -> str | None:
    """Kill the driver while the state of an operator is repartitioned into another number of key groups."""
    point = rng.choice(("regroup-begun", "regroup-rewritten", "regroup-verified"))
    moved = victim.load.regroup_one(rng)
    if moved is None:
        return None
    done = killed_at(point)(victim, rng)
    return None if done is None else f"{done}, {moved}"


def fail_repartition(victim: Victim, rng: random.Random) -> str | None:
    """Let the change of an operator's key groups fail half way, which undoes it; the driver stays."""
    point = rng.choice(("regroup-begun", "regroup-rewritten"))
    moved = victim.load.regroup_one(rng)
    if moved is None:
        return None
    (victim.driver.points / point).write_text(FAILS)
    victim.load.feed_soon()
    return f"{point} fails, {moved}" if _reached(victim, point) else None


def fill_disk(victim: Victim, rng: random.Random) -> str | None:
    """Fill the small disk of the run's folder for some seconds; only if it has one of its own."""
    if not is_small(victim.layout.folder):
        return None
    return f"no room for {_while(full(victim.layout.folder), rng):.1f} s"


def use_up_files(victim: Victim, rng: random.Random) -> str | None:
    if not is_small(victim.layout.folder):
        return None
    return f"no file can be made for {_while(out_of_files(victim.layout.folder), rng):.1f} s"


def use_up_handles(victim: Victim, rng: random.Random) -> str:
    """Let the driver open neither file nor socket for some seconds; Spark's own Java process can hang for good then."""
    return f"no file or socket opens for {_while(out_of_handles([victim.driver.pid]), rng):.1f} s"


def _while(lasts: AbstractContextManager[None], rng: random.Random) -> float:
    """Let a shortage last for some seconds; returns how many."""
    pause_s = rng.uniform(*_FULL_S)
    with lasts:
        time.sleep(pause_s)
    return pause_s


def fail_disk(victim: Victim, rng: random.Random) -> str | None:
    return failed(victim.hurt, rng) if victim.hurt else None


def spoil_plan(victim: Victim, rng: random.Random) -> str:
    return plan_spoiled(victim.layout, victim.graph, rng)


def spoil_log(victim: Victim, rng: random.Random) -> str | None:
    return log_overwritten(victim.layout, victim.graph, rng)


def kill_everything(victim: Victim, rng: random.Random) -> str:
    """Kill the driver and all its descendants at once, as a machine that loses power would (its disk keeps all)."""
    victim.driver.look()
    found = [*driver(victim), *below(victim.driver.pid)]
    for process in found:
        process.send(signal.SIGKILL)
    return f"{len(found)} processes"


def stop_often(victim: Victim, rng: random.Random) -> str:
    """Ask the driver to stop many times at once, as an impatient person or a broken script does."""
    count, until_s = rng.randint(10, 40), time.monotonic() + _STOPS_S
    for _ in range(count):
        for process in driver(victim):
            process.send(signal.SIGTERM)
        time.sleep(0.02)
    while victim.driver.runs and time.monotonic() < until_s:
        time.sleep(0.05)
    return f"{count} times"


def step_clock(victim: Victim, rng: random.Random) -> str | None:
    """Step the driver's clock; file times and executors of a cluster stay on the machine's clock."""
    return stepped(victim.hurt, rng) if victim.hurt else None


def slow_disk(victim: Victim, rng: random.Random) -> str | None:
    return slowed(victim.hurt, rng) if victim.hurt else None


def kill_database(victim: Victim, rng: random.Random) -> str | None:
    """SIGKILL the server and restart the same one some seconds later."""
    if victim.database is None:
        return None
    pause_s = rng.uniform(*_STOPPED_S)
    victim.database.kill()
    time.sleep(pause_s)
    victim.database.up()
    return f"PostgreSQL away for {pause_s:.1f} s and its start"


def stop_database(victim: Victim, rng: random.Random) -> str | None:
    if victim.database is None:
        return None
    pause_s = rng.uniform(*_STOPPED_S)
    victim.database.stop_for(pause_s)
    return f"PostgreSQL stopped for {pause_s:.1f} s"


def kill_stopping(victim: Victim, rng: random.Random) -> str | None:
    """Ask the driver to stop between two batches, and kill it before it has stopped."""
    (victim.driver.points / "stopping").touch()
    for process in driver(victim):
        process.send(signal.SIGTERM)
    return _ended(victim, "stopping")


def kill_draining(victim: Victim, rng: random.Random) -> str | None:
    """Request one executor fewer, and kill the driver or an executor while that one is decommissioned."""
    fleet, whole = read_fleet(victim.layout.fleet_seen, time.time()), rng.choice((True, False))
    if fleet is None or len(fleet.executors) <= fleet.shape.least:
        return None  # the fleet would not go below
    if whole:
        (victim.driver.points / "draining").touch()
    drains = _drains_one(victim, len(fleet.executors) - 1)
    if whole:
        return _ended(victim, "draining")
    time.sleep(rng.uniform(*_DRAINING_S))
    return killed(executors)(victim, rng) if drains else None


def _drains_one(victim: Victim, want: int) -> bool:
    """Request ``want`` executors until the fleet says that it did; again, as the controller decides at every tick."""
    log, until_s = Tail(victim.layout.fleet), time.monotonic() + _DRAINS_WITHIN_S
    for _ in log.lines():
        pass  # of before
    while victim.driver.runs and time.monotonic() < until_s:
        victim.load.set_executors(want)
        time.sleep(_ASKS_EVERY_S)
        if any(f'"executors": {want}' in line for line in log.lines()):
            return True
    return False


def workers(victim: Victim) -> list[Process]:
    return [worker for root in victim.roots() for worker in workers_of(root)]


def daemons(victim: Victim) -> list[Process]:
    return [daemon for root in victim.roots() for daemon in daemons_of(root)]


def controllers(victim: Victim) -> list[Process]:
    return controllers_of(victim.driver.pid)


def java(victim: Victim) -> list[Process]:
    return java_of(victim.driver.pid)


def driver(victim: Victim) -> list[Process]:
    return [Process(victim.driver.pid, 0, "", "driver")]


def nothing(victim: Victim, rng: random.Random) -> str:
    return "nothing: how long rows take anyway"


def spoil_file(victim: Victim, rng: random.Random) -> str | None:
    """Kill the driver and damage one file of its folder."""
    victim.driver.kill()
    for _ in range(20):
        done = spoil(victim.layout, victim.graph, rng)
        if done is not None:
            victim.spoiled.append(done)
            return f"{done.path.relative_to(victim.layout.folder)} {done.way}"
    return "no file"


def kill_node(victim: Victim, rng: random.Random) -> str | None:
    node = _one(nodes(victim), rng)
    return f"node {node.command}" if node is not None and victim.kill_and_replace(node) else None


def freeze_node(victim: Victim, rng: random.Random) -> str | None:
    """SIGSTOP a node and all that runs on it, as a machine that is paused: briefly, or until it counts as lost."""
    node = _one(nodes(victim), rng)
    if node is None:
        return None
    pause_s, whole = rng.uniform(*rng.choice((_STOPPED_S, _LOST_S))), [node, *below(node.pid)]
    for process in whole:
        process.send(signal.SIGSTOP)
    try:
        time.sleep(pause_s)
    finally:
        for process in whole:
            process.send(signal.SIGCONT)
    return f"node {node.command} with {len(whole)} processes for {pause_s:.1f} s"


def cut_node(victim: Victim, rng: random.Random) -> str | None:
    """Cut a node off the network: briefly, so that connections outlive it, or until it counts as lost."""
    node = _one(nodes(victim), rng)
    if node is None or victim.network is None:
        return None
    pause_s = rng.uniform(*rng.choice((_STOPPED_S, _LOST_S)))
    victim.network.cut_for(int(node.command.rpartition("-")[2]), pause_s)
    return f"node {node.command} for {pause_s:.1f} s"


def executors(victim: Victim) -> list[Process]:
    return victim.executors()


def nodes(victim: Victim) -> list[Process]:
    return victim.nodes()
