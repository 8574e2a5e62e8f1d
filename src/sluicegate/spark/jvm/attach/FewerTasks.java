package sluicegate.attach;

import java.util.List;
import org.apache.spark.rdd.PartitionCoalescer;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Runs the same partitions in fewer tasks, sequentially within each; stateful ones where their state is loaded. */
public final class FewerTasks extends SparkPlan {
  private static final long serialVersionUID = 1L;

  private final String query;
  private final int tasks;
  private final boolean stateful;
  private final SparkPlan child;

  /** Public, and with the arguments that the product has: listeners of others copy plans and write them as JSON. */
  public FewerTasks(String query, int tasks, boolean stateful, SparkPlan child) {
    this.query = query;
    this.tasks = tasks;
    this.stateful = stateful;
    this.child = child;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    RDD<InternalRow> rows = child.execute();
    Attachment attachment = Attachment.current();
    if (attachment == null) {
      return rows;
    }
    int parts = rows.getNumPartitions(); // not in the try: what a source throws here is no fault of ours
    try {
      if (parts == 0 || rows.isBarrier() || (parts <= tasks && !stateful)) {
        return rows;
      }
      attachment.guard.fault("node");
      var places = Option.<PartitionCoalescer>apply(new StatePlaces(query, stateful));
      return new OneByOne(rows).coalesce(tasks, false, places, null);
    } catch (Throwable problem) {
      Guard.passOn(problem);
      attachment.guard.giveUp(Guard.Lever.TASKS, query, problem.toString());
      return rows;
    }
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new FewerTasks(query, tasks, stateful, children.head());
  }

  @Override
  public String nodeName() {
    return "SluicegateFewerTasks";
  }

  @Override
  public int productArity() {
    return 4;
  }

  @Override
  public Object productElement(int at) {
    return switch (at) {
      case 0 -> query;
      case 1 -> tasks;
      case 2 -> stateful;
      default -> child;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof FewerTasks;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FewerTasks that && that.tasks == tasks && that.child.equals(child);
  }

  @Override
  public int hashCode() {
    return 31 * tasks + child.hashCode();
  }
}
