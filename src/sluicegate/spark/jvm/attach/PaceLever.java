package sluicegate.attach;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import sluicegate.ReadLimits;

/**
 * Brings the trigger interval and the read limits of running queries to the plan; only with spark.sluicegate.pace=true.
 *
 * <p>They are the user's: what was found is kept, and given back when the plan says nothing of a query, when we detach, and
 * when the lever is given up. A limit of the user's own that is lower stays in force.
 */
final class PaceLever {
  private final Attachment attachment;
  private final Map<StreamExecution, Long> given = new HashMap<>();
  private final Map<StreamExecution, WantedPlan.Pace> inForce = new HashMap<>();

  PaceLever(Attachment attachment) {
    this.attachment = attachment;
  }

  /** Only queries that start batches at an interval, back to back among them; others were given an order to end by. */
  synchronized void step(WantedPlan plan) throws Exception {
    given.keySet().removeIf(one -> !one.isActive());
    inForce.keySet().removeIf(one -> !one.isActive());
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

  /** All as their users had them. */
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
