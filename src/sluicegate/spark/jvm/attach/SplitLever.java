package sluicegate.attach;

import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;

/**
 * Gives stages that read Kafka more tasks than partitions: the connector splits offset ranges itself, as with its
 * option minPartitions. The user's setting is kept and restored. For other sources the plan rule does this.
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
