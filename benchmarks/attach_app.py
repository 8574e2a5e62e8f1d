"""An application that knows nothing of sluicegate, for attach_triple_load.py: state, and rows that wait.

spark-submit attach_app.py INPUT OUTPUT CHECKPOINT STOP WAIT_MS
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def main(source: str, sink: str, checkpoint: str, stop: str, wait_ms: str) -> None:
    spark = SparkSession.builder.appName("triple load").getOrCreate()
    rows = spark.readStream.schema("v long, born double").json(source).dropDuplicates(["v"])
    waited = rows.withColumn("waited", F.expr(f"reflect('java.lang.Thread', 'sleep', {wait_ms}L)"))

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{sink}/batch={number}")

    query = waited.writeStream.queryName("rows").option("checkpointLocation", checkpoint).foreachBatch(write).start()
    while query.isActive and not Path(stop).exists():
        time.sleep(0.2)
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
