package sluicegate.attach;

import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;

/**
 * Resizes the application's executors to the plan.
 *
 * <p>Scale-out is requested at once. For scale-in, the newest executors first hand over their state, which takes each
 * query one batch, and are then drained; if decommissioning is off they are killed.
 */
final class ExecutorLever {
  private static final long AGAIN_NANOS = 30_000_000_000L;
  private static final long MOST_GIVING_NANOS = 15_000_000_000L;
  private static final long MOST_BUSY_NANOS = 60_000_000_000L;

  private final Attachment attachment;
  private final Set<String> giving = ConcurrentHashMap.newKeySet();
  private final Set<String> drained = ConcurrentHashMap.newKeySet();
  private final Set<String> waitsFor = ConcurrentHashMap.newKeySet();
  private int asked;
  private long askedAt;
  private boolean refused;
  private long givingSince;

  ExecutorLever(Attachment attachment) {
    this.attachment = attachment;
  }

  /** The reason why executors cannot be added or removed, or null. */
  static String refusal(SparkContext context) {
    if (context.isLocal()) {
      return "master " + context.master() + " has no executors that could come and go";
    }
    if (context.conf().getBoolean("spark.dynamicAllocation.enabled", false)) {
      return "spark.dynamicAllocation.enabled is true, so executors stay Spark's; only tasks are moved";
    }
    return SparkInternals.client(context) == null ? "this master cannot add or remove executors" : null;
  }

  boolean leaves(String executor) {
    return giving.contains(executor) || drained.contains(executor);
  }

  void left(String executor) {
    giving.remove(executor);
    drained.remove(executor);
  }

  void batchEnded(String query) {
    waitsFor.remove(query);
  }

  void step(int wanted) throws InterruptedException {
    if (wanted <= 0) {
      giving.clear();
      return;
    }
    List<String> here = attachment.executors().stream().filter(one -> !drained.contains(one)).sorted(NEWEST_LAST).toList();
    long now = System.nanoTime();
    boolean old = now - askedAt > AGAIN_NANOS;
    // a master that was started anew has forgotten the total
    boolean due = (wanted != asked && !refused) || (old && (refused || wanted != here.size()));
    if (wanted >= here.size()) {
      giving.clear();
      if (due) {
        ask(wanted, now);
      }
      return;
    }
    List<String> last = here.subList(wanted, here.size());
    if (giving.retainAll(last) | giving.addAll(last)) {
      givingSince = now;
      waitsFor.clear();
      attachment.queries.all().stream().filter(one -> one.active).forEach(one -> waitsFor.add(one.name));
    }
    if (waitsFor.isEmpty() || now - givingSince > MOST_GIVING_NANOS) {
      if (due) {
        ask(wanted, now);
      }
      if (refused) {
        return; // with the old total the master would replace what is removed
      }
      boolean force = now - givingSince > MOST_BUSY_NANOS;
      for (String one : last) {
        remove(one, force);
      }
    }
  }

  private void ask(int total, long now) throws InterruptedException {
    asked = total;
    askedAt = now;
    String answer = SparkInternals.ask(attachment.context, total);
    refused = answer != null;
    if (refused) {
      String again = "; it is asked again every " + AGAIN_NANOS / 1_000_000_000L + " s";
      attachment.guard.once("request for executors", "the master did not take a request for executors: " + answer + again);
    }
  }

  /** Spark does not kill an executor that runs tasks, unless forced: then it gets no new tasks and is tried again. */
  private void remove(String executor, boolean force) throws InterruptedException {
    boolean drains = attachment.context.conf().getBoolean("spark.decommission.enabled", false);
    if ((drains && SparkInternals.drain(attachment.context, executor))
        || SparkInternals.kill(attachment.context, executor, force)) {
      drained.add(executor);
      giving.remove(executor);
    }
  }

  private static final Comparator<String> NEWEST_LAST =
      Comparator.<String>comparingInt(String::length).thenComparing(Comparator.naturalOrder());
}
