"""A real cluster of local processes; and, quickly, what happens where none can be."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.cli.cluster import app
from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.spark.cluster.page import master_page
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.state import default_folder, read_state
from sluicegate.spark.cluster.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster"), patience_s=300.0)
    try:
        found.up(workers=2, memory="512m")
        yield found
    finally:
        found.down()


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    """The exit code and the JSON document of one call."""
    code = app(args=[*arguments, "--json"], standalone_mode=False)
    out, err = capsys.readouterr()
    assert err == ""
    document = json.loads(out)
    assert isinstance(document, dict)
    return code, document


@pytest.mark.slow
def test_a_cluster_has_all_its_workers_registered_on_loopback(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = told(capsys, "status", "--folder", str(cluster.folder))
    assert code == 0
    assert (document["up"], document["healthy"], document["applications"]) == (True, True, [])
    assert (document["cores"], document["cores_used"], document["memory_mb"]) == (2, 0, 1024)
    assert str(document["master"]).startswith("spark://127.0.0.1:")
    workers = document["workers"]
    assert isinstance(workers, list)
    assert [(worker["name"], worker["state"]) for worker in workers] == [("worker-1", "alive"), ("worker-2", "alive")]
    assert all(worker["host"].startswith("127.") for worker in workers)


@pytest.mark.slow
def test_up_when_up_says_so_and_keeps_what_runs(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    before = cluster.status()
    code, document = told(capsys, "up", "--workers", "1", "--port", "7077", "--folder", str(cluster.folder))
    after = cluster.status()
    assert before is not None
    assert before == after
    assert code == 0
    note = str(document["note"])
    assert note.startswith("is up already, with 1 worker(s) more than asked for; none was stopped; on port ")
    assert note.endswith(", not 7077")


@pytest.mark.slow
def test_a_worker_that_died_is_told_and_made_good_by_up(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    state = read_state(cluster.folder)
    assert state is not None
    state.workers[0].send(signal.SIGKILL)
    assert wait_until(lambda: not state.workers[0].alive, 30.0, 0.05)
    code, document = told(capsys, "status", "--folder", str(cluster.folder))
    assert (code, document["healthy"]) == (1, False)
    found = cluster.up(workers=2, memory="512m")
    assert found.note == "was up already; 1 worker(s) added"
    assert [worker.name for worker in found.workers] == ["worker-2", "worker-3"]
    assert found.healthy


@pytest.mark.slow
def test_an_unknown_worker_is_not_retired(cluster: Cluster) -> None:
    with pytest.raises(BadInput, match="no worker 'worker-99'; it has worker-"):
        cluster.retire_workers(["worker-99"])


@pytest.mark.slow
def test_down_ends_everything_and_down_again_is_fine(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    state = read_state(cluster.folder)
    assert state is not None
    code, document = told(capsys, "down", "--folder", str(cluster.folder))
    stopped = document["stopped"]
    assert isinstance(stopped, list)
    assert (code, stopped[-1]) == (0, "master")
    assert not any(daemon.alive for daemon in state.daemons)
    assert master_page(state.page) is None
    assert told(capsys, "down", "--folder", str(cluster.folder))[1]["stopped"] == []
    assert told(capsys, "status", "--folder", str(cluster.folder))[1]["up"] is False
    assert cluster.status() is None


def fake_java(folder: Path, script: str) -> str:
    """A JAVA_HOME whose Java is a shell script."""
    java = folder / "java-home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return str(java.parent.parent)


def test_a_master_that_ends_shows_the_end_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, "echo 'out of luck' >&2; exit 1"))
    with pytest.raises(EnvironmentLacks, match=r"master ended before it was ready: its log .*out of luck") as problem:
        Cluster(tmp_path / "cluster").up(1)
    assert "\n" not in str(problem.value)
    assert read_state(tmp_path / "cluster") is None


def test_a_master_that_never_comes_is_given_up_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, "exec sleep 3"))
    with pytest.raises(EnvironmentLacks, match=r"master did not come within 0\.5 s"):
        Cluster(tmp_path / "cluster", patience_s=0.5).up(1)
    assert read_state(tmp_path / "cluster") is None


@pytest.mark.parametrize(
    ("home", "path", "said"), [("/nowhere", "/usr/bin", "has no bin/java"), ("", "/nowhere", "no Java found")]
)
def test_without_java_one_line_says_what_to_install(
    home: str, path: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setenv("PATH", path)
    with pytest.raises(EnvironmentLacks, match=said):
        Cluster(tmp_path).up(1)


def test_a_port_in_use_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentLacks, match=rf"port {port} of 127.0.0.1 cannot be used"):
            Cluster(tmp_path).up(1, port=port)
    assert read_state(tmp_path) is None


@pytest.mark.parametrize(
    ("workers", "cores", "memory", "said"),
    [
        (0, 1, "1g", "at least 1"),
        (1, 0, "1g", "at least 1"),
        (1, 1, "1", "512m or 2g"),
        (1, 1, "-1g", "512m or 2g"),
        (1, 1, "511m", "at least 512m"),
        (1, 1, "0g", "at least 512m"),
    ],
)
def test_a_size_that_cannot_be_is_refused(workers: int, cores: int, memory: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=said):
        Cluster(tmp_path).up(workers, cores, memory)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"master": 3, "workers": []}', "\0"])
def test_a_state_file_nobody_can_read_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(BadInput, match=r"cluster\.json cannot be read .* remove it"):
        Cluster(tmp_path).status()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentLacks, match="choose another folder"):
        Cluster(tmp_path / "file" / "below").down()


def test_the_folder_follows_sluicegate_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_HOME", os.fspath(Path("/somewhere")))
    assert default_folder() == Path("/somewhere/cluster")
    monkeypatch.delenv("SLUICEGATE_HOME")
    assert default_folder() == Path.home() / ".sluicegate" / "cluster"
