"""The status of a cluster: its state file, its processes, and the JSON form of its master's and workers' pages."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sluicegate.spark.cluster.daemons import Daemon, log_tail
from sluicegate.spark.cluster.secret import page_password
from sluicegate.spark.cluster.state import ClusterState

_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class WorkerPage:
    """A worker as its master reports it; ``state`` is Spark's (ALIVE, DECOMMISSIONED, DEAD)."""

    host: str
    port: int
    state: str
    cores: int
    cores_used: int
    memory_mb: int
    memory_used_mb: int
    page: str


@dataclass(frozen=True, slots=True)
class ApplicationOnPage:
    """An application that runs on the cluster."""

    id: str
    name: str
    cores: int
    state: str


@dataclass(frozen=True, slots=True)
class MasterPage:
    """A master, its workers by port and its applications."""

    ready: bool
    workers: Mapping[int, WorkerPage]
    applications: tuple[ApplicationOnPage, ...]


def master_page(page: str, password: str) -> MasterPage | None:
    """The master's current state; ``None`` if it does not answer."""
    found = _document(page, password)
    if found is None or "activeapps" not in found:
        return None
    # The entry with the latest heartbeat wins: a dead worker stays listed beside a new one on the same port.
    workers = [_worker(entry) for entry in sorted(found["workers"], key=lambda entry: int(entry["lastheartbeat"]))]
    applications = tuple(
        ApplicationOnPage(str(a["id"]), str(a["name"]), int(a["cores"]), str(a["state"])) for a in found["activeapps"]
    )
    return MasterPage(found["status"] == "ALIVE", {worker.port: worker for worker in workers}, applications)


def executors_of(page: str, password: str) -> tuple[str, ...] | None:
    """The executors a worker runs, as ``APPLICATION/ID``; ``None`` if it does not answer."""
    found = _document(page, password)
    if found is None or "executors" not in found:
        return None
    return tuple(f"{entry['appid']}/{entry['id']}" for entry in found["executors"])


def _worker(entry: Mapping[str, Any]) -> WorkerPage:
    return WorkerPage(
        host=str(entry["host"]),
        port=int(entry["port"]),
        state=str(entry["state"]),
        cores=int(entry["cores"]),
        cores_used=int(entry["coresused"]),
        memory_mb=int(entry["memory"]),
        memory_used_mb=int(entry["memoryused"]),
        page=str(entry["webuiaddress"]),
    )


def _document(page: str, password: str) -> dict[str, Any] | None:
    credentials = b64encode(f"sluicegate:{password}".encode()).decode()
    # A direct connection: the page is on loopback, so proxy settings in the environment must not apply.
    connection = HTTPConnection(urlsplit(page).netloc, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/json/", headers={"Authorization": f"Basic {credentials}"})
        found = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return found if isinstance(found, dict) else None


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
