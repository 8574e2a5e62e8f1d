"""A Java and a Scala application and a Spark Connect server, attached by the words of `sluicegate conf`, side by side.

Their tasks are moved and their rows exact. The Connect client's query is SQL.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest
from tests.attach.attached import batches, until

from sluicegate.runlog.run_record import read_record
from sluicegate.spark.cluster.daemons import free_port
from sluicegate.spark.cluster.java import QUICK_JAVA, find_java

pytestmark = [pytest.mark.slow, pytest.mark.long]
HERE, HOME = Path(__file__).parent, Path(pyspark.__file__).parent
JARS = str(HOME / "jars" / "*")
FILES, ROWS, PARTITIONS, WINDOW_S = 16, 60, 5, 5
T0_S = 1_767_225_600
SETTINGS = {
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sluicegate.interval_s": "1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
}


@dataclass(slots=True)
class Fed:
    """Files of rows, a second of event time each; what was written is known."""

    folder: Path
    rows: list[tuple[str, int, int]] = field(default_factory=list)

    def more(self, file: int, end: bool = False) -> None:
        at_s = T0_S + file + (60 if end else 0)
        fresh = [(f"k{n % 13}", n, at_s) for n in range(file * ROWS, (file + 1) * ROWS)]
        lines = [json.dumps({"k": k, "v": v, "at": _iso(at)}) for k, v, at in fresh]
        draft = self.folder.parent / f"draft-{file}"
        draft.write_text("\n".join(lines) + "\n")
        draft.rename(self.folder / f"{file:06d}.json")
        self.rows += fresh


def _iso(at_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


@dataclass(frozen=True, slots=True)
class Door:
    """An application behind one of the doors: its record, what it was fed and what it wrote."""

    base: Path
    fed: Fed
    log: Path

    @property
    def record(self) -> Path:
        return self.base / "record"

    @property
    def ready(self) -> bool:
        """Whether its tasks were moved, and it went on after that."""
        tasks = [batch["tasks"] for batch in batches(self.record, "counts")]
        return any(n != PARTITIONS for n in tasks[:-1])

    def words(self) -> list[str]:
        command = [sys.executable, "-c", "from sluicegate.cli import main; main()", "conf", "--slo", "p95=30s"]
        told = subprocess.run([*command, "--folder", str(self.record)], capture_output=True, text=True, check=True)
        own = [word for key, value in SETTINGS.items() for word in ("--conf", f"{key}={value}")]
        return [*shlex.split(told.stdout), *own]

    def places(self) -> list[str]:
        return [str(self.base / name) for name in ("in", "out", "checkpoint", "stop")]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Door]]:
    found: dict[str, Door] = {}
    for name in ("java", "scala", "connect"):
        base = tmp_path_factory.mktemp(name)
        (base / "in").mkdir()
        found[name] = Door(base, Fed(base / "in"), base / "log")
    started: list[subprocess.Popen[bytes]] = []
    try:
        port = free_port()
        started += [_java(found["java"]), _scala(found["scala"]), _server(found["connect"], port)]
        for door in found.values():
            door.fed.more(0)
        started.append(_client(found["connect"], port))
        for file in range(1, FILES):
            for door in found.values():
                door.fed.more(file)
            time.sleep(2.0)
        until(lambda: all(d.ready for d in found.values()) or any(p.poll() is not None for p in started), 240)
        assert all(door.ready for door in found.values()), _logs(found)
        for door in found.values():
            door.fed.more(FILES, end=True)
            (door.base / "stop").touch()
        for application in (started[0], started[1], started[3]):
            assert application.wait(120) == 0, _logs(found)
        yield found
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)


def _logs(doors: dict[str, Door]) -> str:
    return "\n".join(door.log.read_text()[-3000:] for door in doors.values())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def _started(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, env=_environment())


def _java(door: Door) -> subprocess.Popen[bytes]:
    return _submitted(door, [str(Path(find_java()).parent / "javac"), "-nowarn", "-cp", JARS], HERE / "PlainApp.java")


def _scala(door: Door) -> subprocess.Popen[bytes]:
    compiler = [str(find_java()), *QUICK_JAVA.split(), "-cp", JARS, "scala.tools.nsc.Main", "-usejavacp"]
    return _submitted(door, compiler, HERE / "PlainApp.scala")


def _submitted(door: Door, compiler: list[str], source: Path) -> subprocess.Popen[bytes]:
    classes, jar = door.base / "classes", door.base / "app.jar"
    classes.mkdir()
    subprocess.run([*compiler, "-d", str(classes), str(source)], check=True)
    tools = Path(find_java()).parent
    subprocess.run([tools / "jar", "--create", "--file", jar, "-C", classes, "."], check=True)
    # jars of the user's own replace spark.jars
    own = ["--jars", str(jar), "--class", "PlainApp"]
    submit = [str(HOME / "bin" / "spark-submit"), "--master", "local[3]", *door.words(), *own]
    return _started([*submit, str(jar), *door.places()], door.log)


def _server(door: Door, port: int) -> subprocess.Popen[bytes]:
    own = [
        "--conf",
        f"spark.connect.grpc.binding.port={port}",
        "--conf",
        "spark.connect.grpc.binding.address=127.0.0.1",
    ]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = [str(HOME / "bin" / "spark-submit"), "--master", "local[3]", *door.words(), *own]
    return _started([*submit, "--class", main, "spark-internal"], door.log)


def _client(door: Door, port: int) -> subprocess.Popen[bytes]:
    client = [sys.executable, str(HERE / "connect_client.py"), f"sc://127.0.0.1:{port}"]
    return _started([*client, *door.places()], door.log.with_name("client.log"))


@pytest.mark.parametrize("name", ["java", "scala", "connect"])
def test_tasks_are_moved_with_a_reason(doors: dict[str, Door], name: str) -> None:
    record = read_record(doors[name].record)
    assert [move["operator"] for decision in record.decisions for move in decision["rescales"]]
    assert all(decision["reasons"] for decision in record.decisions)
    tasks = {batch["tasks"] for batch in batches(doors[name].record, "counts")}
    assert len(tasks) > 1


@pytest.mark.parametrize("name", ["java", "scala"])
def test_the_application_counts_every_row_once(doors: dict[str, Door], name: str) -> None:
    door, found = doors[name], dict[str, tuple[int, int]]()
    for row in ds.dataset(door.base / "out", format="parquet").to_table().to_pylist():
        found[row["k"]] = max(found.get(row["k"], (0, 0)), (row["n"], row["total"]))
    counts, sums = Counter(k for k, _, _ in door.fed.rows), Counter[str]()
    for k, v, _ in door.fed.rows:
        sums[k] += v
    assert found == {k: (counts[k], sums[k]) for k in counts}


def test_the_connect_server_s_query_has_every_closed_window_once(doors: dict[str, Door]) -> None:
    door = doors["connect"]
    latest = max(at_s for _, _, at_s in door.fed.rows)
    wanted: dict[tuple[str, int], list[int]] = {}
    for k, v, at_s in door.fed.rows:
        since = at_s // WINDOW_S * WINDOW_S
        if since + WINDOW_S <= latest - 1:
            entry = wanted.setdefault((k, since), [0, 0])
            entry[0], entry[1] = entry[0] + 1, entry[1] + v
    files = ds.dataset(door.base / "out", format="parquet", exclude_invalid_files=True, ignore_prefixes=["_"])
    rows = files.to_table().to_pylist()
    found = {(row["k"], round(row["since"].timestamp())): [row["n"], row["total"]] for row in rows}
    assert len(found) == len(rows)
    assert found == wanted
