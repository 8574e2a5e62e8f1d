package sluicegate.attach;

import java.io.Closeable;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.metrics.source.Source;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.PostStatusUpdateListener;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.apache.spark.util.TaskInterruptListener;
import scala.Function0;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The context of one partition of a task that computes several: what Spark would free at the end of the partition's own
 * task is freed when its last row has been read.
 *
 * <p>Spark assumes one partition per task: hash tables, queues of rows for Python, readers and sockets are kept until the
 * task ends. With many partitions in a task they would add up until no memory is left. The number of the partition is
 * what it is without us, too.
 */
final class PartitionContext extends TaskContextImpl {
  private static final long serialVersionUID = 1L;

  private final transient TaskContext task;

  private PartitionContext(TaskContext task, int partition, int partitions) {
    super(
        task.stageId(),
        task.stageAttemptNumber(),
        partition,
        task.taskAttemptId(),
        task.attemptNumber(),
        partitions,
        task.taskMemoryManager(),
        task.getLocalProperties(),
        null,
        task.taskMetrics(),
        task.cpuAmount(),
        task.resources());
    this.task = task;
  }

  /** The rows that {@code computed} gives for a partition, within a context of its own. */
  static Iterator<InternalRow> rows(TaskContext task, int partition, int partitions, Computed computed) {
    PartitionContext context = new PartitionContext(task, partition, partitions);
    // for a partition that fails, or is not read to its end
    task.addTaskFailureListener((TaskFailureListener) (failed, problem) -> context.failed(problem));
    task.addTaskCompletionListener((TaskCompletionListener) ended -> context.markTaskCompleted(ended.getTaskFailure()));
    return context.new Rows(computed);
  }

  /** Throws where this version of Spark has other classes: better when attaching than in a task. */
  static void tryOut() {
    rows(TaskContext$.MODULE$.empty(), 0, 1, context -> (Iterator<InternalRow>) Iterator.<InternalRow>empty()).hasNext();
  }

  @FunctionalInterface
  interface Computed {
    Iterator<InternalRow> in(TaskContext context);
  }

  private void failed(Throwable problem) {
    if (!isCompleted()) {
      markTaskFailed(problem);
    }
  }

  /** Only while rows are computed is the context of the partition that of the thread: whoever reads them has the task's. */
  private final class Rows extends AbstractIterator<InternalRow> {
    private Iterator<InternalRow> rows;

    Rows(Computed computed) {
      TaskContext before = enter();
      try {
        rows = computed.in(PartitionContext.this);
      } finally {
        leave(before);
      }
    }

    @Override
    public boolean hasNext() {
      if (rows == null) {
        return false;
      }
      TaskContext before = enter();
      try {
        if (rows.hasNext()) {
          return true;
        }
        rows = null;
        markTaskCompleted(Option.empty());
        return false;
      } finally {
        leave(before);
      }
    }

    @Override
    public InternalRow next() {
      TaskContext before = enter();
      try {
        return rows.next();
      } finally {
        leave(before);
      }
    }

    private TaskContext enter() {
      TaskContext before = TaskContext.get();
      TaskContext$.MODULE$.setTaskContext(PartitionContext.this);
      return before;
    }

    private void leave(TaskContext before) {
      TaskContext$.MODULE$.setTaskContext(before);
    }
  }

  // ---- what is the task's, whichever partition it computes

  @Override
  public boolean isInterrupted() {
    return task.isInterrupted();
  }

  @Override
  public Option<String> getKillReason() {
    return task.getKillReason();
  }

  @Override
  public void killTaskIfInterrupted() {
    task.killTaskIfInterrupted();
  }

  @Override
  public void markInterrupted(String reason) {
    task.markInterrupted(reason);
  }

  @Override
  public TaskContextImpl addTaskInterruptListener(TaskInterruptListener listener) {
    task.addTaskInterruptListener(listener);
    return this;
  }

  @Override
  public TaskContextImpl addPostStatusUpdateListener(PostStatusUpdateListener listener) {
    task.addPostStatusUpdateListener(listener);
    return this;
  }

  @Override
  public boolean interruptible() {
    return task.interruptible();
  }

  @Override
  public void pendingInterrupt(Option<Thread> thread, String reason) {
    task.pendingInterrupt(thread, reason);
  }

  @Override
  public <T extends Closeable> T createResourceUninterruptibly(Function0<T> made) {
    return task.createResourceUninterruptibly(made);
  }

  @Override
  public void setFetchFailed(FetchFailedException problem) {
    task.setFetchFailed(problem);
  }

  @Override
  public Option<FetchFailedException> fetchFailed() {
    return task.fetchFailed();
  }

  @Override
  public Seq<Source> getMetricsSources(String name) {
    return task.getMetricsSources(name);
  }
}
