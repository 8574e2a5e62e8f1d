"""A driver killed in the middle, k moved at every batch; restarted WITHOUT us from its checkpoint: exact, no trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from tests.attach.attached import MOVES, batches, until, write_plan

from sluicegate.spark.attach.options import Options, spark_settings
from sluicegate.spark.cluster.java import QUICK_JAVA

FILES, ROWS, KEYS = 8, 60, 20


def submit(base: Path, settings: dict[str, str]) -> subprocess.Popen[bytes]:
    everything = {
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "6",
        "spark.ui.enabled": "false",
        "spark.plain.files": "1",
        **settings,
    }
    words = [word for key, value in everything.items() for word in ("--conf", f"{key}={value}")]
    app = [str(Path(__file__).with_name("plain_app.py")), *(str(base / x) for x in ("in", "out", "checkpoint", "stop"))]
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", *words, *app]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (base / "submit.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, process_group=0)


@pytest.mark.slow
def test_killed_in_the_middle_and_restarted_without_us_is_exact_and_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for file in range(FILES):
        rows = [{"k": f"k{v % KEYS}", "v": v} for v in range(file * ROWS, (file + 1) * ROWS)]
        (tmp_path / "in" / f"{file:03d}.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
    record = tmp_path / "record"
    record.mkdir()
    write_plan(record, {"counts": {"processors": 1, "by_batch": MOVES}})
    ours = spark_settings(Options(("p95=10s",), folder=str(record))) | {"spark.sluicegate.controller": "none"}
    first = submit(tmp_path, ours)
    try:
        assert until(lambda: len(batches(record, "counts")) >= 3, 120), (tmp_path / "submit.log").read_text()[-2000:]
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    tasks = [batch["tasks"] for batch in batches(record, "counts")]
    assert tasks == [MOVES[batch % len(MOVES)] for batch in range(len(tasks))]
    assert len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) < FILES, "killed too late to say anything"
    (tmp_path / "stop").touch()
    assert submit(tmp_path, {}).wait(180) == 0, (tmp_path / "submit.log").read_text()[-2000:]
    found: dict[str, tuple[int, int]] = {}
    for row in ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist():
        found[row["k"]] = max(found.get(row["k"], (0, 0)), (row["n"], row["total"]))
    values = {key: [v for v in range(FILES * ROWS) if v % KEYS == key] for key in range(KEYS)}
    assert found == {f"k{key}": (len(ones), sum(ones)) for key, ones in values.items()}
    files = (path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file())
    assert [path for path in files if b"sluicegate" in path.read_bytes()] == []
