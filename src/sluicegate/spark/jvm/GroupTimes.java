package sluicegate;

import java.util.Iterator;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.LongAccumulator;

/** Accumulates the time of each partition of an operator, from its first row to its last, over all batches. */
public final class GroupTimes {
  private final LongAccumulator[] nanos;

  public GroupTimes(SparkSession spark, int groups) {
    nanos = new LongAccumulator[groups];
    for (int group = 0; group < groups; group++) {
      nanos[group] = spark.sparkContext().longAccumulator();
    }
  }

  public long[] told() {
    long[] values = new long[nanos.length];
    for (int group = 0; group < values.length; group++) {
      values[group] = nanos[group].value();
    }
    return values;
  }

  RDD<InternalRow> noted(RDD<InternalRow> rows) {
    LongAccumulator[] into = nanos; // only the accumulators are serialised to the executors, not this object
    return rows.toJavaRDD()
        .mapPartitionsWithIndex(
            (group, all) -> group < into.length ? new Noted(all, into[group]) : all, true)
        .rdd();
  }

  private static final class Noted implements Iterator<InternalRow> {
    private final Iterator<InternalRow> all;
    private final LongAccumulator into;
    private final long began = System.nanoTime();
    private boolean ended;

    Noted(Iterator<InternalRow> all, LongAccumulator into) {
      this.all = all;
      this.into = into;
    }

    @Override
    public boolean hasNext() {
      boolean more = all.hasNext();
      if (!more && !ended) {
        ended = true;
        into.add(System.nanoTime() - began);
      }
      return more;
    }

    @Override
    public InternalRow next() {
      return all.next();
    }
  }
}
