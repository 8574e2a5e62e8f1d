package sluicegate;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;

/**
 * Holds a query between two batches, so that it can be stopped there.
 *
 * <p>A real-time batch begins as soon as the previous one is committed and writes its rows while it runs: stopped
 * elsewhere, it would write them again. Spark takes a fair lock to end a batch and again to begin the next. Our thread
 * holds it and checks, when Spark queues for it, which of the two is due. At the end of a batch it queues a second
 * holder behind Spark and then releases: Spark commits, and is blocked by that holder before it begins the next batch.
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

  /** Blocks the start of the next batch, once the running one has ended, until {@link #release}. */
  public static BatchBoundary hold(StreamExecution query) {
    BatchBoundary boundary = new BatchBoundary(query);
    boundary.holder().start();
    return boundary;
  }

  /** Waits until the query is between two batches; returns whether it is. */
  public boolean reached(long waitMs) throws InterruptedException {
    return reached.await(waitMs, TimeUnit.MILLISECONDS);
  }

  /** Lets batches begin again, unless the query was stopped meanwhile. */
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
        return; // the batch ends now, and the next holder gets the lock before Spark asks again
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
