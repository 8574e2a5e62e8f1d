"""A real cluster of local processes; and, quickly, what happens where none can be."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.other_user import as_nobody, needs_root

from sluicegate.cli.cluster import app
from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.spark.cluster.java import find_java, spark_home
from sluicegate.spark.cluster.secret import page_password, properties_file
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.state import default_folder, read_state
from sluicegate.spark.cluster.status import executors_of, master_page
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.ground import ground_of


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster") / "cluster", patience_s=300.0)
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
    assert wait_until(lambda: not state.workers[0].alive, 60.0, 0.05)
    code, document = told(capsys, "status", "--folder", str(cluster.folder))
    assert (code, document["healthy"]) == (1, False)
    found = cluster.up(workers=2, memory="512m")
    assert found.note == "was up already; 1 worker(s) added"
    assert [worker.name for worker in found.workers] == ["worker-2", "worker-3"]
    assert found.healthy


@pytest.mark.slow
def test_a_node_that_a_pipeline_adds_is_as_large_as_the_others(cluster: Cluster) -> None:
    nodes = ground_of(f"cluster:{cluster.folder}", "1:4").nodes
    assert nodes is not None
    (added,) = nodes.start(1)
    status = cluster.status()
    assert status is not None
    assert {(worker.cores, worker.memory_mb) for worker in status.workers} == {(1, 512)}
    nodes.stop([added])


def submitted(java_options: list[str], cluster: Cluster, **environment: str) -> subprocess.CompletedProcess[str]:
    """An attempt of another user to have the cluster run a program."""
    status = cluster.status()
    assert status is not None
    launch = ["org.apache.spark.deploy.Client", "launch", status.url, "file:///nothing.jar", "Nothing"]
    command = [str(find_java()), *java_options, "-cp", f"{spark_home()}/jars/*", *launch]
    if as_nobody(["ls", str(spark_home() / "jars")]).returncode != 0:
        pytest.skip("Spark is installed where another user cannot read it")
    return as_nobody(command, {"SPARK_LOCAL_IP": "127.0.0.1", **environment})


@needs_root
@pytest.mark.slow
def test_another_user_cannot_submit_and_could_with_the_secret(cluster: Cluster) -> None:
    guessed = ["-Dspark.authenticate=true", "-Dspark.authenticate.secret=guess"]
    for options in ([], guessed):
        done = submitted(options, cluster)
        assert done.returncode != 0
        assert "successfully submitted" not in done.stdout + done.stderr
    settings = dict(cluster.settings())
    secret = settings.pop("spark.authenticate.secret")
    options = [f"-D{key}={value}" for key, value in settings.items()]
    done = submitted(options, cluster, _SPARK_AUTH_SECRET=secret)
    assert "Driver successfully submitted" in done.stdout + done.stderr


@needs_root
@pytest.mark.slow
def test_another_user_reads_neither_the_secret_nor_the_logs(cluster: Cluster) -> None:
    cluster.folder.parent.chmod(0o755)
    for path in (properties_file(cluster.folder), cluster.folder / "logs" / "master.log", cluster.folder / "work"):
        assert path.exists()
        assert "Permission denied" in as_nobody(["ls", "-R", str(path)]).stderr


@pytest.mark.slow
def test_pages_of_master_and_workers_ask_for_the_password(cluster: Cluster) -> None:
    state, password = read_state(cluster.folder), page_password(cluster.folder)
    assert state is not None
    page = master_page(state.page, password)
    assert page is not None
    assert master_page(state.page, "guess") is None
    worker = next(one.page for one in page.workers.values() if one.state == "ALIVE")
    assert (executors_of(worker, password), executors_of(worker, "guess")) == ((), None)


OWN_APPLICATION = """
import sys
from pathlib import Path
from sluicegate.spark.ground import ground_of
from sluicegate.spark.session import spark_session

ground = ground_of(f"cluster:{sys.argv[1]}")
secret = ground.settings["spark.authenticate.secret"]
spark = spark_session(ground.master, {**ground.settings, "spark.executor.memory": "512m"})
print(spark.sparkContext.parallelize(range(10), 2).map(lambda n: n * n).sum())
seen = 0
for path in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        line = path.read_text(errors="replace")
    except OSError:
        continue
    seen += "org.apache.spark" in line
    if secret in line:
        print("shown to everybody:", line)
print("seen" if seen >= 3 else f"only {seen} processes of Spark seen")
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="command lines are read from /proc")
def test_the_owners_application_runs_and_the_secret_is_on_no_command_line(cluster: Cluster) -> None:
    command = [sys.executable, "-c", OWN_APPLICATION, str(cluster.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300.0)
    assert done.stdout.split() == ["285", "seen"], done.stderr[-2000:]


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
    assert master_page(state.page, "any") is None
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


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(BadInput, match="can be written by other users"):
        Cluster(tmp_path).up(1)
    assert read_state(tmp_path) is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentLacks, match="choose another folder"):
        Cluster(tmp_path / "file" / "below").down()


def test_the_folder_follows_sluicegate_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_HOME", os.fspath(Path("/somewhere")))
    assert default_folder() == Path("/somewhere/cluster")
    monkeypatch.delenv("SLUICEGATE_HOME")
    assert default_folder() == Path.home() / ".sluicegate" / "cluster"
