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
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.WriteFilesExecBase;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec;
import org.apache.spark.sql.execution.datasources.v2.V2TableWriteExec;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_NUM$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator;
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSource;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.state.StateStoreThreadLocalTracker;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** All that is known here of Spark's inner classes. They move between versions: tried with {@link #TRIED} only. */
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

  /** Whether a plan is one whose stages may get fewer tasks. */
  static boolean movable(SparkPlan plan) {
    return !isBroadcast(plan) && !(plan instanceof AdaptiveSparkPlanExec) && streams(plan) && !realTime(plan);
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

  /** A node that writes what the stage below it computes, as its own part of that stage. */
  static boolean isWrite(SparkPlan plan) {
    return plan instanceof WriteToDataSourceV2Exec
        || plan instanceof V2TableWriteExec
        || plan instanceof WriteFilesExecBase
        || plan instanceof DataWritingCommandExec;
  }

  /** A root of which is not known what it needs of its partitions: commands and writes of other kinds. */
  static boolean isUnknownRoot(SparkPlan plan) {
    String name = plan.getClass().getSimpleName();
    return name.contains("Command") || name.contains("Write") || name.contains("Adaptive");
  }

  static boolean isSort(SparkPlan plan) {
    return plan instanceof SortExec;
  }

  static boolean isGlobalSort(SparkPlan plan) {
    return plan instanceof SortExec sort && sort.global();
  }

  /** A stage by its top: it keeps state, is behind an exchange, or reads a source and nothing else. */
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

  /** Whether rows of the stream itself come through here; a static table that is joined to it is not touched. */
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
   * A leaf that reads the stream itself from something that cannot cut its input further; Kafka can. Where nodes above may
   * rely on how its rows are partitioned it is left alone.
   */
  static boolean spreadable(SparkPlan plan) {
    boolean leaf = plan.children().isEmpty() && kind(plan).equals(SCAN) && streams(plan);
    boolean kafka = plan instanceof MicroBatchScanExec scan && isKafka((SparkDataStream) scan.stream());
    return leaf && !kafka && plan.outputPartitioning() instanceof UnknownPartitioning;
  }

  /** The rows of a plan dealt out evenly to so many tasks, in an order that a retry finds again. */
  static SparkPlan dealtOut(SparkPlan plan, int tasks) {
    return new ShuffleExchangeExec(
        new RoundRobinPartitioning(tasks), plan, REPARTITION_BY_NUM$.MODULE$, Option.empty(), false);
  }

  private static boolean realTime(SparkPlan plan) {
    return plan instanceof RealTimeStreamScanExec
        || CollectionConverters.asJava(plan.children()).stream().anyMatch(SparkInternals::realTime);
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

  /** The seat that a partition prefers, which for state is where it is loaded; null where it is none of these. */
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

  /** A running query by its id or its run's; null where there is none. */
  static StreamExecution query(SparkSession session, String id) {
    var shared = ((org.apache.spark.sql.classic.SparkSession) session).sharedState();
    for (StreamExecution one : shared.activeStreamingQueries().values()) {
      if (one.id().toString().equals(id) || one.runId().toString().equals(id)) {
        return one;
      }
    }
    return null;
  }

  /** The interval in force of a query's trigger in seconds: 0 for back to back; null for triggers of another kind. */
  static Double triggerSeconds(SparkSession session, String id) throws ReflectiveOperationException {
    StreamExecution query = query(session, id);
    Long every = query == null ? null : intervalMs(query);
    return every == null ? null : every / 1e3;
  }

  /** The interval in force of a query's trigger; null for triggers of another kind, and before the query has begun. */
  static Long intervalMs(StreamExecution query) throws ReflectiveOperationException {
    return trigger(query) == null ? null : interval().getLong(trigger(query));
  }

  /**
   * From the next batch but one on: when the next is due was worked out as this one began.
   *
   * <p>Spark divides by the interval just after it found that it is not 0, on the query's thread: so 0 is only ever written
   * there, by {@link #settleInterval}, and until its next batch the interval is a millisecond.
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

  /** Called on a query's own thread while it plans a batch. */
  static void settleInterval(String id) throws ReflectiveOperationException {
    StreamExecution query = id == null || BACK_TO_BACK.isEmpty() ? null : BACK_TO_BACK.remove(id);
    if (query != null && trigger(query) != null) {
      interval().setLong(trigger(query), 0);
    }
  }

  /** Spark's continuous mode has no batches: nothing of it is measured or moved. */
  static boolean isContinuous(StreamExecution query) {
    return !(query instanceof MicroBatchExecution);
  }

  private static ProcessingTimeExecutor trigger(StreamExecution query) {
    return query instanceof MicroBatchExecution batches && batches.triggerExecutor() instanceof ProcessingTimeExecutor found
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
   * Has a Kafka source cut its offsets into at least so many ranges; with 0, as {@code given} did. Gives what did it before.
   *
   * <p>By reflection: the connector is in the user's class path, not in ours.
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

  /** Those of the files that the source has given to no batch yet, with the time they came in milliseconds. */
  static Map<String, Long> unread(SparkDataStream source, Map<String, FileStatus> files) {
    Map<String, Long> found = new HashMap<>();
    synchronized (source) { // as the source itself does; it is kept from its batch for as long as this loop takes
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

  /** Makes queries that start from now on in this session follow the plan; extensions are read when a query starts. */
  static void addRule(SparkSession session) {
    new Extension().apply(((org.apache.spark.sql.classic.SparkSession) session).extensions());
  }

  // ---- executors

  static ExecutorAllocationClient client(SparkContext context) {
    return context.schedulerBackend() instanceof ExecutorAllocationClient client ? client : null;
  }

  static boolean active(SparkContext context, String executor) {
    ExecutorAllocationClient client = client(context);
    return client != null && client.isExecutorActive(executor);
  }

  static boolean ask(SparkContext context, int total) {
    scala.collection.immutable.Map<String, Object> nowhere = scala.collection.immutable.Map$.MODULE$.empty();
    return context.requestTotalExecutors(total, 0, nowhere);
  }

  static boolean drain(SparkContext context, String executor) {
    var why = new ExecutorDecommissionInfo("sluicegate: fewer executors are enough", Option.empty());
    return client(context).decommissionExecutor(executor, why, false, false);
  }

  static void kill(SparkContext context, String executor) {
    client(context).killExecutors(CollectionConverters.asScala(List.of(executor)).toSeq(), false, false, false);
  }
}
