"""A client of a Spark Connect server that knows nothing of sluicegate, in SQL but for the writer: as ``PlainApp``.

python connect_client.py URL INPUT OUTPUT CHECKPOINT STOP
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def main(url: str, source: str, sink: str, checkpoint: str, stop: str) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    rows = spark.readStream.schema("k string, v long, at timestamp").option("maxFilesPerTrigger", "2").json(source)
    rows.withWatermark("at", "1 second").createOrReplaceTempView("clicks")
    counts = spark.sql(
        "SELECT k, window.start AS since, count(*) AS n, sum(v) AS total FROM clicks "
        "GROUP BY k, window(at, '5 seconds')"
    )
    writer = counts.writeStream.queryName("counts").outputMode("append").format("parquet").option("path", sink)
    query = writer.option("checkpointLocation", checkpoint).start()
    while query.isActive and not Path(stop).exists():
        time.sleep(0.2)
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
