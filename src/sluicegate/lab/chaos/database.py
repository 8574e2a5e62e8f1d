"""Runs a private PostgreSQL server on loopback that chaos kills and restarts; queried with ``psql``.

PostgreSQL refuses to run as root: then it runs as the user ``postgres``, which Debian's package creates.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sluicegate.errors import EnvironmentLacks
from sluicegate.runlog.files import owner_only_folder
from sluicegate.spark.cluster.daemons import free_port
from sluicegate.spark.cluster.java import LOOPBACK
from sluicegate.spark.cluster.waiting import wait_until

_UP_S = 60.0
_USER = "postgres"
_SETTINGS = {"listen_addresses": LOOPBACK, "shared_buffers": "16MB", "max_connections": "20"}


def programs() -> Path:
    """The folder of ``postgres`` and ``initdb``; Debian does not put it on the path."""
    found = shutil.which("initdb")
    known = [Path(found)] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not known:
        raise EnvironmentLacks("no PostgreSQL found: install it (Debian: apt install postgresql)")
    return known[-1].parent


@dataclass(slots=True)
class Database:
    """A server whose data is in ``folder`` and survives ``kill``; commits are synchronous, so none is lost."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start it, with ``initdb`` the first time, and wait until it answers."""
        if not (self.folder / "data").exists():
            owner_only_folder(self.folder)
            if os.geteuid() == 0:
                shutil.chown(self.folder, _USER)
            words = [str(programs() / "initdb"), "-D", str(self.folder / "data"), "-U", _USER, "-A", "trust", "-N"]
            subprocess.run(words, check=True, capture_output=True, cwd=self.folder, user=self._user)
        self.port = self.port or free_port()
        settings = {**_SETTINGS, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        words = [str(programs() / "postgres"), "-D", str(self.folder / "data")]
        words += [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        self.process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder, user=self._user
        )
        if not wait_until(self._answers, _UP_S, 0.1):
            raise EnvironmentLacks(f"PostgreSQL does not answer on port {self.port} after {_UP_S:g} s")

    @property
    def _user(self) -> str | None:
        return _USER if os.geteuid() == 0 else None

    @property
    def address(self) -> str:
        return f"host={LOOPBACK} port={self.port} user={_USER} dbname=postgres connect_timeout=5"

    def kill(self) -> None:
        """SIGKILL the server and wait until it no longer answers; its connection processes end by themselves."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            wait_until(lambda: not self._answers(), 10.0, 0.1)
            time.sleep(0.5)  # or the shared memory of the killed server is still in use

    def stop_for(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after ``seconds``: meanwhile connections are accepted but not answered."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self.process.send_signal(signal.SIGCONT)

    def down(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        try:
            return asked(self.address, "select 1") == ["1"]
        except OSError:
            return False


@contextmanager
def served() -> Iterator[Database]:
    """Run a new server within the block."""
    with tempfile.TemporaryDirectory(prefix="sluicegate-database-", ignore_cleanup_errors=True) as folder:
        made = Database(Path(folder) / "postgres")
        if os.geteuid() == 0:
            Path(folder).chmod(0o711)  # the server runs as another user, who needs access below
        made.up()
        try:
            yield made
        finally:
            made.down()


def asked(address: str, script: str, rows: str = "") -> list[str]:
    """Output lines of a script run in one transaction; ``rows`` is the input of its ``\\copy ... from stdin``."""
    words = ["psql", address, "-X", "-q", "-A", "-t", "-1", "-v", "ON_ERROR_STOP=1"]
    done = subprocess.run(
        [*words, "-c", script] if not rows else [*words, "-f", "-"],
        input=f"{script}\n{rows}\\.\n" if rows else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        raise ConnectionError(f"PostgreSQL: {done.stderr.strip()[:300]}")
    return done.stdout.splitlines()
