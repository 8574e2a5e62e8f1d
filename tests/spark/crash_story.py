"""A driver that is killed: feeds word count to the end, moving k all the while; started again it goes on.

Beside the count, lines are copied by a sink that keeps nothing: it only writes, to FOLDER-copied/NUMBER.

    python crash_story.py FOLDER ROWS SEED

It says ``running`` when rows flow, and at the end gives the checked answer as one line of JSON.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import DataFrame

from sluicegate.lab.apps import wordcount
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

ROWS_A_TABLE = 50


def move_k(running: Running, rng: random.Random, ended: threading.Event) -> None:
    while not ended.wait(rng.uniform(0.05, 0.4)):
        running.set_processors({"split+count": rng.randint(1, 4)})


def copying(folder: Path) -> Pipeline:
    """Word count, and a copy of its lines that is only written."""

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{folder}-copied/{number}")

    pipeline = wordcount.build()
    copied = pipeline.operator("copy", lambda lines: lines, Stream(("lines",)), fuse=False)
    pipeline.sink("copied", copied, write=write, keep=False)
    return pipeline


def main(folder: Path, rows: int, seed: int) -> None:
    spark = spark_session("local[4]", {"spark.driver.memory": "1g"})
    rng, ended = random.Random(seed), threading.Event()
    with start(copying(folder), spark, folder) as running:
        mover = threading.Thread(target=move_k, args=(running, rng, ended), daemon=True)
        mover.start()
        feed = running.feed("lines")
        sys.stdout.write("running\n")
        sys.stdout.flush()
        while feed.rows < rows:
            feed.append(wordcount.rows("lines", feed.rows, min(ROWS_A_TABLE, rows - feed.rows)))
            ended.wait(0.1)
        running.drain()
        copied = FolderEdge(running.layout.edge("copy"))
        wait_until(lambda: copied.numbers()[0] > 0, 60.0, 0.1)  # what was written is deleted every few seconds
        ended.set()
        mover.join()
        answer = wordcount.check({"lines": feed.rows}, {"counts": running.read("count")})
    sys.stdout.write(json.dumps({**asdict(answer), "restarts": running.restarts}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
