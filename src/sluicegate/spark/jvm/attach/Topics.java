package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import scala.jdk.javaapi.CollectionConverters;
import sluicegate.KafkaOffsets;

/**
 * Polls the broker once a second for the offsets of the queries' topics, and logs a line for each query: latest
 * offsets, offsets that batches have been planned up to, and the most tasks that a batch can have.
 *
 * <p>Runs on its own thread, so that a broker that does not answer blocks nothing else.
 */
final class Topics implements Runnable {
  private static final long EVERY_MS = 1000;
  private static final long ANSWER_MS = 3000;
  private static final int AGES = 18;

  private final Attachment attachment;
  private final Thread thread = new Thread(this, "sluicegate-topics");
  private final Map<String, StreamExecution> known = new ConcurrentHashMap<>();
  private final Map<String, String> problems = new ConcurrentHashMap<>();
  private final Map<String, String> dated = new ConcurrentHashMap<>();
  private volatile boolean ended;

  Topics(Attachment attachment) {
    this.attachment = attachment;
    thread.setDaemon(true);
    thread.start();
  }

  void close() {
    ended = true;
    thread.interrupt();
    known.values().forEach(query -> attachment.guard.run("topics", () -> KafkaOffsets.close(query)));
  }

  @Override
  public void run() {
    while (!ended) {
      attachment.guard.run("topics", this::look);
      try {
        Thread.sleep(EVERY_MS);
      } catch (InterruptedException stopped) {
        return;
      }
    }
  }

  private void look() throws Exception {
    Set<String> names = attachment.queries.all().stream().map(one -> one.name).collect(Collectors.toSet());
    dated.keySet().retainAll(names);
    problems.keySet().retainAll(names);
    for (String forgotten : known.keySet()) {
      if (!names.contains(forgotten)) {
        KafkaOffsets.close(known.remove(forgotten));
      }
    }
    for (Queries.Query one : attachment.queries.all()) {
      StreamExecution query = one.active ? attachment.running(one.run) : null;
      StreamExecution before = query == null ? known.remove(one.name) : known.get(one.name);
      if (before != null && before != query) {
        KafkaOffsets.close(before);
      }
      if (query != null && KafkaOffsets.reads(query)) {
        look(one.name, query);
      }
    }
  }

  private void look(String name, StreamExecution query) throws Exception {
    try {
      known.put(name, query);
      if (!query.runId().toString().equals(dated.get(name))) {
        date(name, query);
        dated.put(name, query.runId().toString());
      }
      ObjectNode line = line(KafkaOffsets.at(query, -1, ANSWER_MS));
      taken(query, line);
      attachment.folder.source(name, line);
      problems.remove(name);
    } catch (Exception problem) {
      if (ended) {
        return;
      }
      String told = Guard.redacted(told(problem));
      attachment.guard.once("topics of " + name + "/" + cause(problem).getClass(), "the topics of " + name + ": " + told);
      if (!told.equals(problems.put(name, told))) {
        attachment.folder.source(name, RunFolder.JSON.createObjectNode().put("at_s", now()).put("problem", told));
      }
    }
  }

  /** Dates the initial backlog with the broker's time index, at ages of 18 hours to half a second. */
  private void date(String name, StreamExecution query) throws Exception {
    double now = now();
    for (int i = AGES - 1; i >= 0; i--) {
      double then = now - 0.5 * (1 << i);
      ObjectNode line = line(KafkaOffsets.at(query, (long) (then * 1e3), ANSWER_MS));
      attachment.folder.source(name, line.put("at_s", then).put("dated", true));
    }
  }

  private static ObjectNode line(String answer) {
    ObjectNode out = RunFolder.JSON.createObjectNode().put("at_s", now());
    ObjectNode latest = out.putObject("latest");
    long most = 0;
    boolean bounded = true;
    int source = 0;
    for (String text : answer.split("\n", -1)) {
      String[] parts = text.split("\t");
      if (!text.isEmpty()) {
        most += Long.parseLong(parts[0]);
        bounded &= !parts[0].equals("0");
        for (int i = 1; i + 2 < parts.length; i += 3) {
          latest.put(source + "/" + parts[i] + "/" + parts[i + 1], Long.parseLong(parts[i + 2]));
        }
      }
      source++;
    }
    return out.put("tasks", bounded ? most : 0);
  }

  /** Adds the offsets that batches have been planned up to, whether they have ended or not; none before the first. */
  private static void taken(StreamExecution query, ObjectNode line) throws Exception {
    ObjectNode taken = line.putObject("taken");
    int source = 0;
    for (SparkDataStream stream : CollectionConverters.asJava(query.sources())) {
      var offset = query.availableOffsets().get(stream);
      JsonNode topics = offset.isDefined() ? RunFolder.JSON.readTree(offset.get().json()) : null;
      if (topics != null && topics.isObject()) {
        for (var topic : topics.properties()) {
          for (var partition : topic.getValue().properties()) {
            taken.set(source + "/" + topic.getKey() + "/" + partition.getKey(), partition.getValue());
          }
        }
      }
      source++;
    }
  }

  private static Throwable cause(Throwable problem) {
    Throwable cause = problem;
    while (cause.getCause() != null && cause.getCause() != cause) {
      cause = cause.getCause();
    }
    return cause;
  }

  /** Describes the root cause in one line. */
  private static String told(Throwable problem) {
    Throwable cause = cause(problem);
    String kind = cause.getClass().getSimpleName();
    if (cause instanceof TimeoutException || kind.equals("TimeoutException") || kind.equals("DisconnectException")) {
      return "the broker does not answer; lag and latency are not known until it does";
    }
    if (kind.equals("UnknownTopicOrPartitionException")) {
      return "the broker has no such topic (any more); lag and latency are not known until it does";
    }
    return "the broker could not be asked (" + cause + "); lag and latency are taken from progress reports";
  }

  private static double now() {
    return System.currentTimeMillis() / 1e3;
  }
}
