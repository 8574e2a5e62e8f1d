package sluicegate.attach;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * Inserts a coalescing node on top of whole stages of a streaming query, at every batch.
 *
 * <p>Never inside a stage, so that the partitioning that stateful operators see is unchanged. The top of a stage is
 * just below an exchange, or at the root just below the node that writes.
 */
public final class PlanRule extends Rule<SparkPlan> {
  private final SparkSession session;

  PlanRule(SparkSession session) {
    this.session = session;
  }

  @Override
  public String ruleName() {
    return "sluicegate.attach.PlanRule";
  }

  @Override
  public SparkPlan apply(SparkPlan plan) {
    settleInterval();
    Attachment attachment = Attachment.current();
    if (attachment == null) {
      return plan;
    }
    attachment.seen(session);
    if (!attachment.moves(Guard.Lever.TASKS)) {
      return plan;
    }
    long began = System.nanoTime();
    String name = null;
    try {
      name = queryOf(attachment);
      if (name == null) {
        return plan;
      }
      attachment.guard.fault("rule");
      return moved(plan, attachment, name);
    } catch (Throwable problem) {
      Guard.passOn(problem);
      attachment.guard.giveUp(Guard.Lever.TASKS, name, problem.toString());
      return plan;
    } finally {
      attachment.guard.timed(Guard.Lever.TASKS, began, attachment.queries.lastSeconds(name));
    }
  }

  /** Also needed after a detach: a restored interval of 0 may still have to be set on the query's own thread. */
  private void settleInterval() {
    try {
      SparkInternals.settleInterval(SparkInternals.context(session).getLocalProperty(SparkInternals.QUERY_ID));
    } catch (Throwable problem) {
      Guard.say("a trigger interval stays at a millisecond: " + problem);
    }
  }

  /** The name of the streaming query that is being planned; null if it is another's, or nothing is planned for any. */
  private String queryOf(Attachment attachment) {
    var context = SparkInternals.context(session);
    String id = context.getLocalProperty(SparkInternals.QUERY_ID);
    boolean none = id == null || attachment.plan().queries().isEmpty() || context != attachment.context;
    return none ? null : attachment.nameOf(id, session);
  }

  private SparkPlan moved(SparkPlan plan, Attachment attachment, String name) {
    Queries.Query query = attachment.queries.byName(name);
    if (query == null || !attachment.moves(Guard.Lever.TASKS, name) || !SparkInternals.movable(plan)) {
      return plan;
    }
    WantedPlan.Query wanted = attachment.plan().queries().getOrDefault(name, WantedPlan.Query.AS_IT_IS);
    String batch = SparkInternals.context(session).getLocalProperty(SparkInternals.BATCH_ID);
    return new Walk(query, wanted, batch == null ? -1 : Long.parseLong(batch)).over(plan);
  }

  /** Walks one plan from its leaves to its root; stages are numbered in that order. */
  private static final class Walk {
    private static final String FOREACH = "it writes to foreach, whose writer is told the partition and the batch of its rows";

    private final Queries.Query query;
    private final WantedPlan.Query wanted;
    private final long batch;
    private int stage;
    private boolean spreads;

    Walk(Queries.Query query, WantedPlan.Query wanted, long batch) {
      this.query = query;
      this.wanted = wanted;
      this.batch = batch;
    }

    SparkPlan over(SparkPlan plan) {
      spreads = wanted.spread() > 0 && !SparkInternals.namesFiles(plan);
      // with adaptive execution each stage is planned alone, after the whole plan: only that one has the writer
      if (SparkInternals.namesPartitions(plan)) {
        query.foreachBatch = batch;
      }
      SparkPlan below = inner(plan);
      // and the root of a stage is the exchange that inner() has handled
      SparkPlan found = SparkInternals.isExchange(plan) ? below : root(below);
      query.left = query.foreachBatch == batch && query.movableBatch != batch ? FOREACH : null;
      return found;
    }

    private SparkPlan inner(SparkPlan plan) {
      if (SparkInternals.isBroadcast(plan)) {
        return plan;
      }
      if (spreads && SparkInternals.spreadable(plan)) {
        return SparkInternals.dealtOut(plan, wanted.spread());
      }
      SparkPlan below = SparkInternals.withChildren(plan, this::inner);
      boolean ends = SparkInternals.isShuffle(below) && SparkInternals.streams(below.children().head());
      return ends ? SparkInternals.withChildren(below, this::top) : below;
    }

    private SparkPlan root(SparkPlan plan) {
      if (query.foreachBatch == batch) {
        return plan;
      }
      if (SparkInternals.isWrite(plan)) {
        return SparkInternals.withChildren(plan, this::root);
      }
      if (SparkInternals.isGlobalSort(plan) || SparkInternals.isUnknownRoot(plan)) {
        return plan;
      }
      // sorted partitions stay sorted only if they are coalesced below the sort
      if (SparkInternals.isSort(plan)) {
        return SparkInternals.withChildren(plan, this::top);
      }
      return SparkInternals.keepsASort(plan) ? SparkInternals.withChildren(plan, this::root) : top(plan);
    }

    private SparkPlan top(SparkPlan plan) {
      String kind = SparkInternals.kind(plan);
      int tasks = wanted.tasksOf(kind, stage++, batch);
      if (!kind.equals(SparkInternals.SCAN)) {
        query.movableBatch = batch;
      }
      boolean there = plan instanceof FewerTasks;
      return tasks <= 0 || there ? plan : new FewerTasks(query.name, tasks, kind.equals(SparkInternals.STATE), plan);
    }
  }
}
