package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import java.util.zip.CRC32;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;

/** The application's streaming queries, as pipeline.json describes them. */
final class Queries {
  /** One query. A query that is restarted under the same name is the same query. */
  static final class Query {
    final String name;
    volatile String given;
    volatile String checkpoint;
    volatile boolean continuous;
    volatile String id;
    private String idBefore;
    volatile String run;
    volatile boolean active = true;
    volatile boolean stateful;
    volatile int partitions = 1;
    volatile int batches;
    volatile long lastBatch = -1;
    volatile double lastSeconds;
    volatile long number;

    /** Why no plan moves its tasks, and what of that is described; null if plans do. */
    volatile String left;
    volatile String leftDescribed;

    /** The last batch whose rows go to foreach, and the last with stages whose tasks a plan may move. */
    volatile long foreachBatch = Long.MIN_VALUE;
    volatile long movableBatch = Long.MIN_VALUE;

    volatile List<Ends.End> reads = List.of();
    volatile List<Ends.End> writes = List.of();

    Query(String name, String id, String run) {
      this.name = name;
      this.id = id;
      this.run = run;
    }
  }

  private static final int MOST_NAME = 100;
  private static final int CUT_NAME = 60;
  private static final int MOST_ENDED = 100;

  private final Map<String, Query> byName = new ConcurrentHashMap<>();
  private final Map<String, Query> byId = new ConcurrentHashMap<>();
  private final Queue<String> forgotten = new ConcurrentLinkedQueue<>();
  private long count;

  Query byId(String id) {
    return byId.get(id);
  }

  Query byName(String name) {
    return byName.get(name);
  }

  /** How long the last batch of a query took, by its name; 0 if it had none yet. */
  double lastSeconds(String name) {
    Query query = name == null ? null : byName.get(name);
    return query == null ? 0 : query.lastSeconds;
  }

  /** The next query that is no longer described, and has not come back; null if there is none. */
  String nextForgotten() {
    String name = forgotten.poll();
    while (name != null && byName.containsKey(name)) {
      name = forgotten.poll();
    }
    return name;
  }

  Collection<Query> all() {
    return byName.values();
  }

  synchronized Query started(String id, String run, String given) {
    return started(id, run, given, none -> true);
  }

  /**
   * {@code runs} tells by run id which queries really run: the event of a query's end may still wait when another one
   * starts under its name. A query keeps the name that it got first.
   */
  synchronized Query started(String id, String run, String given, Predicate<String> runs) {
    String plain = plain(given, id);
    Query known = byId.get(id);
    Query there = byName.get(plain);
    boolean other = there != null && there.active && !there.id.equals(id) && runs.test(there.run);
    String name = known != null && known.id.equals(id) ? known.name : other ? plain + "-" + id.substring(0, 8) : plain;
    Query query = byName.computeIfAbsent(name, none -> new Query(name, id, run));
    if (!run.equals(query.run)) {
      query.batches = 0;
      query.lastBatch = -1;
    }
    if (!id.equals(query.id)) { // started without a checkpoint again and again: a new id each time
      forget(query.idBefore, query);
      query.idBefore = query.id; // its last events may still come
    }
    query.id = id;
    query.run = run;
    query.given = given;
    query.active = true;
    query.number = ++count;
    byId.put(id, query);
    forgetOldest();
    return query;
  }

  /** Marks a query as ended, unless it has been started again; returns whether it ran until now. */
  synchronized boolean ended(Query query, String run) {
    boolean ends = query.active && query.run.equals(run);
    query.active &= !ends;
    return ends;
  }

  private void forget(String id, Query query) {
    if (id != null) {
      byId.remove(id, query);
    }
  }

  /** Keeps only the newest ended queries, for applications that start new queries all the time. */
  private void forgetOldest() {
    var byAge = Comparator.<Query>comparingLong(one -> one.number);
    List<Query> ended = byName.values().stream().filter(one -> !one.active).sorted(byAge).toList();
    for (Query old : ended.subList(0, Math.max(ended.size() - MOST_ENDED, 0))) {
      byName.remove(old.name);
      forgotten.add(old.name);
      byId.values().removeIf(one -> one == old);
    }
  }

  /**
   * A query name that is safe as a folder name: letters, digits and a few signs, a letter first. If characters are lost
   * or the name is too long, a checksum of the original name keeps it unique; the same rule as in options.py.
   */
  static String plain(String given, String id) {
    if (given == null || given.isBlank()) {
      return "query-" + id.substring(0, 8);
    }
    String plain = given.replaceAll("[^\\w.+\\-]", "_");
    boolean starts = Character.isLetter(plain.charAt(0)) && !plain.matches("(source|sink).*");
    String name = starts ? plain : "q-" + plain;
    if (given.chars().allMatch(letter -> letter < 128) && name.length() <= MOST_NAME) {
      return name;
    }
    CRC32 sum = new CRC32();
    sum.update(given.getBytes(StandardCharsets.UTF_8));
    return name.substring(0, Math.min(name.length(), CUT_NAME)) + String.format("-%08x", sum.getValue());
  }

  /** Updates a query from a progress report; returns whether anything changed. */
  static boolean describe(Query query, JsonNode progress, StreamExecution running) {
    List<Ends.End> reads = Ends.reads(progress, running);
    List<Ends.End> writes = List.of(Ends.writes(progress, running, query.name + "-out"));
    int partitions = 0;
    for (JsonNode state : progress.path("stateOperators")) {
      partitions = Math.max(partitions, state.path("numShufflePartitions").asInt());
    }
    boolean stateful = progress.path("stateOperators").size() > 0;
    boolean continuous = running != null && SparkInternals.isContinuous(running);
    boolean fresh =
        !reads.equals(query.reads)
            || !writes.equals(query.writes)
            || stateful != query.stateful
            || continuous != query.continuous
            || (partitions > 0 && partitions != query.partitions);
    query.reads = reads;
    query.writes = writes;
    query.stateful = stateful;
    query.continuous = continuous;
    query.partitions = partitions > 0 ? partitions : query.partitions;
    return fresh;
  }

  /**
   * A short name: clicks for KafkaV2[Subscribe[clicks]], in for FileStreamSource[file:/data/in], and RateStream
   * rowsPerSecond=5 for RateStreamV2[rowsPerSecond=5, numPartitions=default].
   */
  static String shortened(String description) {
    if (description.matches("\\w+\\[\\w+=[^/\\[]*")) {
      return description.replaceFirst("(V\\d)?\\[", " ").replaceAll("[,\\]].*", "");
    }
    String inner = description.replaceAll("\\]+$", "");
    inner = inner.substring(inner.lastIndexOf('[') + 1).replaceAll("/+$", "");
    String last = inner.substring(inner.lastIndexOf('/') + 1).replaceAll("@[0-9a-f]+$", "");
    String dotted = last.matches("([a-z]\\w*\\.)+[A-Z].*") ? last.substring(last.lastIndexOf('.') + 1) : last;
    return dotted.isBlank() ? "stream" : dotted.length() > 60 ? dotted.substring(0, 60) : dotted;
  }

  private static void named(ObjectNode node, String what, List<Ends.End> ends, Map<String, String> names) {
    ArrayNode shown = node.putArray(what);
    ArrayNode places = node.putArray(what + "_at");
    for (Ends.End end : ends) {
      shown.add(name(end, names));
      places.add(end.at());
    }
  }

  /** A unique display name for each location: /a/out and /b/out become out and b/out. */
  private static String name(Ends.End end, Map<String, String> names) {
    if (end.at() == null) {
      return end.name();
    }
    String first = names.putIfAbsent(end.name(), end.at());
    if (first == null || first.equals(end.at())) {
      return end.name();
    }
    String[] parts = end.at().split("/");
    String longer = parts.length > 1 ? parts[parts.length - 2] + "/" + parts[parts.length - 1] : end.at();
    first = names.putIfAbsent(longer, end.at());
    return first == null || first.equals(end.at()) ? longer : end.at();
  }

  ObjectNode description(String application, UnaryOperator<String> checkpointOfRun) {
    ObjectNode out = RunFolder.JSON.createObjectNode().put("name", application).put("attached", true);
    ArrayNode nodes = RunFolder.JSON.createArrayNode();
    Set<String> written = new LinkedHashSet<>();
    Set<String> read = new LinkedHashSet<>();
    Map<String, String> names = new HashMap<>();
    for (Query query : byName.values()) {
      ObjectNode node = nodes.addObject().put("name", query.name).put("id", query.id).put("active", query.active);
      String checkpoint = query.active ? checkpointOfRun.apply(query.run) : null;
      query.checkpoint = checkpoint == null ? query.checkpoint : Guard.redacted(checkpoint.replaceFirst("^file:/+", "/"));
      node.put("given", query.given).put("checkpoint", query.checkpoint).put("continuous", query.continuous);
      node.put("left", query.leftDescribed);
      named(node, "reads", query.reads, names);
      named(node, "writes", query.writes, names);
      node.put("stateful", query.stateful).put("key_groups", query.partitions).put("terminal", true);
      node.putNull("source");
      query.reads.forEach(end -> read.add(name(end, names)));
      query.writes.forEach(end -> written.add(name(end, names)));
    }
    ArrayNode sources = out.putArray("sources");
    read.stream().filter(one -> !written.contains(one)).forEach(sources::add);
    ArrayNode kept = out.putArray("kept");
    written.forEach(kept::add);
    out.set("nodes", nodes);
    return out;
  }
}
