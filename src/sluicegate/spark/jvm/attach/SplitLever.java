package sluicegate.attach;

import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;

/**
 * More tasks than partitions for the stages that read Kafka: the connector cuts ranges of offsets itself, as its option
 * minPartitions has it; what it was told by the user is kept and given back. Other sources are dealt with by the plan rule.
 */
final class SplitLever {
  private final Attachment attachment;
  private final Map<SparkDataStream, Object> given = new WeakHashMap<>();
  private final Map<SparkDataStream, Integer> inForce = new WeakHashMap<>();

  SplitLever(Attachment attachment) {
    this.attachment = attachment;
  }

  synchronized void step(WantedPlan plan) throws Exception {
    for (Queries.Query query : attachment.queries.all()) {
      WantedPlan.Query wanted = plan.queries().get(query.name);
      int tasks = wanted == null ? 0 : wanted.spread();
      if (query.active && (tasks > 0 || !given.isEmpty())) {
        for (SparkDataStream source : attachment.sourcesOf(query.run)) {
          if (SparkInternals.isKafka(source)) {
            split(source, tasks);
          }
        }
      }
    }
  }

  synchronized void giveBackAll() throws Exception {
    for (SparkDataStream source : new HashMap<>(given).keySet()) {
      split(source, 0);
    }
  }

  private void split(SparkDataStream source, int tasks) throws Exception {
    if (inForce.getOrDefault(source, 0) == tasks) {
      return;
    }
    Object before = SparkInternals.ranges(source, tasks, given.get(source));
    given.putIfAbsent(source, before);
    inForce.put(source, tasks);
    if (tasks == 0) {
      given.remove(source);
      inForce.remove(source);
    }
  }
}
