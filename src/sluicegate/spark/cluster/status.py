"""The status of a cluster, combined from its state file, its processes and its master's page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sluicegate.spark.cluster.daemons import Daemon, log_tail
from sluicegate.spark.cluster.page import ApplicationOnPage, MasterPage, master_page
from sluicegate.spark.cluster.secret import page_password
from sluicegate.spark.cluster.state import ClusterState

_WORDS = {"ALIVE": "alive", "DECOMMISSIONED": "draining"}


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker: ``alive``, ``draining`` (gets nothing new), ``unknown`` to the master, or ``lost`` (ended)."""

    name: str
    state: str
    host: str | None
    cores: int
    cores_used: int
    memory_mb: int
    memory_used_mb: int
    pid: int
    log: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster that was started: whether its master answers, its workers, and what runs on it."""

    folder: Path
    url: str
    page: str
    answers: bool
    workers: tuple[WorkerStatus, ...]
    applications: tuple[ApplicationOnPage, ...]
    note: str

    @property
    def healthy(self) -> bool:
        """Whether the master answers and no worker is lost or unknown to it."""
        return self.answers and all(worker.state in _WORDS.values() for worker in self.workers)


def status_of(folder: Path, state: ClusterState, note: str) -> ClusterStatus:
    """Build the status; the master is queried unless it has ended."""
    page = master_page(state.page, page_password(folder)) if state.master.alive else None
    return ClusterStatus(
        folder=folder,
        url=state.url,
        page=state.page,
        answers=page is not None and page.ready,
        workers=tuple(_worker_status(worker, page) for worker in state.workers),
        applications=() if page is None else page.applications,
        note=note if state.master.alive else f"the master has ended: {log_tail(state.master)}",
    )


def _worker_status(worker: Daemon, page: MasterPage | None) -> WorkerStatus:
    seen = page.workers.get(worker.port) if page is not None and worker.alive else None
    if seen is None:
        word = "unknown" if worker.alive else "lost"
        return WorkerStatus(worker.name, word, None, 0, 0, 0, 0, worker.pid, worker.log)
    size = (seen.cores, seen.cores_used, seen.memory_mb, seen.memory_used_mb)
    return WorkerStatus(worker.name, _WORDS.get(seen.state, "unknown"), seen.host, *size, worker.pid, worker.log)
