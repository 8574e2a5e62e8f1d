import java.nio.file.{Files, Path}
import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout}

case class Row(k: String, v: Long)
case class Total(k: String, n: Long, total: Long)

/** Counts with typed state by key, and knows nothing of sluicegate: INPUT OUTPUT CHECKPOINT STOP. */
object PlainApp {
  def main(args: Array[String]): Unit = {
    val Array(in, out, checkpoint, stop) = args
    val spark = SparkSession.builder().appName("plain scala app").getOrCreate()
    import spark.implicits._
    val rows = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", "2").json(in)
    val totals = rows
      .as[Row]
      .groupByKey(_.k)
      .mapGroupsWithState(GroupStateTimeout.NoTimeout) { (k: String, found: Iterator[Row], state: GroupState[Total]) =>
        val now = found.foldLeft(state.getOption.getOrElse(Total(k, 0, 0)))((t, row) => Total(k, t.n + 1, t.total + row.v))
        state.update(now)
        now
      }
    val query = totals.writeStream
      .queryName("counts")
      .outputMode("update")
      .option("checkpointLocation", checkpoint)
      .foreachBatch((batch: Dataset[Total], number: Long) => batch.write.mode("overwrite").parquet(s"$out/batch=$number"))
      .start()
    while (!Files.exists(Path.of(stop)) && query.isActive) {
      Thread.sleep(100)
    }
    query.processAllAvailable()
    query.stop()
    spark.stop()
  }
}
