"""The state file of a cluster: which processes were started, so that another command can find and stop them."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import owner_only_file, owner_only_folder, write_whole
from sluicegate.runlog.runs import home_folder
from sluicegate.spark.cluster.daemons import Daemon
from sluicegate.spark.cluster.java import LOOPBACK

_FILE = "cluster.json"


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A master, the port of its page, and its workers. ``started`` counts all workers ever started.

    ``host`` is the address of the master.
    """

    master: Daemon
    page_port: int
    workers: tuple[Daemon, ...] = ()
    started: int = 0
    host: str = LOOPBACK

    @property
    def url(self) -> str:
        """The master URL for applications."""
        return f"spark://{self.host}:{self.master.port}"

    @property
    def page(self) -> str:
        """The address of the master's page."""
        return f"http://{self.host}:{self.page_port}"

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All processes in the order in which they are stopped: workers first."""
        return (*self.workers, self.master)

    def worker(self, name: str) -> Daemon:
        """The worker of that name."""
        for daemon in self.workers:
            if daemon.name == name:
                return daemon
        known = ", ".join(daemon.name for daemon in self.workers) or "none"
        raise BadInput(f"the cluster has no worker {name!r}; it has {known}")

    def without(self, names: set[str]) -> ClusterState:
        """The state without those workers."""
        return replace(self, workers=tuple(daemon for daemon in self.workers if daemon.name not in names))


def default_folder() -> Path:
    """``$SLUICEGATE_HOME/cluster``, or ``~/.sluicegate/cluster``."""
    return home_folder() / "cluster"


def read_state(folder: Path) -> ClusterState | None:
    """Read the state of the cluster in ``folder``; ``None`` if none was started, or it was stopped."""
    path = folder / _FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        workers = tuple(Daemon(**worker) for worker in found["workers"])
        return ClusterState(
            Daemon(**found["master"]), found["page_port"], workers, found["started"], found.get("host", LOOPBACK)
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as problem:
        raise BadInput(
            f"{path} cannot be read ({type(problem).__name__}: {problem}): if no Spark master of yours runs, remove it"
        ) from None


def write_state(folder: Path, state: ClusterState | None) -> None:
    """Write ``state`` atomically, or remove the file if it is ``None``."""
    path = folder / _FILE
    if state is None:
        path.unlink(missing_ok=True)
        return
    write_whole(path, json.dumps(asdict(state), indent=2) + "\n")


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the cluster's lock: one command at a time changes it, others wait."""
    try:
        owner_only_folder(folder)
        lock = owner_only_file(folder / "lock").open("w")
    except OSError as problem:
        raise EnvironmentLacks(f"{folder}: cannot be written ({problem.strerror}); choose another folder") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
