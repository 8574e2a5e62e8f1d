"""Starts, inspects, resizes and stops a standalone Spark cluster of local processes, using pip's PySpark alone.

Everything binds to loopback. Each worker gets its own address if the system allows it (Linux does), because Spark drops
the shuffle files of a whole host when a worker leaves. The running processes are recorded in a folder, so that one
command can start a cluster and another stop it. A worker is removed by draining: a signal decommissions it, the master
assigns nothing new to it, its executors finish their tasks and migrate their blocks, and an empty worker is stopped.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import owner_only_folder
from sluicegate.spark.cluster.daemons import Daemon, Hosts, free_port, launch, log_tail, require_free, stop
from sluicegate.spark.cluster.java import daemon_command, daemon_environment
from sluicegate.spark.cluster.secret import (
    application_settings,
    forget_secret,
    new_secret,
    page_password,
    properties_file,
)
from sluicegate.spark.cluster.state import ClusterState, read_state, sole_writer, write_state
from sluicegate.spark.cluster.status import ClusterStatus, MasterPage, executors_of, master_page, status_of
from sluicegate.spark.cluster.waiting import wait_until

_POLL_S = 0.25
_GRACE_S = 15.0
# An executor does not start with less: Spark reserves 300 MB and requires 1.5 times that.
_LEAST_MB = 512
# Linux has SIGPWR, Spark's default; other systems have SIGINFO, which Java does not use otherwise.
_DRAIN = signal.Signals["SIGPWR" if hasattr(signal, "SIGPWR") else "SIGINFO"]
_DAEMON_SETTINGS = {
    # A taken port must be an error: clients would not find a daemon that moved to the next port.
    "spark.port.maxRetries": "0",
    # The REST submission server has no password and is not needed.
    "spark.master.rest.enabled": "false",
    # Pages show executor logs and can stop applications: restrict them to the owner, and to reading.
    "spark.ui.filters": "sluicegate.OwnerPages",
    "spark.ui.killEnabled": "false",
    "spark.master.ui.decommission.allow.mode": "DENY",
    "spark.decommission.enabled": "true",
    "spark.worker.decommission.signal": _DRAIN.name.removeprefix("SIG"),
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster of a folder, running or not. ``patience_s`` bounds the wait for daemons that are starting."""

    folder: Path
    patience_s: float = 120.0
    hosts: Hosts = field(default_factory=Hosts)

    def up(self, workers: int, cores: int = 1, memory: str = "1g", port: int | None = None) -> ClusterStatus:
        """Start a master with at least ``workers`` registered workers; running ones are kept."""
        _require_size(workers, cores, memory)
        with sole_writer(self.folder):
            state = read_state(self.folder)
            if state is None or not state.master.alive:
                self._end(state)
                return status_of(self.folder, self._start(workers, cores, memory, port), "started")
            missing = workers - sum(worker.alive for worker in state.workers)
            state = self._add(state, max(missing, 0), cores, memory)
            return status_of(self.folder, state, _already(missing, port, state))

    def down(self) -> tuple[str, ...]:
        """Stop all processes, workers first; returns the names of those that were running."""
        with sole_writer(self.folder):
            state = read_state(self.folder)
            names = tuple(daemon.name for daemon in state.daemons if daemon.alive) if state else ()
            self._end(state)
        return names

    def status(self) -> ClusterStatus | None:
        """The state of the cluster; ``None`` if none was started, or it was stopped."""
        state = read_state(self.folder)
        return None if state is None else status_of(self.folder, state, "")

    def worker_pids(self) -> tuple[int, ...]:
        """The pids of the running workers; executors are their child processes."""
        state = read_state(self.folder)
        return tuple(worker.pid for worker in state.workers if worker.alive) if state else ()

    def settings(self) -> Mapping[str, str]:
        """The settings an application needs to connect; they hold the secret: pass them only to its Spark session."""
        return application_settings(self.folder)

    def add_workers(self, count: int, cores: int = 1, memory: str = "1g") -> list[str]:
        """Start more workers and wait until they are registered; returns their names."""
        _require_size(count, cores, memory)
        with sole_writer(self.folder):
            before = self._running()
            after = self._add(before, count, cores, memory)
        return [worker.name for worker in after.workers if worker not in before.workers]

    def retire_workers(self, names: Sequence[str], patience_s: float = 300.0) -> None:
        """Drain workers, then stop them. One not empty in time keeps draining: call again to wait longer."""
        state = self._running()
        leaving = [state.worker(name) for name in dict.fromkeys(names)]
        pages = self._worker_pages(state)
        for worker in leaving:
            worker.send(_DRAIN)
        left: list[Daemon] = []

        def all_empty() -> bool:
            left[:] = [worker for worker in leaving if not self._is_empty(worker, pages.get(worker.port), state)]
            return not left

        wait_until(all_empty, patience_s, _POLL_S)
        self._forget([worker for worker in leaving if worker not in left])
        if left:
            raise EnvironmentLacks(
                f"{', '.join(worker.name for worker in left)} not empty after {patience_s:g} s of draining: nothing "
                "new is placed there, so stop it again later; if it never empties, its application lacks "
                "spark.decommission.enabled=true"
            )

    def _running(self) -> ClusterState:
        state = read_state(self.folder)
        if state is None or not state.master.alive:
            raise EnvironmentLacks(f"no cluster runs in {self.folder}: start one with `sluicegate cluster up`")
        return state

    def _start(self, workers: int, cores: int, memory: str, port: int | None) -> ClusterState:
        """Start a master and its first workers; if that fails, stop all of them."""
        try:
            return self._add(self._start_master(port), workers, cores, memory)
        except BaseException:
            self._end(read_state(self.folder))
            raise

    def _start_master(self, port: int | None) -> ClusterState:
        new_secret(self.folder)
        chosen = free_port() if port is None else require_free(port)
        page_port = free_port()
        ports = ("--port", str(chosen), "--webui-port", str(page_port))
        host = self.hosts.master
        master = self._launch("master", host, (), chosen, "org.apache.spark.deploy.master.Master", *ports)
        state = ClusterState(master, page_port, host=host)
        write_state(self.folder, state)
        self._await_all([master], lambda _: (page := self._page(state)) is not None and page.ready)
        return state

    def _add(self, state: ClusterState, count: int, cores: int, memory: str) -> ClusterState:
        """Start workers; if one fails, stop all of this call. Removes ended workers from the state."""
        state = state.without({worker.name for worker in state.workers if not worker.alive})
        added: list[Daemon] = []
        try:
            for _ in range(count):
                number = state.started + 1
                added.append(self._launch_worker(number, state.url, cores, memory))
                # Written at once, so that `down` finds the worker even if this process is killed now.
                state = replace(state, workers=(*state.workers, added[-1]), started=number)
                write_state(self.folder, state)
            self._await_all(added, lambda worker: _state_of(worker, self._page(state)) == "ALIVE")
        except BaseException:
            self._forget_locked(added)
            raise
        write_state(self.folder, state)
        return state

    def _launch_worker(self, number: int, master: str, cores: int, memory: str) -> Daemon:
        host, before = self.hosts.of_worker(number)
        port, work = free_port(), self.folder.resolve() / "work"
        owner_only_folder(work)
        ports = ("--port", str(port), "--webui-port", "0")
        size = ("--cores", str(cores), "--memory", memory, "--work-dir", str(work))
        main_class = "org.apache.spark.deploy.worker.Worker"
        return self._launch(f"worker-{number}", host, before, port, main_class, *ports, *size, master)

    def _launch(
        self, name: str, host: str, before: tuple[str, ...], port: int, main_class: str, *arguments: str
    ) -> Daemon:
        log = self.folder.resolve() / "logs" / f"{name}.log"
        owner_only_folder(log.parent)
        log.unlink(missing_ok=True)
        settings = ("--properties-file", str(properties_file(self.folder)))
        command = [*before, *daemon_command(main_class, "--host", host, *settings, *arguments)]
        return launch(name, command, daemon_environment(host, _DAEMON_SETTINGS), log, port)

    def _await_all(self, daemons: Sequence[Daemon], ready: Callable[[Daemon], bool]) -> None:
        """Wait until daemons are ready; raise if one has ended or is not ready in time."""
        wait_until(lambda: all(ready(d) or not d.alive for d in daemons), self.patience_s, _POLL_S)
        for daemon in daemons:
            if not daemon.alive:
                raise EnvironmentLacks(f"{daemon.name} ended before it was ready: {log_tail(daemon)}")
            if not ready(daemon):
                raise EnvironmentLacks(f"{daemon.name} did not come within {self.patience_s:g} s: {log_tail(daemon)}")

    def _forget(self, workers: Sequence[Daemon]) -> None:
        with sole_writer(self.folder):
            self._forget_locked(workers)

    def _forget_locked(self, workers: Sequence[Daemon]) -> None:
        """Stop workers and remove them from the state; the caller holds the lock."""
        stop(workers, _GRACE_S)
        state = read_state(self.folder)
        if state is not None:
            write_state(self.folder, state.without({worker.name for worker in workers}))

    def _end(self, state: ClusterState | None) -> None:
        if state is not None:
            stop(state.workers, _GRACE_S)
            stop([state.master], _GRACE_S)
        write_state(self.folder, None)
        forget_secret(self.folder)

    def _page(self, state: ClusterState) -> MasterPage | None:
        return master_page(state.page, page_password(self.folder))

    def _worker_pages(self, state: ClusterState) -> dict[int, str]:
        """The page address of every worker the master knows, by the worker's port."""
        page = self._page(state)
        if page is None:
            raise EnvironmentLacks(f"the master {state.url} does not answer, so nothing is drained: try again")
        return {port: seen.page for port, seen in page.workers.items()}

    def _is_empty(self, worker: Daemon, page: str | None, state: ClusterState) -> bool:
        """Whether a worker can be stopped: it has ended, or is decommissioned and runs no executor."""
        if not worker.alive or page is None:
            return True
        gone = _state_of(worker, self._page(state)) in ("DECOMMISSIONED", "DEAD")
        return gone and executors_of(page, page_password(self.folder)) == ()


def _require_size(workers: int, cores: int, memory: str) -> None:
    if workers < 1 or cores < 1:
        raise BadInput(f"{workers} workers of {cores} cores: give at least 1 of each")
    found = re.fullmatch(r"(\d{1,6})([mg])", memory)
    if found is None:
        raise BadInput(f"memory of a worker is {memory!r}: give megabytes or gigabytes, such as 512m or 2g")
    if int(found[1]) * (1024 if found[2] == "g" else 1) < _LEAST_MB:
        raise BadInput(f"memory of a worker is {memory}: give at least {_LEAST_MB}m, or no executor fits in")


def _already(missing: int, port: int | None, state: ClusterState) -> str:
    """The status note for a cluster that was already up."""
    if missing > 0:
        note = f"was up already; {missing} worker(s) added"
    elif missing < 0:
        note = f"is up already, with {-missing} worker(s) more than asked for; none was stopped"
    else:
        note = "is up already"
    return note if port in (None, state.master.port) else f"{note}; on port {state.master.port}, not {port}"


def _state_of(worker: Daemon, page: MasterPage | None) -> str | None:
    seen = page.workers.get(worker.port) if page else None
    return seen.state if seen else None
