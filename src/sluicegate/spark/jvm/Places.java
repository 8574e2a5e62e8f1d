package sluicegate;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionCoalescer;
import org.apache.spark.rdd.PartitionGroup;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

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
    int[] taskOf = tasksOf(parts.length, Math.min(most, parts.length));
    String[] places = places(parent, taskOf, Math.min(most, parts.length));
    PartitionGroup[] tasks = new PartitionGroup[places.length];
    for (int task = 0; task < tasks.length; task++) {
      tasks[task] = new PartitionGroup(Option.apply(places[task]));
    }
    for (int part = 0; part < parts.length; part++) {
      tasks[taskOf[part]].partitions().append(parts[part]);
    }
    return tasks;
  }

  private int[] tasksOf(int parts, int tasks) {
    int[] taskOf = new int[parts];
    for (int part = 0; part < parts; part++) {
      boolean chosen = owners.length == parts && owners[part] < tasks;
      taskOf[part] = chosen ? owners[part] : (int) ((long) part * tasks / parts);
    }
    return taskOf;
  }

  /**
   * The preferred place of each task; null where Spark chooses.
   *
   * <p>A task that prefers an executor or host that is gone would wait for spark.locality.wait at every level, at each
   * batch, although nothing can come of it: it gets the live executor with the fewest tasks. Spark's own preference,
   * where the state of a task's first partition was loaded, outlives that executor, and keeps the state of an executor
   * that has left together on one of the others: it is followed as long as every executor gets its share.
   */
  private String[] places(RDD<?> parent, int[] taskOf, int tasks) {
    String[] places = Arrays.copyOf(hosts, tasks);
    List<Seat> live = Seat.live(parent.context());
    if (live.isEmpty()) {
      return places;
    }
    Map<Seat, Integer> given = new HashMap<>();
    int share = (tasks + live.size() - 1) / live.size();
    List<Integer> loose = new ArrayList<>();
    for (int task = 0; task < tasks; task++) {
      boolean planned = task < hosts.length;
      String wanted = planned ? hosts[task] : loadedAt(parent, taskOf, task);
      Seat seat = live.stream().filter(one -> one.is(wanted)).findFirst().orElse(null);
      if (seat == null ? wanted != null : !planned && given.getOrDefault(seat, 0) >= share) {
        loose.add(task);
      } else if (seat != null) {
        given.merge(seat, 1, Integer::sum);
      }
    }
    for (int task : loose) {
      Seat seat = live.stream().min(Comparator.comparing(one -> given.getOrDefault(one, 0))).orElseThrow();
      given.merge(seat, 1, Integer::sum);
      places[task] = seat.place();
    }
    return places;
  }

  /** Where the state of a task's first partition was loaded last, in Spark's location format; null if it was not. */
  private static String loadedAt(RDD<?> parent, int[] taskOf, int task) {
    for (int part = 0; part < taskOf.length; part++) {
      if (taskOf[part] == task) {
        return CollectionConverters.asJava(parent.context().getPreferredLocs(parent, part)).stream()
            .map(Object::toString)
            .findFirst()
            .orElse(null);
      }
    }
    return null;
  }
}
