package sluicegate;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.StreamingQueryPlanTraverseHelper;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper;
import org.apache.spark.sql.streaming.StreamingQuery;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** Sets the watermark of a query that reads edges from its input manifests, and reads it for its output manifests. */
public final class EventTime {
  private EventTime() {}

  /** The node id of the last watermark added to a stream; Spark keeps the id from the plan to the executed batch. */
  public static String lastNode(Dataset<Row> stream) {
    return ((EventTimeWatermark) plan(stream)).nodeId().toString();
  }

  /** Whether any watermark is defined in the stream's plan. */
  public static boolean isIn(Dataset<Row> stream) {
    return has(plan(stream));
  }

  /** Whether a watermark is defined on top of another one, which Spark refuses once the watermark has advanced. */
  public static boolean isDefinedTwice(Dataset<Row> stream) {
    return twice(plan(stream), false);
  }

  /** The stream without those watermarks of {@code nodes} above which the operator defines its own. */
  public static Dataset<Row> withoutReplaced(Dataset<Row> stream, List<String> nodes) {
    LogicalPlan kept = withoutReplaced(plan(stream), nodes, false);
    var session = (org.apache.spark.sql.classic.SparkSession) stream.sparkSession();
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, kept);
  }

  /**
   * Advances the watermark of a query after a batch was executed, before Spark does so itself.
   *
   * @param watermarks in ms, by the id of the node of an edge: such a node advances only by this value
   * @return the watermark in ms of the output rows (no later output row is older, except late ones; -1 if there is
   *     none), and 1 if Spark will run one more batch because the watermark has advanced, else 0
   */
  public static List<Long> advance(
      SparkSession spark, String query, long batch, List<String> nodes, Map<String, Long> watermarks) {
    MicroBatchExecution running = running(spark, query);
    IncrementalExecution execution = running.lastExecution();
    if (execution.currentBatchId() != batch) {
      throw new IllegalStateException("batch " + batch + " of " + query + " is not the one that runs");
    }
    SparkPlan plan = execution.executedPlan();
    for (EventTimeWatermarkExec node : found(plan, EventTimeWatermarkExec.class)) {
      String id = node.nodeId().toString();
      if (nodes.contains(id)) {
        node.eventTimeStats().reset();
        if (watermarks.containsKey(id)) {
          node.eventTimeStats().add(((Number) watermarks.get(id)).longValue() + node.delayMs());
        }
      }
    }
    running.watermarkTracker().updateWatermark(plan);
    long before = execution.offsetSeqMetadata().batchWatermarkMs();
    long now = running.watermarkTracker().currentWatermark();
    if (found(plan, StateStoreWriter.class).isEmpty()) {
      return List.of(now > 0 ? now : -1L, 0L);
    }
    // State that the watermark releases is emitted in the next batch: until then the output watermark stays as it was.
    boolean allowed = execution.sparkSession().sessionState().conf().streamingNoDataMicroBatchesEnabled();
    boolean another = allowed && now > before && another(plan, now);
    Long leaving = leaving(plan, another || !allowed ? before : now);
    return List.of(leaving != null && leaving > 0 ? leaving : -1L, another ? 1L : 0L);
  }

  private static MicroBatchExecution running(SparkSession spark, String query) {
    for (StreamingQuery one : spark.streams().active()) {
      if (query.equals(one.name())) {
        return (MicroBatchExecution) ((StreamingQueryWrapper) one).streamingQuery();
      }
    }
    throw new IllegalStateException("query " + query + " does not run");
  }

  /** The output watermark of a node, by Spark's own rules for chained stateful operators. */
  private static Long leaving(SparkPlan node, long watermark) {
    if (node instanceof EventTimeWatermarkExec) {
      return watermark;
    }
    Long entering = entering(node, watermark);
    if (entering == null || !(node instanceof StateStoreWriter)) {
      return entering;
    }
    Option<Object> produced = ((StateStoreWriter) node).produceOutputWatermark(entering);
    return produced.isDefined() ? (Long) produced.get() : null;
  }

  private static Long entering(SparkPlan node, long watermark) {
    Long least = null;
    for (SparkPlan child : CollectionConverters.asJava(node.children())) {
      Long one = leaving(child, watermark);
      least = least == null ? one : one == null ? least : Long.valueOf(Math.min(least, one));
    }
    return least;
  }

  private static boolean another(SparkPlan plan, long watermark) {
    for (StateStoreWriter node : found(plan, StateStoreWriter.class)) {
      Long entering = entering((SparkPlan) node, watermark);
      if (node.shouldRunAnotherBatch(entering == null ? 0L : Math.max(entering, 0L))) {
        return true;
      }
    }
    return false;
  }

  private static <T> List<T> found(SparkPlan plan, Class<T> kind) {
    return CollectionConverters.asJava(
        StreamingQueryPlanTraverseHelper.collectFromUnfoldedPlan(plan, new OfKind<>(kind)));
  }

  private static LogicalPlan plan(Dataset<Row> stream) {
    return ((org.apache.spark.sql.classic.Dataset<Row>) stream).queryExecution().analyzed();
  }

  private static List<LogicalPlan> children(LogicalPlan plan) {
    return new ArrayList<>(CollectionConverters.asJava(plan.children()));
  }

  private static boolean has(LogicalPlan plan) {
    return plan instanceof EventTimeWatermark || children(plan).stream().anyMatch(EventTime::has);
  }

  private static boolean twice(LogicalPlan plan, boolean defined) {
    if (plan instanceof EventTimeWatermark && defined) {
      return true;
    }
    boolean above = !keepsState(plan) && (defined || plan instanceof EventTimeWatermark);
    return children(plan).stream().anyMatch(child -> twice(child, above));
  }

  private static LogicalPlan withoutReplaced(LogicalPlan plan, List<String> nodes, boolean defined) {
    boolean ours = plan instanceof EventTimeWatermark mark && nodes.contains(mark.nodeId().toString());
    if (ours && defined) {
      return withoutReplaced(children(plan).get(0), nodes, true);
    }
    boolean above = !keepsState(plan) && (defined || plan instanceof EventTimeWatermark);
    return (LogicalPlan) plan.mapChildren(child -> withoutReplaced((LogicalPlan) child, nodes, above));
  }

  /** Whether a node is stateful, so that a watermark below it is needed although one is defined above. */
  private static boolean keepsState(LogicalPlan plan) {
    if (plan instanceof Join) {
      return children(plan).stream().allMatch(LogicalPlan::isStreaming);
    }
    return Stream.of("Aggregate", "Deduplicate", "Distinct", "FlatMapGroups", "TransformWithState", "GlobalLimit")
        .anyMatch(plan.getClass().getSimpleName()::startsWith);
  }

  /** A partial function that matches instances of a class. */
  private static final class OfKind<T> extends AbstractPartialFunction<SparkPlan, T> {
    private final Class<T> kind;

    OfKind(Class<T> kind) {
      this.kind = kind;
    }

    @Override
    public boolean isDefinedAt(SparkPlan node) {
      return kind.isInstance(node);
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends SparkPlan, B> B applyOrElse(A node, scala.Function1<A, B> otherwise) {
      return kind.isInstance(node) ? (B) node : otherwise.apply(node);
    }
  }
}
