"""Processes that outlive their starter: known again for sure, or left alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.process_birth import born
from sluicegate.spark.cluster.daemons import Daemon, free_port, launch, log_tail, require_free, stop
from sluicegate.spark.cluster.waiting import wait_until


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Daemon]:
    found = launch("sleeper", ["sleep", "300"], os.environ, tmp_path / "log", 0)
    yield found
    stop([found], 5.0)


def ended(daemon: Daemon) -> bool:
    return wait_until(lambda: not daemon.alive, 60.0, 0.05)


def test_a_daemon_is_stopped_by_asking(sleeper: Daemon) -> None:
    assert sleeper.alive
    stop([sleeper], 60.0)
    assert not sleeper.alive


def test_a_daemon_that_will_not_listen_is_made_to_stop(tmp_path: Path) -> None:
    stubborn = ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"]
    daemon = launch("stubborn", stubborn, os.environ, tmp_path / "log", 0)
    assert wait_until(lambda: "ready" in (tmp_path / "log").read_text(), 60.0, 0.05)
    stop([daemon], 0.3)
    assert ended(daemon)


def test_another_process_with_the_same_number_is_never_signalled(sleeper: Daemon) -> None:
    recycled = replace(sleeper, born="another boot/1")
    assert not recycled.alive
    recycled.send(signal.SIGKILL)
    stop([recycled], 0.2)
    assert sleeper.alive


def test_a_process_that_ended_but_was_not_fetched_counts_as_ended() -> None:
    child = subprocess.Popen(["true"])
    try:
        assert wait_until(lambda: born(child.pid) is None, 60.0, 0.05)
    finally:
        child.wait()


def test_a_daemon_that_ends_at_once_tells_why(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "printf 'began\\nno room\\n\\tat some.Java(Line)\\n' >&2"]
    daemon = launch("brief", command, os.environ, tmp_path / "log", 0)
    assert ended(daemon)
    assert log_tail(daemon).endswith("ends with: began | no room")
    assert "cannot be read" in log_tail(replace(daemon, log=str(tmp_path / "nowhere")))


def test_a_port_in_use_is_named_and_what_to_do_about_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentLacks, match=rf"port {port} .* --port"):
            require_free(port)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(BadInput, match="1 to 65535"):
        require_free(port)


def test_a_free_port_can_be_had() -> None:
    assert require_free(free_port()) < 32768
