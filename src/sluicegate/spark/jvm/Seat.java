package sluicegate;

import java.util.List;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import scala.jdk.javaapi.CollectionConverters;

/** An executor that takes tasks. */
record Seat(String host, String id) {
  /** Those of an application; none in local mode, where the driver runs all tasks. */
  static List<Seat> live(SparkContext context) {
    if (!(context.schedulerBackend() instanceof CoarseGrainedSchedulerBackend backend)) {
      return List.of();
    }
    // the status is some events behind; the backend knows at once who has left or is draining
    Set<String> registered = Set.copyOf(CollectionConverters.asJava(backend.getExecutorIds()));
    return CollectionConverters.asJava(context.statusStore().executorList(true)).stream()
        .filter(one -> registered.contains(one.id()) && backend.isExecutorActive(one.id()))
        .map(one -> new Seat(one.hostPort().replaceAll(":\\d+$", ""), one.id()))
        .toList();
  }

  /** In Spark's format of a preferred location. */
  String place() {
    return "executor_" + host + "_" + id;
  }

  /** Whether a preferred location, a host or an executor, is this one. */
  boolean is(String preferred) {
    return host.equals(preferred) || place().equals(preferred);
  }
}
