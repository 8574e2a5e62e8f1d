package sluicegate.attach;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * The same partitions, each as if it were alone in its task: in a context of its own, with no state store left over.
 *
 * <p>Spark passes a store from the operator that reads it to the one that writes it in a thread-local, assuming one
 * partition per task: in a task with two partitions the second would write to the store of the first.
 */
final class OneByOne extends RDD<InternalRow> {
  private static final long serialVersionUID = 1L;
  private static final ClassTag<InternalRow> ROW = ClassTag$.MODULE$.apply(InternalRow.class);

  private final int count;

  OneByOne(RDD<InternalRow> of) {
    super(of, ROW);
    count = of.getNumPartitions();
  }

  @Override
  public Partition[] getPartitions() {
    return firstParent(ROW).partitions();
  }

  @Override
  public Iterator<InternalRow> compute(Partition partition, TaskContext task) {
    SparkInternals.forgetStore();
    RDD<InternalRow> rows = firstParent(ROW);
    return PartitionContext.rows(task, partition.index(), count, context -> rows.iterator(partition, context));
  }
}
