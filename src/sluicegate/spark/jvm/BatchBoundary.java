package sluicegate;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;

/**
 * Keeps a query between two batches, so that it can be stopped there.
 *
 * <p>A real-time batch begins as soon as the one before it is committed and writes its rows while it runs: one that is
 * stopped anywhere else would write them again. Spark takes a lock, which is fair, to end a batch and to begin the next.
 * Whoever holds it when Spark asks for it sees which of the two it is. At the end of a batch it is handed on to one of
 * ours that queued behind Spark: so Spark commits, and finds the lock taken when it wants to begin the next batch.
 */
public final class BatchBoundary {
  private static final String BEGINS = "constructNextBatch";

  private final StreamExecution query;
  private final ReentrantLock lock;
  private final CountDownLatch reached = new CountDownLatch(1);
  private final CountDownLatch released = new CountDownLatch(1);

  private BatchBoundary(StreamExecution query) {
    this.query = query;
    this.lock = (ReentrantLock) query.awaitProgressLock();
  }

  /** No batch begins once the one that runs has ended, until {@link #release}. */
  public static BatchBoundary hold(StreamExecution query) {
    BatchBoundary boundary = new BatchBoundary(query);
    boundary.holder().start();
    return boundary;
  }

  /** Waits until the query stands between two batches; whether it does. */
  public boolean reached(long waitMs) throws InterruptedException {
    return reached.await(waitMs, TimeUnit.MILLISECONDS);
  }

  /** Batches begin again, unless the query was stopped meanwhile. */
  public void release() {
    released.countDown();
  }

  private Thread holder() {
    Thread thread = new Thread(this::waitForTheNext, "sluicegate-batch-boundary");
    thread.setDaemon(true);
    return thread;
  }

  private void waitForTheNext() {
    lock.lock();
    try {
      Thread stream = query.queryExecutionThread();
      while (query.isActive() && !released.await(1, TimeUnit.MILLISECONDS)) {
        if (!lock.hasQueuedThread(stream)) {
          continue;
        }
        if (begins(stream)) {
          reached.countDown();
          released.await();
          return;
        }
        Thread next = holder();
        next.start();
        while (!lock.hasQueuedThread(next)) {
          Thread.sleep(1);
        }
        return; // the batch ends now, and the next holder is before Spark again
      }
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    } finally {
      lock.unlock();
    }
  }

  private static boolean begins(Thread stream) {
    return Arrays.stream(stream.getStackTrace()).anyMatch(frame -> frame.getMethodName().contains(BEGINS));
  }
}
