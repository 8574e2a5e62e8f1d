package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerBlockManagerAdded;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Listens to queries of all sessions, stages and executors, and logs one line for every finished batch.
 *
 * <p>Spark's listener thread only enqueues what is needed of an event, since Spark's own of a stage has kilobytes: if
 * our thread is slow, events are dropped and Spark does not wait.
 */
final class Watch extends SparkListener {
  private static final int MOST_WAITING = 20_000;
  private static final int MOST_BEFORE_REPORTS = 2000;
  private static final String TOO_FAST = "events come faster than they are written down: some batches are not seen";
  private static final int MOST_STAGES = 20_000;
  private static final int MOST_BATCHES = 1000;
  private static final int MOST_STAGES_TOLD = 200;
  private static final int COLD_BATCHES = 2;
  private static final double UNSETTLED_S = 5.0;

  private final Attachment attachment;
  private final BlockingQueue<Runnable> waiting = new ArrayBlockingQueue<>(MOST_WAITING);
  private final Thread thread = new Thread(this::work, "sluicegate-watch");
  private final Map<Integer, BatchOf> batchOfStage = bounded(MOST_STAGES);
  private final Map<BatchOf, ArrayNode> stagesOfBatch = bounded(MOST_BATCHES);
  private volatile boolean ended;

  /** A batch of a query by its id, as the properties of its jobs name them. */
  private record BatchOf(String query, long number) {}

  Watch(Attachment attachment) {
    this.attachment = attachment;
    thread.setDaemon(true);
    thread.start();
  }

  /** Waits up to two seconds until queued events are written. */
  void close() {
    ended = true;
    try {
      thread.join(2000);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  private void work() {
    try {
      while (!ended || !waiting.isEmpty()) {
        Runnable next = waiting.poll(200, TimeUnit.MILLISECONDS);
        if (next != null) {
          next.run();
        }
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  private void later(String event, Guard.Body body) {
    if (!waiting.offer(() -> attachment.guard.run(event, body))) {
      attachment.guard.once(TOO_FAST);
    }
  }

  /** Detaches on a new thread, because Spark's listener thread must not wait for ours while Spark stops. */
  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd end) {
    Thread last = new Thread(() -> Attachment.end(attachment), "sluicegate-end");
    last.setDaemon(true);
    last.start();
  }

  @Override
  public void onExecutorAdded(SparkListenerExecutorAdded added) {
    later("executor", () -> attachment.cores(added.executorId(), added.executorInfo().totalCores()));
  }

  @Override
  public void onBlockManagerAdded(SparkListenerBlockManagerAdded added) {
    later("executor", () -> attachment.came(added.blockManagerId().executorId(), added.blockManagerId().host()));
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    later("executor", () -> attachment.left(removed.executorId()));
  }

  @Override
  public void onJobStart(SparkListenerJobStart job) {
    attachment.guard.run("listener", () -> begun(job)); // here, so that stages of other jobs need no place in the queue
  }

  @Override
  public void onStageCompleted(SparkListenerStageCompleted stage) {
    StageInfo info = stage.stageInfo();
    BatchOf batch = batchOfStage.get(info.stageId());
    if (batch != null && info.failureReason().isEmpty()) {
      attachment.guard.run("listener", () -> {
        ObjectNode figures = figures(info);
        later("stage", () -> done(batch, figures));
      });
    }
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    // reports have tens of kilobytes: a disk that hangs must not fill the driver's memory with them
    if (event instanceof StreamingQueryListener.QueryProgressEvent && waiting.size() > MOST_BEFORE_REPORTS) {
      attachment.guard.once(TOO_FAST);
    } else if (event instanceof StreamingQueryListener.Event) {
      later("query", () -> told(event));
    }
  }

  private void begun(SparkListenerJobStart job) {
    String query = job.properties() == null ? null : job.properties().getProperty(SparkInternals.QUERY_ID);
    String batch = query == null ? null : job.properties().getProperty(SparkInternals.BATCH_ID);
    if (batch != null) {
      BatchOf of = new BatchOf(query, Long.parseLong(batch));
      CollectionConverters.asJava(job.stageIds()).forEach(stage -> batchOfStage.put((Integer) stage, of));
    }
  }

  /**
   * Keeps a stage for the line of its batch. Threads of a pool that foreachBatch made in an earlier batch name that one
   * for ever, and go on when the query has ended.
   */
  private void done(BatchOf named, ObjectNode stage) {
    Queries.Query query = attachment.queries.byId(named.query());
    if (query != null && query.id.equals(named.query()) && !query.active) {
      return;
    }
    long number = query == null ? named.number() : Math.max(named.number(), query.lastBatch + 1);
    BatchOf batch = new BatchOf(named.query(), number);
    ArrayNode stages = stagesOfBatch.computeIfAbsent(batch, none -> RunFolder.JSON.createArrayNode());
    if (stages.size() < MOST_STAGES_TOLD || !addedUp(stages, stage)) {
      stages.add(stage);
    }
  }

  /** Adds a stage's figures to those of one with as many tasks: foreachBatch may run thousands of jobs in a batch. */
  private static boolean addedUp(ArrayNode stages, ObjectNode more) {
    for (JsonNode one : stages) {
      if (one.path("tasks").equals(more.path("tasks")) && one.path("behind_shuffle").equals(more.path("behind_shuffle"))) {
        for (String sum : List.of("wall_s", "run_s", "cpu_s")) {
          ((ObjectNode) one).put(sum, one.path(sum).asDouble() + more.path(sum).asDouble());
        }
        for (String sum : List.of("rows_in", "rows_out")) {
          ((ObjectNode) one).put(sum, one.path(sum).asLong() + more.path(sum).asLong());
        }
        return true;
      }
    }
    return false;
  }

  private static ObjectNode figures(StageInfo stage) {
    TaskMetrics metrics = stage.taskMetrics();
    ObjectNode one = RunFolder.JSON.createObjectNode();
    one.put("tasks", stage.numTasks()).put("behind_shuffle", stage.parentIds().nonEmpty());
    if (stage.submissionTime().isDefined() && stage.completionTime().isDefined()) {
      one.put("wall_s", ((Long) stage.completionTime().get() - (Long) stage.submissionTime().get()) / 1e3);
    }
    one.put("run_s", metrics.executorRunTime() / 1e3).put("cpu_s", metrics.executorCpuTime() / 1e9);
    one.put("rows_in", metrics.inputMetrics().recordsRead() + metrics.shuffleReadMetrics().recordsRead());
    one.put("rows_out", metrics.outputMetrics().recordsWritten() + metrics.shuffleWriteMetrics().recordsWritten());
    return one;
  }

  private void told(SparkListenerEvent event) throws Exception {
    if (event instanceof StreamingQueryListener.QueryStartedEvent started) {
      attachment.queries.started(started.id().toString(), started.runId().toString(), started.name());
      attachment.describe();
    } else if (event instanceof StreamingQueryListener.QueryProgressEvent progress) {
      batch(RunFolder.JSON.readTree(progress.progress().json()));
    } else if (event instanceof StreamingQueryListener.QueryTerminatedEvent ended) {
      Queries.Query query = attachment.queries.byId(ended.id().toString());
      if (query != null && attachment.queries.ended(query, ended.runId().toString())) {
        attachment.ended(query.name);
        attachment.failed(query, ended.exception().getOrElse(() -> ""));
        query.leftDescribed = attachment.leftOf(query);
        attachment.describe();
      }
    }
  }

  private void batch(JsonNode progress) throws Exception {
    String id = progress.path("id").asText();
    String run = progress.path("runId").asText();
    ArrayNode stages = stagesOfBatch.remove(new BatchOf(id, progress.path("batchId").asLong()));
    Queries.Query query = attachment.queries.byId(id);
    if (query == null && attachment.running(run) == null) {
      return; // it ended long ago, and its name may be another's
    }
    if (query == null) { // the query was running before the attach
      query = attachment.queries.started(id, run, progress.path("name").asText(null));
    }
    String left = attachment.leftOf(query);
    if (Queries.describe(query, progress, attachment.running(query.run)) | !Objects.equals(left, query.leftDescribed)) {
      query.leftDescribed = left;
      attachment.describe();
    }
    if (progress.path("numInputRows").asLong() == 0) {
      attachment.files.foundNothing(query.name, Instant.parse(progress.path("timestamp").asText()).toEpochMilli() / 1e3);
    }
    if (!progress.path("durationMs").has("addBatch")) {
      return; // an idle trigger
    }
    query.batches++;
    if (run.equals(query.run)) {
      query.lastBatch = progress.path("batchId").asLong();
      query.lastSeconds = progress.path("durationMs").path("triggerExecution").asDouble() / 1e3;
    }
    attachment.batchEnded(query.name);
    attachment.folder.batch(query.name, line(query, progress, stages));
  }

  private ObjectNode line(Queries.Query query, JsonNode progress, ArrayNode stages) throws Exception {
    JsonNode took = progress.path("durationMs");
    double started = Instant.parse(progress.path("timestamp").asText()).toEpochMilli() / 1e3;
    double duration = took.path("triggerExecution").asDouble() / 1e3;
    int tasks = 0;
    int behind = 0;
    double work = 0;
    if (stages != null) {
      for (JsonNode stage : stages) {
        tasks = Math.max(tasks, stage.path("tasks").asInt());
        behind = stage.path("behind_shuffle").asBoolean() ? Math.max(behind, stage.path("tasks").asInt()) : behind;
        work += stage.path("run_s").asDouble();
      }
    }
    tasks = behind > 0 ? behind : Math.max(tasks, 1);
    ObjectNode line = RunFolder.JSON.createObjectNode();
    line.put("batch", progress.path("batchId").asLong()).put("started_s", started);
    line.put("published_s", started + duration - took.path("commitOffsets").asDouble() / 1e3);
    line.put("duration_s", duration).put("rows", progress.path("numInputRows").asLong());
    long out = progress.path("sink").path("numOutputRows").asLong(-1);
    line.put("rows_out", out >= 0 ? out : progress.path("numInputRows").asLong());
    line.put("processors", Math.max(Math.min(tasks, attachment.slots()), 1)).putNull("entered_s");
    line.putArray("born");
    boolean unsettled = attachment.lastCameSeconds() > started - UNSETTLED_S;
    line.put("cold", query.batches <= COLD_BATCHES || unsettled).put("work_s", work);
    line.putArray("task_s");
    // the following fields exist for attached queries only
    line.put("tasks", tasks).put("slots", attachment.slots());
    line.set("trigger_s", RunFolder.JSON.valueToTree(attachment.triggerSeconds(query.id)));
    line.set("stages", stages == null ? RunFolder.JSON.createArrayNode() : stages);
    line.set("took_ms", took);
    line.set("places", RunFolder.JSON.valueToTree(attachment.placesOf(query.name)));
    line.set("sources", sources(query, progress));
    long rows = 0;
    long bytes = 0;
    int partitions = 0;
    long commit = 0;
    boolean rocksdb = true;
    for (JsonNode state : progress.path("stateOperators")) {
      rows += state.path("numRowsTotal").asLong();
      bytes += state.path("memoryUsedBytes").asLong();
      commit += state.path("commitTimeMs").asLong();
      partitions = Math.max(partitions, state.path("numShufflePartitions").asInt());
      rocksdb &= state.path("customMetrics").properties().stream().anyMatch(one -> one.getKey().startsWith("rocksdb"));
    }
    line.put("state_partitions", partitions).put("state_commit_s", commit / 1e3).put("rocksdb", rocksdb);
    return line.put("state_rows", rows).put("state_bytes", bytes);
  }

  private ArrayNode sources(Queries.Query query, JsonNode progress) {
    ArrayNode out = RunFolder.JSON.createArrayNode();
    for (int at = 0; at < progress.path("sources").size(); at++) {
      JsonNode source = progress.path("sources").get(at);
      ObjectNode one = out.addObject();
      one.put("name", Queries.shortened(Guard.redacted(source.path("description").asText(""))));
      one.put("kafka", source.path("description").asText("").startsWith("Kafka"));
      one.put("rows", source.path("numInputRows").asLong());
      if (one.path("kafka").asBoolean()) {
        one.set("start", source.path("startOffset"));
        one.set("end", source.path("endOffset"));
        one.set("latest", source.path("latestOffset"));
      } else if (source.path("description").asText("").startsWith("FileStreamSource")) {
        attachment.files.tellBatch(query, at, source.path("startOffset"), source.path("endOffset"), one);
      } else if (source.path("description").asText("").startsWith("RateStreamV2")) {
        one.set("start", source.path("startOffset")); // seconds since the source began
        one.set("end", source.path("endOffset"));
      }
    }
    return out;
  }

  private static <K, V> Map<K, V> bounded(int most) {
    return new LinkedHashMap<>() {
      @Override
      protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > most;
      }
    };
  }
}
