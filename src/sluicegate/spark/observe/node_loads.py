"""Node utilisation, from the load reports of the executors (``NodeLoads`` in sluicegate's jar).

The driver writes it to one small file in the pipeline's folder, which the controller reads at its next tick. A file
older than 15 s is ignored.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sluicegate.domain import NodeObservation
from sluicegate.domain.fleet import host_of
from sluicegate.runlog.batch_log import DAMAGE
from sluicegate.runlog.files import read_if_there, write_whole
from sluicegate.spark.act.scheduler import Scheduler

_EVERY_S = 2.0
_STALE_S = 15.0
_DRIVER = "driver"  # Spark's name for the one executor of local mode


@dataclass(frozen=True, slots=True)
class ExecutorLoad:
    """Resources that one executor uses on its host; ``cores`` are those assigned to it.

    ``host_cores`` are the cores of the host, ``host_busy`` those of them kept busy by any process.
    """

    id: str
    host: str
    cores: int
    cores_busy: float
    memory_bytes: int
    host_memory_bytes: int
    disk_busy: float
    host_cores: int = 0
    host_busy: float = 0.0

    @classmethod
    def from_line(cls, line: str) -> ExecutorLoad:
        """
        >>> ExecutorLoad.from_line("0\\t127.0.0.2\\t2\\t0.5\\t1000\\t4000\\t0.25\\t8\\t3.5").host_busy
        3.5
        """
        name, host, cores, busy, memory, whole, disk, there, host_busy = line.split("\t")
        own = (int(cores), float(busy), int(memory), int(whole), float(disk))
        return cls(name, host, *own, int(there), float(host_busy))


def nodes_of(executors: Iterable[ExecutorLoad]) -> list[dict[str, object]]:
    """Utilisation by host: of its executors' cores, of all its memory, and of its busiest disk's time.

    Workers on this machine have loopback addresses of their own but share its cores.

    >>> one = ExecutorLoad("0", "h1", 2, 0.5, 1000, 4000, 0.25, 4, 3.0)
    >>> two = ExecutorLoad("1", "h1", 2, 1.5, 1000, 4000, 0.5, 4, 3.0)
    >>> (node,) = nodes_of([one, two])
    >>> node["cpu"], node["memory"], node["io"], node["cores"], node["busy_cores"], node["other_cores"]
    (0.5, 0.5, 0.5, 4.0, 2.0, 1.0)
    """
    by_host: dict[str, list[ExecutorLoad]] = {}
    machines: dict[str, list[ExecutorLoad]] = {}
    for executor in executors:
        by_host.setdefault(executor.host, []).append(executor)
        machines.setdefault(_machine(executor.host), []).append(executor)
    shared = Counter(map(_machine, by_host))
    return [
        {
            "name": host,
            "cpu": round(sum(e.cores_busy for e in here) / max(sum(e.cores for e in here), 1), 4),
            "memory": round(sum(e.memory_bytes for e in here) / max(here[0].host_memory_bytes, 1), 4),
            "io": round(max(e.disk_busy for e in here), 4),
            "cores": round(here[0].host_cores / shared[_machine(host)], 4),
            "busy_cores": round(sum(e.cores_busy for e in here), 4),
            "other_cores": round(_others(machines[_machine(host)]) / shared[_machine(host)], 4),
        }
        for host, here in sorted(by_host.items())
    ]


def _machine(host: str) -> str:
    return "here" if host == "localhost" or host.startswith("127.") else host


def _others(executors: list[ExecutorLoad]) -> float:
    """Cores of a machine that processes other than its executors keep busy."""
    return max(max(e.host_busy for e in executors) - sum(e.cores_busy for e in executors), 0.0)


class NodeLog:
    """Rewrites the node file every two seconds, from a thread in the driver."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._path, self._scheduler = path, Scheduler(spark)
        jvm: Any = spark.sparkContext._jvm  # the jar's classes have no Python stubs
        self._told = jvm.sluicegate.NodeLoads
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sluicegate-node-log", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            # Spark may be stopping or the disk full: the operators themselves report that
            with contextlib.suppress(Py4JError, OSError):
                self._write()

    def _write(self) -> None:
        loads = [ExecutorLoad.from_line(line) for line in str(self._told.told()).splitlines()]
        cluster = self._scheduler.has_executors
        here = {executor.id for executor in self._scheduler.executors()} if cluster else {_DRIVER}
        # stale reports: of executors that left, or of an earlier application in the same Java process
        for gone in [load.id for load in loads if load.id not in here]:
            self._told.forget(gone)
        nodes = nodes_of(load for load in loads if load.id in here)
        document = {"at_s": round(time.time(), 3), "executors": len(here) if cluster else None, "nodes": nodes}
        write_whole(self._path, json.dumps(document))


@dataclass(frozen=True, slots=True)
class GroundSeen:
    """What the controller reads: the number of executors (``None`` in local mode) and the nodes."""

    executors: int | None = None
    nodes: tuple[NodeObservation, ...] = ()


def read_nodes(
    path: Path, now_s: float, running: Mapping[str, int], places: Mapping[str, Sequence[str]] | None = None
) -> GroundSeen:
    """Read the last report, unless it is stale.

    A single node hosts all tasks. With several, only planned places are known; Spark places the other tasks.
    """
    try:
        told = json.loads(read_if_there(path) or "null")
        return GroundSeen() if told is None or now_s - float(told["at_s"]) > _STALE_S else _seen(told, running, places)
    except DAMAGE:  # the driver will rewrite it
        return GroundSeen()


def _seen(
    told: Mapping[str, Any], running: Mapping[str, int], places: Mapping[str, Sequence[str]] | None
) -> GroundSeen:
    alone = len(told["nodes"]) == 1
    nodes = (
        NodeObservation(
            n["name"],
            n["cpu"],
            n["memory"],
            n["io"],
            running if alone else _placed(places, n["name"]),
            *(float(n.get(what, 0.0)) for what in ("cores", "busy_cores", "other_cores")),
        )
        for n in told["nodes"]
    )
    return GroundSeen(told["executors"], tuple(nodes))


def _placed(places: Mapping[str, Sequence[str]] | None, host: str) -> dict[str, int]:
    """By operator, how many of its processors were placed on ``host``."""
    counts = {name: [host_of(place) for place in hosts].count(host) for name, hosts in (places or {}).items()}
    return {name: count for name, count in counts.items() if count}
