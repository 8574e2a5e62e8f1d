"""What a cluster's folder remembers: which processes were started, so that another command can find and end them."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import owner_only_file, owner_only_folder, write_whole
from sluicegate.runlog.home import home_folder
from sluicegate.spark.cluster.daemons import Daemon
from sluicegate.spark.cluster.java import LOOPBACK

_FILE = "cluster.json"


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A master, the port of its page, and its workers. ``started`` counts the workers there ever were."""

    master: Daemon
    page_port: int
    workers: tuple[Daemon, ...] = ()
    started: int = 0

    @property
    def url(self) -> str:
        """What an application gives Spark as its master."""
        return f"spark://{LOOPBACK}:{self.master.port}"

    @property
    def page(self) -> str:
        """The address of the master's page."""
        return f"http://{LOOPBACK}:{self.page_port}"

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """Workers first: the order in which they are stopped."""
        return (*self.workers, self.master)

    def worker(self, name: str) -> Daemon:
        """The worker of that name."""
        for daemon in self.workers:
            if daemon.name == name:
                return daemon
        known = ", ".join(daemon.name for daemon in self.workers) or "none"
        raise BadInput(f"the cluster has no worker {name!r}; it has {known}")

    def without(self, names: set[str]) -> ClusterState:
        """The state once those workers are gone."""
        return replace(self, workers=tuple(daemon for daemon in self.workers if daemon.name not in names))


def default_folder() -> Path:
    """``$SLUICEGATE_HOME/cluster``, or ``~/.sluicegate/cluster``."""
    return home_folder() / "cluster"


def read_state(folder: Path) -> ClusterState | None:
    """What was started in ``folder`` and not stopped; ``None`` if nothing was."""
    path = folder / _FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        workers = tuple(Daemon(**worker) for worker in found["workers"])
        return ClusterState(Daemon(**found["master"]), found["page_port"], workers, found["started"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as problem:
        raise BadInput(
            f"{path} cannot be read ({type(problem).__name__}: {problem}): if no Spark master of yours runs, remove it"
        ) from None


def write_state(folder: Path, state: ClusterState | None) -> None:
    """Remember ``state``, or with ``None`` that nothing runs; all at once, so that no reader sees half of it."""
    path = folder / _FILE
    if state is None:
        path.unlink(missing_ok=True)
        return
    write_whole(path, json.dumps(asdict(state), indent=2) + "\n")


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """One command at a time changes a cluster; a second one waits for the first."""
    try:
        owner_only_folder(folder)
        lock = owner_only_file(folder / "lock").open("w")
    except OSError as problem:
        raise EnvironmentLacks(f"{folder}: cannot be written ({problem.strerror}); choose another folder") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
