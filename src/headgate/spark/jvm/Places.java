package headgate;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionCoalescer;
import org.apache.spark.rdd.PartitionGroup;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import scala.Option;

/**
 * A batch in as many tasks as hosts are named, each with the host it prefers.
 *
 * <p>Spark coalesces partitions into tasks by a rule that may be given; the rule may also name a place for each task.
 * This one keeps neighbours together, as Spark's own does.
 */
public final class Places implements PartitionCoalescer, Serializable {
  private static final long serialVersionUID = 1L;

  private final String[] hosts;

  private Places(List<String> hosts) {
    this.hosts = hosts.toArray(new String[0]);
  }

  /** The same rows; tasks go elsewhere when their host has no free slot for spark.locality.wait, or is gone. */
  public static Dataset<Row> on(Dataset<Row> rows, List<String> hosts) {
    var batch = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    var rule = Option.<PartitionCoalescer>apply(new Places(hosts));
    var placed = batch.queryExecution().toRdd().coalesce(hosts.size(), false, rule, null);
    return batch.sparkSession().internalCreateDataFrame(placed, batch.schema(), false);
  }

  @Override
  public PartitionGroup[] coalesce(int most, RDD<?> parent) {
    Partition[] parts = parent.partitions();
    PartitionGroup[] tasks = new PartitionGroup[Math.min(most, parts.length)];
    for (int task = 0; task < tasks.length; task++) {
      tasks[task] = new PartitionGroup(Option.apply(hosts[task]));
    }
    for (int part = 0; part < parts.length; part++) {
      tasks[(int) ((long) part * tasks.length / parts.length)].partitions().append(parts[part]);
    }
    return tasks;
  }
}
