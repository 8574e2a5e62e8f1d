"""A plain PySpark application whose query is attached by Spark settings alone, or not attached at all.

    python -m sluicegate.lab.chaos.attached_app BASE KIND MASTER RECORD [BROKER TOPIC]

It prints ``running`` once the query has started. A line on standard input makes it process all available input and end.
RECORD is the folder of sluicegate's record; if it is empty the application runs without sluicegate. Rows are read from
files below BASE, or from TOPIC.
"""

from __future__ import annotations

import select
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluicegate.lab.chaos.queries import SCHEMA, kind_named
from sluicegate.spark.attach.options import Options, spark_settings
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.kafka.connector import connector_jars

_PLAIN = {
    "spark.driver.memory": "600m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "30d",  # or Spark fails when its clock jumps forward
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def main(base: Path, kind: str, master: str, record: str, broker: str = "", topic: str = "") -> int:
    settings = {**_PLAIN, **(spark_settings(Options(("p95=5s",), folder=record)) if record else {})}
    if broker:
        known = [settings["spark.jars"]] if "spark.jars" in settings else []
        settings["spark.jars"] = ",".join([*known, *map(str, connector_jars())])
    builder = SparkSession.builder.master(master).appName("attached")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    asked = kind_named(kind)
    rows = _from_topic(spark, broker, topic) if broker else spark.readStream.schema(SCHEMA).json(str(base / "in"))

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(base / "out" / f"batch={number}"))

    query = (
        asked.build(rows)
        .writeStream.queryName(kind)
        .outputMode(asked.mode)
        .option("checkpointLocation", str(base / "checkpoint"))
        .foreachBatch(write)
        .start()
    )
    sys.stdout.write("running\n")
    sys.stdout.flush()
    while query.isActive and not select.select([sys.stdin], [], [], 0.5)[0]:
        pass
    if not query.isActive:
        sys.stderr.write(f"sluicegate: the user's query ended: {query.exception()}\n")
        return 1
    query.processAllAvailable()
    query.stop()
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    spark.stop()
    return 0


def _from_topic(spark: SparkSession, broker: str, topic: str) -> DataFrame:
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    records = kafka.option("startingOffsets", "earliest").load()
    return records.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:7]))
