"""The driver that losses.py kills: a count by key, under sluicegate or as a plain query, until its input is closed.

python losses_driver.py plain|sluicegate HOME CLUSTER_FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

KEY_GROUPS = 4
SIZES = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "768m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").count()


def main() -> None:
    arm, home, cluster = sys.argv[1], Path(sys.argv[2]), Cluster(Path(sys.argv[3]))
    status = cluster.status()
    assert status is not None
    spark = spark_session(status.url, {**SIZES, **cluster.settings()}, f"losses {arm}")
    (as_plain if arm == "plain" else under_sluicegate)(spark, home)
    spark.stop()


def under_sluicegate(spark: SparkSession, home: Path) -> None:
    made = Pipeline("losses")
    rows = made.source("rows", "key long")
    made.sink("counts", made.operator("count", counted, rows, stateful=True, key_groups=KEY_GROUPS))
    with start(made, spark, home / "run", {"count": 2}):
        until_told()


def as_plain(spark: SparkSession, home: Path) -> None:
    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(home / "out" / str(number)))

    spark.conf.set("spark.sql.shuffle.partitions", str(KEY_GROUPS))
    query = (
        counted(spark.readStream.schema("key long").parquet(str(home / "in")))
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(home / "checkpoint"))
        .foreachBatch(write)
        .start()
    )
    until_told()
    query.stop()


def until_told() -> None:
    print("running", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
