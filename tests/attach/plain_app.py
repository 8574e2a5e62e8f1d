"""An application that knows nothing of sluicegate: counts by key with state, a few milliseconds of waiting a row.

    spark-submit plain_app.py INPUT OUTPUT CHECKPOINT STOP

It runs until the file STOP is there and all input is taken. Each batch replaces what an earlier try of it wrote.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

WAIT_S = 0.005
SCHEMA = "k string, v long"


def counted(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    count, total = state.get if state.exists else (0, 0)
    for frame in frames:
        time.sleep(WAIT_S * len(frame))
        count, total = count + len(frame), total + int(frame["v"].sum())
    state.update((count, total))
    yield pd.DataFrame({"k": [key[0]], "n": [count], "total": [total]})


def main(source: str, sink: str, checkpoint: str, stop: str) -> None:
    spark = SparkSession.builder.appName("plain app").getOrCreate()
    files = spark.conf.get("spark.plain.files", "1000")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", str(files)).json(source)
    states = rows.groupBy("k").applyInPandasWithState(
        counted, "k string, n long, total long", "n long, total long", "update", GroupStateTimeout.NoTimeout
    )

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{sink}/batch={number}")

    query = (
        states.writeStream.queryName("counts")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(write)
        .start()
    )
    while query.isActive and not Path(stop).exists():
        time.sleep(0.2)
    if query.isActive:
        query.processAllAvailable()
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
