"""One slot: an executor with several task slots, pinned to one core of this machine, and its CPU and memory use.

A profile's shares are shares of this slot. The executor is found among the descendants of Spark's Java process and
pinned, with all of its threads and Python workers, to one core; the driver has the others. Linux only: reads ``/proc``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import find_spark_home
from pyspark.sql import SparkSession

from sluicegate.errors import EnvironmentLacks

_EXECUTOR = b"CoarseGrainedExecutorBackend"
_COMES_WITHIN_S = 60.0
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Used:
    """CPU and memory counters of the executor and its descendants at one moment."""

    at_s: float
    cpu_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class SlotSize:
    """Size of the executor: ``tasks`` task slots and ``memory_mb``, half of which is Java's heap."""

    tasks: int = 8
    memory_mb: int = 1536

    @property
    def master(self) -> str:
        return f"local-cluster[1,{self.tasks},{self.memory_mb}]"

    @property
    def settings(self) -> dict[str, str]:
        return {
            "spark.executor.memory": f"{self.memory_mb // 2}m",
            "spark.executor.cores": str(self.tasks),
            "spark.task.maxFailures": "1",
        }

    @property
    def memory_bytes(self) -> int:
        return self.memory_mb * 2**20


class Slot:
    """The one executor of a session."""

    def __init__(self, spark: SparkSession, size: SlotSize) -> None:
        gateway: Any = spark.sparkContext._gateway  # there is no public API for the Java process
        self.size, self._driver = size, int(gateway.proc.pid)
        self._pid = self._found()
        self.core = max(os.sched_getaffinity(0))
        self.pin()

    def pin(self) -> None:
        """Pin every existing thread to one core; later threads inherit it from their creator."""
        for pid in self._tree():
            for thread in _names(Path(f"/proc/{pid}/task")):
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(int(thread), {self.core})

    def used(self) -> Used:
        ticks = 0
        for pid in self._tree():
            with contextlib.suppress(OSError, ValueError, IndexError):
                ticks += _ticks(pid)
        return Used(time.time(), ticks / _TICKS_A_SECOND, own_bytes(self._tree()))

    def kill(self) -> None:
        """SIGKILL the executor and its descendants; stopping Spark is up to the caller."""
        for pid in self._tree():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _found(self) -> int:
        until = time.monotonic() + _COMES_WITHIN_S
        while time.monotonic() < until:
            for pid in below(self._driver):
                with contextlib.suppress(OSError):
                    if _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes():
                        return pid
            time.sleep(0.2)
        raise EnvironmentLacks(f"no executor came within {_COMES_WITHIN_S:g} s: see `sluicegate doctor`")

    def _tree(self) -> Iterator[int]:
        yield self._pid
        yield from below(self._pid)


def own_bytes(pids: Iterable[int]) -> int:
    """Unshared resident memory of processes; those that have ended count as 0."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
            pages += int(resident) - int(shared)
    return pages * _PAGE_BYTES


def executor_folder(spark: SparkSession) -> Path:
    """The work folder of this session's executor in a ``local-cluster``; Spark does not delete it."""
    home: Callable[[], str] = find_spark_home._find_spark_home
    return Path(home()) / "work" / spark.sparkContext.applicationId


def below(pid: int) -> Iterator[int]:
    """Pids of all descendants of a process."""
    for thread in _names(Path(f"/proc/{pid}/task")):
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                yield int(child)
                yield from below(int(child))


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _ticks(pid: int) -> int:
    """CPU ticks of a process and of its children that have ended and been waited for."""
    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in after[11:15])
