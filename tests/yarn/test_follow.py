"""An unmodified application on a real YARN, attached by `sluicegate conf`: 1 -> 3 -> 1 executors, rows exact."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attach.attached import batches, until
from tests.attach.test_follow import SIZES, SLUICEGATE, Feed, Story, executors
from tests.yarn.yarn import Yarn

from sluicegate.spark.cluster.java import LOOPBACK

pytestmark = [pytest.mark.slow, pytest.mark.long]

APP = Path(__file__).parents[1] / "attach" / "plain_app.py"
FEW_PER_S, MANY_PER_S = 30, 450
"""An executor does at most 200 rows a second: one is enough, then three are needed."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    base = tmp_path_factory.mktemp("yarn")
    yarn, feed, folder = Yarn(base / "yarn"), Feed(base / "in", FEW_PER_S), base / "record"
    feed.folder.mkdir()
    try:
        yarn.up()
        with (base / "submit.log").open("w") as log:
            process = subprocess.Popen(submit(yarn, base), stdout=log, stderr=log, env=environment(yarn))
            try:
                grown, shrunk = rise_and_fall(feed, folder)
                (base / "stop").touch()
                code = process.wait(240)
            finally:
                feed.ended.set()
                process.kill()
                process.wait()
        yield Story(folder, feed, grown, shrunk, code, (base / "submit.log").read_text())
    finally:
        yarn.down()


def submit(yarn: Yarn, base: Path) -> list[str]:
    """``spark-submit --master yarn $(sluicegate conf ...) app.py``."""
    asked = ["--slo", "p95=20s", "--executors", "1:3", "--folder", str(base / "record")]
    words = subprocess.run([*SLUICEGATE, "conf", *asked], capture_output=True, text=True, check=True).stdout
    sizes = {key: value for key, value in SIZES.items() if key != "spark.cores.max"} | yarn.spark_settings()
    settings = [word for key, value in sizes.items() for word in ("--conf", f"{key}={value}")]
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "yarn", "--deploy-mode", "client"]
    places = [str(base / name) for name in ("in", "out", "checkpoint", "stop")]
    return [*command, *shlex.split(words), *settings, str(APP), *places]


def environment(yarn: Yarn) -> dict[str, str]:
    return {
        **os.environ,
        "HADOOP_CONF_DIR": str(yarn.conf),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
    }


def rise_and_fall(feed: Feed, folder: Path) -> tuple[bool, bool]:
    """Whether three executors came with the load, and one remained when it fell."""
    feeding = threading.Thread(target=feed.run, daemon=True)
    until(lambda: executors(folder) == 1, 240)
    feeding.start()
    calm = until(lambda: len(batches(folder, "counts")) >= 3 and executors(folder) == 1, 240)
    feed.per_s = MANY_PER_S
    grown = calm and until(lambda: executors(folder) == 3, 240)
    grown = grown and until(lambda: max(batch["tasks"] for batch in batches(folder, "counts")) >= 2, 120)
    feed.per_s = FEW_PER_S
    shrunk = grown and until(lambda: executors(folder) == 1, 240)
    feed.ended.set()
    feeding.join()
    return grown, shrunk


def test_executors_of_yarn_come_with_the_load_and_go_with_it(story: Story) -> None:
    assert (story.grown, story.shrunk) == (True, True), [line["what"] for line in story.record.fleet]


def test_every_row_counts_once_while_containers_come_and_go(story: Story) -> None:
    assert story.code == 0, story.log[-3000:]
    fed = {key: (story.feed.counts[key], story.feed.sums[key]) for key in story.feed.counts}
    assert story.rows() == fed


def test_tasks_run_in_the_containers_that_came(story: Story) -> None:
    moves = [rescale for decision in story.record.decisions for rescale in decision["rescales"]]
    assert (min(move["want"] for move in moves), max(move["want"] for move in moves)) == (1, 3)
    assert all(decision["reasons"] for decision in story.record.decisions)
