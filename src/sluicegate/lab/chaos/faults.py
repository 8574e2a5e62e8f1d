"""The kinds of faults: what each does, and to which processes or files of a run."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.errors import BadInput
from sluicegate.lab.chaos.disk import full, is_small
from sluicegate.lab.chaos.hurt import slowed, stepped
from sluicegate.lab.chaos.processes import Process, controllers_of, daemons_of, java_of, workers_of
from sluicegate.lab.chaos.spoiling import spoil

if TYPE_CHECKING:
    from sluicegate.lab.chaos.run import Victim

_STOPPED_S = (0.5, 4.0)
_FULL_S = (1.0, 6.0)
_LOST_S = (35.0, 50.0)
"""Longer than the driver waits for an executor that does not answer, in a network of namespaces."""
_REACHED_S = 60.0
"""An armed fault point that no batch has reached within this time is disarmed."""

Find = Callable[["Victim"], list[Process]]
Do = Callable[["Victim", random.Random], str | None]
"""Injects the fault and returns a description of its target; ``None`` if the run has no such target."""


@dataclass(frozen=True, slots=True)
class ChaosFault:
    name: str
    about: str
    do: Do
    cluster: bool = False
    """Whether it needs a cluster, with executors and nodes as separate processes."""
    network: bool = False
    """Whether it needs a cluster whose nodes are network namespaces."""
    often: int = 1
    """How often it is injected per round; faults that end no driver recover fast and are injected more often."""


def _one(found: list[Process], rng: random.Random) -> Process | None:
    return rng.choice(sorted(found, key=lambda process: process.pid)) if found else None


def _killed(find: Find) -> Do:
    def do(victim: Victim, rng: random.Random) -> str | None:
        process = _one(find(victim), rng)
        if process is None:
            return None
        victim.driver.look()
        process.send(signal.SIGKILL)
        return f"process {process.pid}"

    return do


def _stopped(find: Find) -> Do:
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


def _at(point: str, move: bool = False) -> Do:
    """Kill the driver when a batch reaches a fault point; with ``move`` change the tasks (k) of an operator first."""

    def do(victim: Victim, rng: random.Random) -> str | None:
        if point == "between-manifests" and not any(len(node.writes) > 1 for node in victim.graph.nodes):
            return None
        moved = victim.load.move_one(rng) if move else ""
        victim.driver.look()
        (victim.driver.points / point).touch()
        done = _ended(victim, point)
        return f"{done}, {moved}" if done and moved else done

    return do


def _ended(victim: Victim, point: str) -> str | None:
    """Wait until the driver has ended at an armed fault point; disarm it and return ``None`` if not reached in time."""
    armed, until_s = victim.driver.points / point, time.monotonic() + _REACHED_S
    while victim.driver.runs and time.monotonic() < until_s:
        time.sleep(0.05)
    if armed.exists():
        armed.unlink(missing_ok=True)
        return None
    return point


def _repartition(victim: Victim, rng: random.Random) -> str | None:
    """Kill the driver while the state of an operator is repartitioned into another number of key groups."""
    point = rng.choice(("regroup-begun", "regroup-rewritten", "regroup-verified"))
    moved = victim.load.regroup_one(rng)
    if moved is None:
        return None
    done = _at(point)(victim, rng)
    return None if done is None else f"{done}, {moved}"


def _full_disk(victim: Victim, rng: random.Random) -> str | None:
    """Fill the small disk of the run's folder for some seconds; only if it has one of its own."""
    if not is_small(victim.layout.folder):
        return None
    pause_s = rng.uniform(*_FULL_S)
    with full(victim.layout.folder):
        time.sleep(pause_s)
    return f"no room for {pause_s:.1f} s"


def _clock_step(victim: Victim, rng: random.Random) -> str | None:
    """Step the driver's clock; file times and executors of a cluster stay on the machine's clock."""
    return stepped(victim.hurt, rng) if victim.hurt else None


def _slow_disk(victim: Victim, rng: random.Random) -> str | None:
    return slowed(victim.hurt, rng) if victim.hurt else None


def _database_killed(victim: Victim, rng: random.Random) -> str | None:
    """SIGKILL the server and restart the same one some seconds later."""
    if victim.database is None:
        return None
    pause_s = rng.uniform(*_STOPPED_S)
    victim.database.kill()
    time.sleep(pause_s)
    victim.database.up()
    return f"PostgreSQL away for {pause_s:.1f} s and its start"


def _database_stopped(victim: Victim, rng: random.Random) -> str | None:
    if victim.database is None:
        return None
    pause_s = rng.uniform(*_STOPPED_S)
    victim.database.stop_for(pause_s)
    return f"PostgreSQL stopped for {pause_s:.1f} s"


def _stop(victim: Victim, rng: random.Random) -> str | None:
    """Ask the driver to stop between two batches, and kill it before it has stopped."""
    (victim.driver.points / "stopping").touch()
    for process in _driver(victim):
        process.send(signal.SIGTERM)
    return _ended(victim, "stopping")


def _drain(victim: Victim, rng: random.Random) -> str | None:
    """Request one executor fewer, and kill the driver or an executor while that one is decommissioned."""
    if len(victim.executors()) < 2:
        return None
    whole = rng.choice((True, False))
    if whole:
        (victim.driver.points / "draining").touch()
    victim.load.set_executors(len(victim.executors()) - 1)
    if whole:
        return _ended(victim, "draining")
    time.sleep(rng.uniform(1.0, 4.0))
    return _killed(lambda v: v.executors())(victim, rng)


def _workers(victim: Victim) -> list[Process]:
    return [worker for root in victim.roots() for worker in workers_of(root)]


def _daemons(victim: Victim) -> list[Process]:
    return [daemon for root in victim.roots() for daemon in daemons_of(root)]


def _controllers(victim: Victim) -> list[Process]:
    return controllers_of(victim.driver.pid)


def _java(victim: Victim) -> list[Process]:
    return java_of(victim.driver.pid)


def _driver(victim: Victim) -> list[Process]:
    return [Process(victim.driver.pid, 0, "", "driver")]


def _nothing(victim: Victim, rng: random.Random) -> str:
    return "nothing: how long rows take anyway"


def _spoiled(victim: Victim, rng: random.Random) -> str | None:
    """Kill the driver and damage one file of its folder."""
    victim.driver.kill()
    for _ in range(20):
        done = spoil(victim.layout, victim.graph, rng)
        if done is not None:
            victim.spoiled.append(done)
            return f"{done.path.relative_to(victim.layout.folder)} {done.way}"
    return "no file"


def _node(victim: Victim, rng: random.Random) -> str | None:
    node = _one(victim.nodes(), rng)
    if node is None:
        return None
    node.send(signal.SIGKILL)
    victim.bring_nodes_back()
    return f"node {node.command}"


def _cut(victim: Victim, rng: random.Random) -> str | None:
    """Cut a node off the network: briefly, so that connections outlive it, or until it counts as lost."""
    node = _one(victim.nodes(), rng)
    if node is None or victim.network is None:
        return None
    pause_s = rng.uniform(*rng.choice((_STOPPED_S, _LOST_S)))
    victim.network.cut_for(int(node.command.rpartition("-")[2]), pause_s)
    return f"node {node.command} for {pause_s:.1f} s"


NOTHING = "nothing"
"""The baseline: its recovery time is how long rows take without any fault."""
FAULTS: tuple[ChaosFault, ...] = (
    ChaosFault(NOTHING, "no fault, for comparison", _nothing),
    ChaosFault("python-worker", "SIGKILL of a Python worker", _killed(_workers), often=4),
    ChaosFault("python-worker-stop", "SIGSTOP of a Python worker for some seconds", _stopped(_workers), often=2),
    ChaosFault("python-daemon", "SIGKILL of what forks Python workers", _killed(_daemons), often=3),
    ChaosFault("controller", "SIGKILL of the controller", _killed(_controllers), often=4),
    ChaosFault("controller-stop", "SIGSTOP of the controller", _stopped(_controllers), often=3),
    ChaosFault("driver", "SIGKILL of the driver (Python), started again", _killed(_driver)),
    ChaosFault("driver-stop", "SIGSTOP of the driver (Python)", _stopped(_driver), often=3),
    ChaosFault("java", "SIGKILL of the driver's Java process, started again", _killed(_java)),
    ChaosFault("java-stop", "SIGSTOP of the driver's Java process", _stopped(_java), often=3),
    ChaosFault("written", "driver killed before a batch is published", _at("written")),
    ChaosFault("published", "driver killed between publishing and committing", _at("published")),
    ChaosFault("between-manifests", "driver killed between the manifests of a split", _at("between-manifests")),
    ChaosFault("change-of-k", "driver killed in a batch with another number of tasks", _at("written", move=True)),
    ChaosFault("repartition", "driver killed while state is brought into other key groups", _repartition),
    ChaosFault("stop", "driver told to stop, killed before it has", _stop),
    ChaosFault("full-disk", "no room on the disk for some seconds", _full_disk, often=2),
    ChaosFault("slow-disk", "every file takes up to 0.4 s longer for some seconds", _slow_disk, often=3),
    ChaosFault("clock-step", "the driver's clock stepped by up to two hours, forth or back", _clock_step, often=3),
    ChaosFault("postgres", "SIGKILL of the PostgreSQL that a sink writes to, started again", _database_killed, often=6),
    ChaosFault("postgres-stop", "SIGSTOP of that PostgreSQL for some seconds", _database_stopped, often=3),
    ChaosFault("spoiled-file", "driver killed, a file spoiled; refused, or exact", _spoiled, often=2),
    ChaosFault("executor", "SIGKILL of an executor", _killed(lambda v: v.executors()), cluster=True, often=4),
    ChaosFault("executor-stop", "SIGSTOP of an executor", _stopped(lambda v: v.executors()), cluster=True, often=3),
    ChaosFault("drain", "driver or executor killed while an executor leaves", _drain, cluster=True, often=2),
    ChaosFault("node", "SIGKILL of a node, a new one comes", _node, cluster=True, often=2),
    ChaosFault("network-cut", "a node cut off the network for some seconds", _cut, cluster=True, network=True, often=4),
)


def chosen(names: str, cluster: bool, network: bool = False) -> tuple[ChaosFault, ...]:
    """The faults of a comma-separated list; ``all`` leaves out those that need a cluster or network that is lacking."""
    if names == "all":
        return tuple(one for one in FAULTS if (cluster or not one.cluster) and (network or not one.network))
    by_name = {fault.name: fault for fault in FAULTS}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in by_name:
            raise BadInput(f"no fault {name!r}: there is {', '.join(by_name)}, or all")
        if by_name[name].cluster and not cluster:
            raise BadInput(f"fault {name!r} needs executors of their own: give --master cluster")
        if by_name[name].network and not network:
            raise BadInput(f"fault {name!r} needs nodes that are network namespaces: give --master netns (as root)")
    if not wanted:
        raise BadInput("--faults names none: give names with commas between, or all")
    return tuple(by_name[name] for name in dict.fromkeys(wanted))
