package sluicegate.attach;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.ExecutorAllocationClient;
import org.apache.spark.SparkContext;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.ExecutorDecommissionInfo;
import org.apache.spark.scheduler.TaskLocation;
import org.apache.spark.scheduler.local.LocalSchedulerBackend;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.WriteFilesExecBase;
import org.apache.spark.sql.execution.datasources.v2.ContinuousScanExec;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec;
import org.apache.spark.sql.execution.datasources.v2.V2TableWriteExec;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_NUM$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.streaming.RealTimeTrigger;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator;
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSource;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.sources.ForeachWrite;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import org.apache.spark.sql.execution.streaming.state.StateStoreThreadLocalTracker;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** All access to Spark's internal classes, which change between versions: tested with {@link #TRIED} only. */
final class SparkInternals {
  static final String TRIED = "4.3.";
  static final String QUERY_ID = "sql.streaming.queryId";
  static final String BATCH_ID = "streaming.sql.batchId";
  static final String SCAN = "scan";
  static final String SHUFFLE = "shuffle";
  static final String STATE = "state";

  private static final Map<String, StreamExecution> BACK_TO_BACK = new ConcurrentHashMap<>();

  private SparkInternals() {}

  static boolean tried(String version) {
    return version.startsWith(TRIED);
  }

  // ---- plans

  /** Whether the stages of a plan may get fewer tasks. */
  static boolean movable(SparkPlan plan) {
    return !isBroadcast(plan) && !(plan instanceof AdaptiveSparkPlanExec) && streams(plan) && !endless(plan);
  }

  static boolean isBroadcast(SparkPlan plan) {
    return plan instanceof BroadcastExchangeLike;
  }

  static boolean isExchange(SparkPlan plan) {
    return plan instanceof Exchange;
  }

  static boolean isShuffle(SparkPlan plan) {
    return plan instanceof ShuffleExchangeLike;
  }

  /** A node that writes the output of the stage below it, as part of the same stage. */
  static boolean isWrite(SparkPlan plan) {
    return plan instanceof WriteToDataSourceV2Exec
        || plan instanceof V2TableWriteExec
        || plan instanceof WriteFilesExecBase
        || plan instanceof DataWritingCommandExec;
  }

  /**
   * Whether a writer is told the partition and the batch of its rows, and may leave out those that it has had: with other
   * tasks in a batch that is tried again it would leave out rows that it has not had.
   */
  static boolean namesPartitions(SparkPlan plan) {
    return plan instanceof WriteToDataSourceV2Exec write
        && write.batchWrite() instanceof MicroBatchWrite batch
        && batch.writeSupport().getClass().getName().startsWith(ForeachWrite.class.getName());
  }

  /** A root whose partitioning requirements are unknown: commands and writes of other kinds. */
  static boolean isUnknownRoot(SparkPlan plan) {
    String name = plan.getClass().getSimpleName();
    return name.contains("Command") || name.contains("Write") || name.contains("Adaptive");
  }

  static boolean isSort(SparkPlan plan) {
    return plan instanceof SortExec;
  }

  /** Whether a plan only selects from the rows of a sort within partitions, whose order it keeps. */
  static boolean keepsASort(SparkPlan plan) {
    if (!(plan instanceof ProjectExec || plan instanceof FilterExec)) {
      return false;
    }
    SparkPlan child = plan.children().head();
    return (isSort(child) && !isGlobalSort(child)) || keepsASort(child);
  }

  static boolean isGlobalSort(SparkPlan plan) {
    return plan instanceof SortExec sort && sort.global();
  }

  /** The kind of the stage with this top node: it is stateful, behind an exchange, or only reads a source. */
  static String kind(SparkPlan plan) {
    if (plan instanceof StatefulOperator) {
      return STATE;
    }
    if (plan instanceof Exchange || plan.nodeName().contains("QueryStage") || plan.nodeName().contains("AQEShuffleRead")) {
      return SHUFFLE;
    }
    String found = SCAN;
    for (SparkPlan child : CollectionConverters.asJava(plan.children())) {
      String kind = kind(child);
      if (kind.equals(STATE)) {
        return STATE;
      }
      found = kind.equals(SHUFFLE) ? SHUFFLE : found;
    }
    return found;
  }

  /** Whether rows of the stream pass through here; static tables joined to it are left alone. */
  static boolean streams(SparkPlan plan) {
    if (plan instanceof MicroBatchScanExec || plan instanceof StatefulOperator) {
      return true;
    }
    if (plan.logicalLink().isDefined() && plan.logicalLink().get().isStreaming()) {
      return true;
    }
    return CollectionConverters.asJava(plan.children()).stream().anyMatch(SparkInternals::streams);
  }

  /**
   * Whether a plan is a leaf that reads the stream from a source that cannot split its input further (Kafka can). It is
   * left alone if nodes above may rely on the partitioning of its rows.
   */
  static boolean spreadable(SparkPlan plan) {
    boolean leaf = plan.children().isEmpty() && !(plan instanceof AdaptiveSparkPlanExec) && kind(plan).equals(SCAN) && streams(plan);
    boolean kafka = plan instanceof MicroBatchScanExec scan && isKafka((SparkDataStream) scan.stream());
    return leaf && !kafka && plan.outputPartitioning() instanceof UnknownPartitioning;
  }

  /** Whether a plan asks which file a row came from, which is known only in the task that reads it. */
  static boolean namesFiles(SparkPlan plan) {
    return CollectionConverters.asJava(plan.expressions()).stream().anyMatch(SparkInternals::namesFile)
        || CollectionConverters.asJava(plan.children()).stream().anyMatch(SparkInternals::namesFiles);
  }

  private static boolean namesFile(Expression one) {
    return one instanceof InputFileName
        || one instanceof InputFileBlockStart
        || one instanceof InputFileBlockLength
        || CollectionConverters.asJava(one.children()).stream().anyMatch(SparkInternals::namesFile);
  }

  /** Distributes the rows of a plan round-robin over tasks, in an order that a retry reproduces. */
  static SparkPlan dealtOut(SparkPlan plan, int tasks) {
    return new ShuffleExchangeExec(
        new RoundRobinPartitioning(tasks), plan, REPARTITION_BY_NUM$.MODULE$, Option.empty(), false);
  }

  /** Whether tasks read until the query is stopped: one that followed another in its task would never run. */
  private static boolean endless(SparkPlan plan) {
    return plan instanceof RealTimeStreamScanExec
        || plan instanceof ContinuousScanExec
        || CollectionConverters.asJava(plan.children()).stream().anyMatch(SparkInternals::endless);
  }

  static SparkPlan withChildren(SparkPlan plan, UnaryOperator<SparkPlan> change) {
    List<SparkPlan> changed = new ArrayList<>();
    boolean same = true;
    for (SparkPlan child : CollectionConverters.asJava(plan.children())) {
      SparkPlan after = change.apply(child);
      same &= after == child;
      changed.add(after);
    }
    return same ? plan : (SparkPlan) plan.withNewChildren(CollectionConverters.asScala(changed).toSeq());
  }

  // ---- state

  static void forgetStore() {
    StateStoreThreadLocalTracker.clearStore();
  }

  /** The preferred location of a partition among {@code seats}, for state where it is loaded; null if there is none. */
  static String preferred(RDD<?> rows, int partition, Collection<String> seats) {
    for (TaskLocation place : CollectionConverters.asJava(rows.context().getPreferredLocs(rows, partition))) {
      if (seats.contains(place.toString())) {
        return place.toString();
      }
    }
    return null;
  }

  static String seat(String host, String executor) {
    return "executor_" + host + "_" + executor;
  }

  // ---- queries

  static SparkContext context(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).sparkContext();
  }

  /** A running query by its id or run id; null if there is none. */
  static StreamExecution query(SparkSession session, String id) {
    var shared = ((org.apache.spark.sql.classic.SparkSession) session).sharedState();
    for (StreamExecution one : shared.activeStreamingQueries().values()) {
      if (one.id().toString().equals(id) || one.runId().toString().equals(id)) {
        return one;
      }
    }
    return null;
  }

  /** The trigger interval in force in seconds: 0 for back-to-back batches; null for other kinds of triggers. */
  static Double triggerSeconds(SparkSession session, String id) throws ReflectiveOperationException {
    StreamExecution query = query(session, id);
    Long every = query == null ? null : intervalMs(query);
    return every == null ? null : every / 1e3;
  }

  /** The trigger interval in force in ms; null for other kinds of triggers, and before the query has begun. */
  static Long intervalMs(StreamExecution query) throws ReflectiveOperationException {
    return trigger(query) == null ? null : interval().getLong(trigger(query));
  }

  /**
   * Sets the trigger interval. It applies from the next batch but one: the next due time is computed at batch start.
   *
   * <p>Spark divides by the interval right after checking that it is not 0, on the query's thread: so 0 is written only
   * on that thread, by {@link #settleInterval}, and until the query's next batch the interval is 1 ms.
   */
  static void intervalMs(StreamExecution query, long every) throws ReflectiveOperationException {
    if (every > 0) {
      BACK_TO_BACK.remove(query.id().toString());
      interval().setLong(trigger(query), every);
    } else if (interval().getLong(trigger(query)) > 0) {
      interval().setLong(trigger(query), 1);
      BACK_TO_BACK.put(query.id().toString(), query);
    }
  }

  /** Writes a pending interval of 0; called on the query's own thread while it plans a batch. */
  static void settleInterval(String id) throws ReflectiveOperationException {
    StreamExecution query = id == null || BACK_TO_BACK.isEmpty() ? null : BACK_TO_BACK.remove(id);
    if (query != null && trigger(query) != null) {
      interval().setLong(trigger(query), 0);
    }
  }

  static void forgetEnded() {
    BACK_TO_BACK.values().removeIf(one -> !one.isActive());
  }

  /** Whether a query runs in Spark's continuous mode, which has no batches, so nothing is measured or moved. */
  static boolean isContinuous(StreamExecution query) {
    return !(query instanceof MicroBatchExecution);
  }

  private static ProcessingTimeExecutor trigger(StreamExecution query) {
    return query instanceof MicroBatchExecution batches
            && !(query.trigger() instanceof RealTimeTrigger)
            && batches.triggerExecutor() instanceof ProcessingTimeExecutor found
        ? found
        : null;
  }

  private static Field interval() throws NoSuchFieldException {
    return opened(ProcessingTimeExecutor.class.getDeclaredField("intervalMs"));
  }

  private static Field opened(Field field) {
    field.setAccessible(true);
    return field;
  }

  static boolean isKafka(SparkDataStream source) {
    return source.getClass().getName().equals("org.apache.spark.sql.kafka010.KafkaMicroBatchStream");
  }

  /**
   * Makes a Kafka source split its offsets into at least {@code least} ranges; 0 restores {@code given}.
   *
   * <p>Returns the previous calculator. By reflection: the connector is on the user's class path, not on ours.
   */
  static Object ranges(SparkDataStream source, int least, Object given) throws ReflectiveOperationException {
    Object reader = opened(source.getClass().getDeclaredField("kafkaOffsetReader")).get(source);
    Field field = opened(reader.getClass().getDeclaredField("rangeCalculator"));
    Object before = field.get(reader);
    if (least > 0) {
      var made = field.getType().getConstructor(Option.class, Option.class);
      Object limit = field.getType().getMethod("maxRecordsPerPartition").invoke(given == null ? before : given);
      field.set(reader, made.newInstance(Option.apply(least), limit));
    } else if (given != null) {
      field.set(reader, given);
    }
    return before;
  }

  /** The sources of a query; none before it has planned its first batch. */
  static List<SparkDataStream> sources(SparkSession session, String id) {
    StreamExecution query = query(session, id);
    return query == null || query.sources() == null ? List.of() : CollectionConverters.asJava(query.sources());
  }

  static String checkpoint(SparkSession session, String id) {
    StreamExecution query = query(session, id);
    return query == null ? null : query.resolvedCheckpointRoot();
  }

  /** The folder, or pattern of folders, that a file source reads; null for other sources. */
  static Path filesOf(SparkDataStream source) {
    String told = source instanceof FileStreamSource ? source.toString() : "";
    return told.endsWith("]") ? new Path(told.substring(told.indexOf('[') + 1, told.length() - 1)) : null;
  }

  /** The files that no batch of the source has read yet, with their modification times in milliseconds. */
  static Map<String, Long> unread(SparkDataStream source, Map<String, FileStatus> files) {
    Map<String, Long> found = new HashMap<>();
    synchronized (source) { // as the source itself does; its next batch waits while this loop runs
      var seen = ((FileStreamSource) source).seenFiles();
      files.forEach((path, file) -> {
        if (seen.isNewFile(SparkPath.fromFileStatus(file), file.getModificationTime())) {
          found.put(path, file.getModificationTime());
        }
      });
    }
    return found;
  }

  static boolean busy(SparkSession session, String id) {
    StreamExecution query = query(session, id);
    return query != null && query.status().isTriggerActive() && query.status().isDataAvailable();
  }

  /** Makes queries started in this session from now on follow the plan; extensions are read at a query's start. */
  static void addRule(SparkSession session) {
    new Extension().apply(((org.apache.spark.sql.classic.SparkSession) session).extensions());
  }

  // ---- executors

  /** The cores of a local master; spark.default.parallelism, which the user may set to anything, says nothing of them. */
  static int localCores(SparkContext context) {
    return context.schedulerBackend() instanceof LocalSchedulerBackend local ? local.totalCores() : context.defaultParallelism();
  }

  static ExecutorAllocationClient client(SparkContext context) {
    return context.schedulerBackend() instanceof ExecutorAllocationClient client ? client : null;
  }

  /** Requests a total of executors; returns why it was not taken, such as a master that is away, or null. */
  static String ask(SparkContext context, int total) throws InterruptedException {
    scala.collection.immutable.Map<String, Object> nowhere = scala.collection.immutable.Map$.MODULE$.empty();
    try {
      return context.requestTotalExecutors(total, 0, nowhere) ? null : "refused";
    } catch (Exception unanswered) { // Scala declares none
      throwInterrupt(unanswered);
      return Guard.words(unanswered);
    }
  }

  static boolean drain(SparkContext context, String executor) {
    var why = new ExecutorDecommissionInfo("sluicegate: fewer executors are enough", Option.empty());
    return client(context).decommissionExecutor(executor, why, false, false);
  }

  /** Whether it is killed: one that runs tasks is not, unless forced; nor is any while the master is away. */
  static boolean kill(SparkContext context, String executor, boolean force) throws InterruptedException {
    var one = CollectionConverters.asScala(List.of(executor)).toSeq();
    try {
      return client(context).killExecutors(one, false, false, force).nonEmpty();
    } catch (Exception unanswered) {
      throwInterrupt(unanswered);
      return false;
    }
  }

  private static void throwInterrupt(Exception problem) throws InterruptedException {
    if (problem instanceof InterruptedException stopped) {
      throw stopped;
    }
  }
}
