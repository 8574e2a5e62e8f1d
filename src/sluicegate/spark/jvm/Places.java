package sluicegate;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionCoalescer;
import org.apache.spark.rdd.PartitionGroup;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.Option;

/**
 * Cuts a batch into a number of tasks: which partitions each takes, and its preferred host.
 *
 * <p>Spark accepts a custom coalescer, which may also name a preferred location for each task.
 */
public final class Places implements PartitionCoalescer, Serializable {
  private static final long serialVersionUID = 1L;

  private final String[] hosts;
  private final int[] owners;

  private Places(List<String> hosts, List<Integer> owners) {
    this.hosts = hosts.toArray(new String[0]);
    this.owners = owners.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * The same rows in {@code tasks} tasks.
   *
   * @param hosts one for each task, or empty: a task runs elsewhere if its host is gone, or has no free slot for
   *     spark.locality.wait
   * @param owners the task of each partition; if they do not match the batch, neighbouring partitions share a task, as
   *     in Spark's own rule
   * @param times accumulators for the time of each partition, or null
   */
  public static Dataset<Row> on(
      Dataset<Row> rows, int tasks, List<String> hosts, List<Integer> owners, GroupTimes times) {
    var batch = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    RDD<InternalRow> found = batch.queryExecution().toRdd();
    RDD<InternalRow> noted = times == null ? found : times.noted(found);
    var rule = Option.<PartitionCoalescer>apply(new Places(hosts, owners));
    return batch.sparkSession().internalCreateDataFrame(noted.coalesce(tasks, false, rule, null), batch.schema(), false);
  }

  @Override
  public PartitionGroup[] coalesce(int most, RDD<?> parent) {
    Partition[] parts = parent.partitions();
    PartitionGroup[] tasks = new PartitionGroup[Math.min(most, parts.length)];
    for (int task = 0; task < tasks.length; task++) {
      tasks[task] = new PartitionGroup(task < hosts.length ? Option.apply(hosts[task]) : Option.empty());
    }
    for (int part = 0; part < parts.length; part++) {
      boolean chosen = owners.length == parts.length && owners[part] < tasks.length;
      int task = chosen ? owners[part] : (int) ((long) part * tasks.length / parts.length);
      tasks[task].partitions().append(parts[part]);
    }
    return tasks;
  }
}
