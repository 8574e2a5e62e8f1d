"""Starts, signals and stops processes that outlive the command that started them.

The system reuses pids. A daemon is therefore identified by its pid and its start time: a signal is sent only if both
still match.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.process_birth import born
from sluicegate.spark.cluster.java import LOOPBACK

POLL_S = 0.1
# Below the ephemeral port range (32768 on Linux, 49152 elsewhere), so that no outgoing connection takes a port between
# the check and its use.
_PORTS = range(20_000, 32_000)
_TAIL_LINES = 3
_TAIL_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process we started: its pid, start time, port and log file."""

    name: str
    pid: int
    born: str
    port: int
    log: str

    @property
    def alive(self) -> bool:
        """Whether this process still runs; another process that reused its pid does not count."""
        return born(self.pid) == self.born

    def send(self, number: signal.Signals) -> None:
        """Signal the process, unless it has ended."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


def launch(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, port: int) -> Daemon:
    """Start a command in its own session, so that neither Ctrl-C nor the end of this process stops it."""
    # The shell exits and init adopts the process: it needs no wait() here and leaves no zombie.
    detach = ["/bin/sh", "-c", '"$@" >>"$0" 2>&1 </dev/null & echo $!', str(log), *command]
    done = subprocess.run(detach, env=environment, capture_output=True, text=True, start_new_session=True, check=False)
    if done.returncode != 0 or not done.stdout.strip().isdigit():
        raise EnvironmentLacks(f"{name} cannot be started: {done.stderr.strip() or 'the shell gave no process number'}")
    pid = int(done.stdout)
    return Daemon(name, pid, born(pid) or "ended at once", port, str(log))


def stop(daemons: Iterable[Daemon], grace_s: float) -> None:
    """End processes: SIGTERM first, SIGKILL after ``grace_s``."""
    left = [daemon for daemon in daemons if daemon.alive]
    for daemon in left:
        daemon.send(signal.SIGTERM)
    until = time.monotonic() + grace_s
    while left and time.monotonic() < until:
        time.sleep(POLL_S)
        left = [daemon for daemon in left if daemon.alive]
    for daemon in left:
        daemon.send(signal.SIGKILL)


def own_address(number: int) -> str:
    """A loopback address for the ``number``-th process; 127.0.0.1 if the system has no others (macOS).

    >>> own_address(0)
    '127.0.0.1'
    """
    address = str(IPv4Address(LOOPBACK) + number)
    return address if _refused(0, address) is None else LOOPBACK


def free_port() -> int:
    """A loopback port without a listener."""
    for port in random.SystemRandom().sample(_PORTS, 100):
        if _refused(port) is None:
            return port
    raise EnvironmentLacks(f"no free port found between {_PORTS.start} and {_PORTS.stop}: name one with --port")


def require_free(port: int) -> int:
    """Return ``port`` if a server can bind it, else raise."""
    if not 1 <= port <= 65535:
        raise BadInput(f"port is {port}: give 1 to 65535")
    problem = _refused(port)
    if problem is not None:
        raise EnvironmentLacks(
            f"port {port} of {LOOPBACK} cannot be used ({problem}): give another with --port, or leave --port out "
            "to have a free one picked"
        )
    return port


def _refused(port: int, host: str = LOOPBACK) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        # As Java does: a port in TIME_WAIT counts as free.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, port))
            server.listen()
        except OSError as problem:
            return problem.strerror or str(problem)
    return None


def log_tail(daemon: Daemon) -> str:
    """The last lines of a daemon's log, without blank lines and stack frames, joined into one line."""
    try:
        lines = Path(daemon.log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        return f"its log {daemon.log} cannot be read ({problem.strerror})"
    told = [line.strip() for line in lines if line.strip() and not line.startswith(("\tat ", "\t..."))]
    text = " | ".join(told[-_TAIL_LINES:]) or "nothing"
    return f"its log {daemon.log} ends with: {text[-_TAIL_CHARACTERS:]}"


@dataclass(frozen=True, slots=True)
class Hosts:
    """All on loopback. A subclass puts the master and each worker on an address of its own network."""

    master: str = LOOPBACK

    def of_worker(self, number: int) -> tuple[str, tuple[str, ...]]:
        """The address of the ``number``-th worker, and the words that go before its command."""
        return own_address(number), ()
