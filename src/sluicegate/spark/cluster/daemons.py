"""Processes that outlive the command that started them, and that are never mistaken for others.

A process number is used again sooner or later. A daemon is therefore known by its number and by when it was born: a
signal goes out only where both still agree.
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
# Below the range from which systems hand out ports to clients (32768 on Linux, 49152 elsewhere), so that no outgoing
# connection takes a port between the look and its use.
_PORTS = range(20_000, 32_000)
_TAIL_LINES = 3
_TAIL_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process we started: its number, when it was born, the port it serves and where it logs."""

    name: str
    pid: int
    born: str
    port: int
    log: str

    @property
    def alive(self) -> bool:
        """Whether this very process runs; one that ended, and another with its number, do not count."""
        return born(self.pid) == self.born

    def send(self, number: signal.Signals) -> None:
        """Signal the process, if it is still the one that was started."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


def launch(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, port: int) -> Daemon:
    """Start a command in a session of its own, so that neither Ctrl-C nor the end of this process reaches it."""
    # The shell hands the process over to init and ends: nobody has to wait for it here, and it leaves no zombie.
    detach = ["/bin/sh", "-c", '"$@" >>"$0" 2>&1 </dev/null & echo $!', str(log), *command]
    done = subprocess.run(detach, env=environment, capture_output=True, text=True, start_new_session=True, check=False)
    if done.returncode != 0 or not done.stdout.strip().isdigit():
        raise EnvironmentLacks(f"{name} cannot be started: {done.stderr.strip() or 'the shell gave no process number'}")
    pid = int(done.stdout)
    return Daemon(name, pid, born(pid) or "ended at once", port, str(log))


def stop(daemons: Iterable[Daemon], grace_s: float) -> None:
    """End processes: asked first (SIGTERM), made to (SIGKILL) after ``grace_s``."""
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
    """A loopback address for the ``number``-th process; the common one where the system has no others (macOS).

    >>> own_address(0)
    '127.0.0.1'
    """
    address = str(IPv4Address(LOOPBACK) + number)
    return address if _refused(0, address) is None else LOOPBACK


def free_port() -> int:
    """A port of loopback nobody listens on."""
    for port in random.SystemRandom().sample(_PORTS, 100):
        if _refused(port) is None:
            return port
    raise EnvironmentLacks(f"no free port found between {_PORTS.start} and {_PORTS.stop}: name one with --port")


def require_free(port: int) -> int:
    """``port`` itself, if a server can have it."""
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
        # As Java does: a port whose last connection just closed is free.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, port))
            server.listen()
        except OSError as problem:
            return problem.strerror or str(problem)
    return None


def log_tail(daemon: Daemon) -> str:
    """The last lines of a daemon's log that say something, in one line."""
    try:
        lines = Path(daemon.log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        return f"its log {daemon.log} cannot be read ({problem.strerror})"
    told = [line.strip() for line in lines if line.strip() and not line.startswith(("\tat ", "\t..."))]
    text = " | ".join(told[-_TAIL_LINES:]) or "nothing"
    return f"its log {daemon.log} ends with: {text[-_TAIL_CHARACTERS:]}"
