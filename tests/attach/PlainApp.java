import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;

/** Counts by key with state, and knows nothing of sluicegate: INPUT OUTPUT CHECKPOINT STOP. */
public final class PlainApp {
  public static void main(String[] args) throws Exception {
    SparkSession spark = SparkSession.builder().appName("plain java app").getOrCreate();
    Dataset<Row> rows = spark.readStream().schema("k string, v long").option("maxFilesPerTrigger", "2").json(args[0]);
    VoidFunction2<Dataset<Row>, Long> write =
        (batch, number) -> batch.write().mode("overwrite").parquet(args[1] + "/batch=" + number);
    StreamingQuery query =
        rows.groupBy("k")
            .agg(count(lit(1)).alias("n"), sum("v").alias("total"))
            .writeStream()
            .queryName("counts")
            .outputMode("update")
            .option("checkpointLocation", args[2])
            .foreachBatch(write)
            .start();
    while (query.isActive() && !Files.exists(Path.of(args[3]))) {
      Thread.sleep(200);
    }
    query.processAllAvailable();
    query.stop();
    spark.stop();
  }
}
