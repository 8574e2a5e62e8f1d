"""A secret in options or in what a service said is in no file of a run; nothing that is read back is unpickled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import numbers, simple

from sluicegate.errors import BadInput
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import OperatorFailed
from sluicegate.spark.pipeline.runtime import start

PLANTED = "pl4nted-s3cret"
SOURCES = Path(__file__).parents[2] / "src"


def calling(url: str) -> Any:
    def call(batches: Iterator[Any]) -> Iterator[Any]:
        raise ConnectionRefusedError(f"cannot reach {url}")

    return call


@pytest.mark.slow
def test_what_a_service_said_is_kept_without_the_secret_in_it(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"jdbc:postgresql://db/x?user=me&password={PLANTED}"

    def call(frame: DataFrame) -> DataFrame:
        return frame.mapInArrow(calling(url), "id long")

    with start(simple(call, retry_for_s=0), spark, tmp_path / "run") as running:
        running.feed("lines").append(numbers(3))
        with pytest.raises(OperatorFailed, match=r"password=\*\*\*") as told:
            running.drain()
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("sluicegate")]
    assert ours
    assert PLANTED not in "\n".join([str(told.value), *ours, *running.restarts])
    assert holding(tmp_path) == []


@pytest.mark.slow
def test_a_secret_among_sparks_settings_is_in_no_file_and_on_no_line_of_a_run(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "sluicegate"), "run", "wordcount", "--seconds", "3", "--rate", "20"]
    command += ["--conf", f"spark.hadoop.fs.s3a.secret.key={PLANTED}", "--conf", f"spark.my.password={PLANTED}"]
    command += ["--master", "local[2]", "--folder", str(tmp_path / "run"), "--html", str(tmp_path / "page.html")]
    environment = {**os.environ, "SLUICEGATE_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    assert PLANTED not in done.stdout + done.stderr
    assert "secret.key=***" in done.stderr, "the line that says how to go on"
    assert holding(tmp_path) == []


def holding(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path for path in files if PLANTED.encode() in path.read_bytes()]


def test_nothing_of_ours_unpickles() -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCES.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(
            r"\b(?:pickle|cloudpickle|marshal|shelve|dill|joblib)\.(?:load|loads|open|Unpickler)\b|yaml\.load\(", line
        )
    ]
    # the trees that this application learns are kept in its state, in a folder that is the owner's alone
    assert [line for line in found if not line.startswith("vht.py: ")] == []


@pytest.mark.parametrize(
    "name",
    [
        *("../up", "a/b", "/abs", "..", ".", "../../x", "~", "~root", "", "x" * 300, "x" * 101),
        *(
            "a\0b",
            "a\\..\\b",
            "a\nb",
            "a\n",
            "a b",
            "\u202egpj.a",
            "a\u2215b",
            "\u00e4",
            "a%2fb",
            "$(id)",
            "`id`",
            "a;b",
        ),
    ],
)
def test_a_name_cannot_leave_its_folder(name: str) -> None:
    def same(frame: DataFrame) -> DataFrame:
        return frame

    pipeline = Pipeline("named")
    with pytest.raises(BadInput) as told:
        pipeline.operator(name, same, pipeline.source("lines", "id long"))
    assert "\n" not in str(told.value)
    with pytest.raises(BadInput):
        pipeline.source(name, "id long")
    with pytest.raises(BadInput):
        Pipeline(name)
    with pytest.raises(BadInput):
        Pipeline("x").sink(name, pipeline.source("more", "id long"))


LISTED = f"""
from pathlib import Path
from sluicegate.spark.session import spark_session
keys = ("spark.hadoop.fs.azure.account.key.my.dfs.core.windows.net", "spark.my.sasl.jaas.config", "spark.my.passwd")
spark = spark_session("local[1]", dict.fromkeys(keys, {PLANTED!r}))
assert [spark.sparkContext.getConf().get(key) for key in keys] == [{PLANTED!r}] * 3
for path in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        if {PLANTED!r}.encode() in path.read_bytes() and b"java" in path.read_bytes():
            print(path)
    except OSError:
        pass
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="command lines are read from /proc")
def test_no_secret_setting_is_on_the_command_line_of_sparks_java(tmp_path: Path) -> None:
    script = tmp_path / "listed.py"
    script.write_text(LISTED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
