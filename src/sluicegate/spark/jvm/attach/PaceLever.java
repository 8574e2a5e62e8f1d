package sluicegate.attach;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import sluicegate.ReadLimits;

/**
 * Sets trigger interval and read limits of running queries to the plan; only with spark.sluicegate.pace=true.
 *
 * <p>The user's original values are kept, and restored when the plan no longer covers a query, on detach, and when the
 * lever is disabled. A lower limit of the user stays in force.
 */
final class PaceLever {
  private final Attachment attachment;
  private final Map<StreamExecution, Long> given = new HashMap<>();
  private final Map<StreamExecution, WantedPlan.Pace> inForce = new HashMap<>();

  PaceLever(Attachment attachment) {
    this.attachment = attachment;
  }

  /** Applies the plan to queries with a processing-time trigger, interval 0 included; others are left alone. */
  synchronized void step(WantedPlan plan) throws Exception {
    given.keySet().removeIf(one -> !one.isActive());
    inForce.keySet().removeIf(one -> !one.isActive());
    SparkInternals.forgetEnded();
    for (Queries.Query query : attachment.queries.all()) {
      StreamExecution running = query.active ? attachment.running(query.run) : null;
      if (running == null || SparkInternals.intervalMs(running) == null) {
        continue;
      }
      WantedPlan.Query wanted = plan.queries().get(query.name);
      if (wanted == null || wanted.pace() == null) {
        giveBack(running);
      } else if (!wanted.pace().equals(inForce.get(running))) {
        given.putIfAbsent(running, SparkInternals.intervalMs(running));
        SparkInternals.intervalMs(running, wanted.pace().everyMs());
        ReadLimits.most(running, wanted.pace().mostRows(), wanted.pace().mostFiles());
        inForce.put(running, wanted.pace());
      }
    }
  }

  /** Restores the user's values of all queries. */
  synchronized void giveBackAll() throws Exception {
    for (StreamExecution running : Map.copyOf(given).keySet()) {
      giveBack(running);
    }
  }

  private void giveBack(StreamExecution running) throws Exception {
    Long theirs = given.remove(running);
    inForce.remove(running);
    if (theirs != null && running.isActive()) {
      SparkInternals.intervalMs(running, theirs);
      ReadLimits.most(running, Long.MAX_VALUE, Integer.MAX_VALUE);
    }
  }
}
