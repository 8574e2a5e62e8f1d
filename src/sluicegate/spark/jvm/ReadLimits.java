package sluicegate;

import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReadMinRows;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSource;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Limits what the next batch of a running query reads: a number of rows or files, nothing before some time, or nothing.
 *
 * <p>For every batch Spark asks the sources in {@code StreamExecution.uniqueSources}, each with a limit; that map can
 * be replaced between two batches. While it is empty no source is asked and no batch starts, whatever the kind of
 * source: this is how a query is held and paced. Rows are limited for sources that support {@link ReadMaxRows} (Kafka),
 * files for file sources; other sources keep the limits they were given. None of this reaches the checkpoint.
 */
public final class ReadLimits {
  private static final String KAFKA = "org.apache.spark.sql.kafka010.";
  private static final String ASKING = "Getting offsets from";
  private static final Map<StreamExecution, ReadLimits> KNOWN = Collections.synchronizedMap(new WeakHashMap<>());
  private static final ScheduledThreadPoolExecutor LATER = new ScheduledThreadPoolExecutor(1, ReadLimits::thread);

  private final WeakReference<StreamExecution> query;
  private Map<SparkDataStream, ReadLimit> asGiven = Map.of();
  private long mostRows = Long.MAX_VALUE;
  private int mostFiles = Integer.MAX_VALUE;
  private long closedUntilNs = System.nanoTime();
  private boolean held;

  private ReadLimits(StreamExecution query) {
    this.query = new WeakReference<>(query);
  }

  /** Limits the rows per batch from each source that can be limited; a lower limit of the user stays in force. */
  public static void mostRows(StreamExecution query, long rows) {
    of(query).change(limits -> limits.mostRows = Math.max(rows, 1));
  }

  /** Limits rows per batch from Kafka and files from file sources; the maximum values restore the given limits. */
  public static void most(StreamExecution query, long rows, int files) {
    of(query).change(limits -> {
      limits.mostRows = Math.max(rows, 1);
      limits.mostFiles = Math.max(files, 1);
    });
  }

  /** Starts no batch for the next {@code ms} milliseconds; 0 ends a pause. Call it in a batch to pace the next. */
  public static void pause(StreamExecution query, long ms) {
    ReadLimits limits = of(query);
    limits.change(l -> l.closedUntilNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms));
    if (ms > 0) {
      LATER.schedule(limits::apply, ms, TimeUnit.MILLISECONDS);
    }
  }

  /**
   * Starts no batch until {@link #release}. Waits until the query is not polling its sources, and returns whether that
   * was reached: a poll that began before may still start one batch.
   */
  public static boolean hold(StreamExecution query, long waitMs) throws InterruptedException {
    of(query).change(limits -> limits.held = true);
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
    do {
      Thread.sleep(5);
      if (!query.isActive() || !query.status().message().startsWith(ASKING)) {
        return true;
      }
    } while (System.nanoTime() < until);
    return false;
  }

  /** Undoes {@link #hold}. */
  public static void release(StreamExecution query) {
    of(query).change(limits -> limits.held = false);
  }

  private static ReadLimits of(StreamExecution query) {
    return KNOWN.computeIfAbsent(query, ReadLimits::new);
  }

  private synchronized void change(Consumer<ReadLimits> how) {
    how.accept(this);
    apply();
  }

  /** Applies the limits; retried every millisecond until the sources are known, shortly after the query's start. */
  private synchronized void apply() {
    StreamExecution running = query.get();
    if (running == null || !running.isActive()) {
      return;
    }
    if (asGiven.isEmpty()) {
      asGiven = new LinkedHashMap<>(CollectionConverters.asJava(running.uniqueSources()));
      if (asGiven.isEmpty()) {
        LATER.schedule(this::apply, 1, TimeUnit.MILLISECONDS);
        return;
      }
    }
    Map<SparkDataStream, ReadLimit> now = new LinkedHashMap<>();
    if (!held && System.nanoTime() - closedUntilNs >= 0) {
      asGiven.forEach((source, limit) -> now.put(source, limited(source, limit)));
    }
    running.uniqueSources_$eq(scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(now)));
  }

  private ReadLimit limited(SparkDataStream source, ReadLimit given) {
    if (source instanceof FileStreamSource && mostFiles < Integer.MAX_VALUE) {
      if (given instanceof ReadMaxFiles files) {
        return ReadLimit.maxFiles(Math.min(files.maxFiles(), mostFiles));
      }
      return given instanceof ReadAllAvailable ? ReadLimit.maxFiles(mostFiles) : given;
    }
    if (!source.getClass().getName().startsWith(KAFKA) || mostRows == Long.MAX_VALUE) {
      return given;
    }
    if (given instanceof ReadMaxRows rows) {
      return ReadLimit.maxRows(Math.min(rows.maxRows(), mostRows));
    }
    if (given instanceof CompositeReadLimit several) {
      ReadLimit[] parts = several.getReadLimits().clone();
      for (int i = 0; i < parts.length; i++) {
        parts[i] = parts[i] instanceof ReadMaxRows rows ? limited(source, rows) : parts[i];
      }
      return ReadLimit.compositeLimit(parts);
    }
    if (given instanceof ReadMinRows) {
      return ReadLimit.compositeLimit(new ReadLimit[] {given, ReadLimit.maxRows(mostRows)});
    }
    return ReadLimit.maxRows(mostRows);
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "sluicegate-read-limits");
    thread.setDaemon(true);
    return thread;
  }
}
