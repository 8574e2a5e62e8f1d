package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The application's streaming queries, as pipeline.json describes them. */
final class Queries {
  /** One query. A query that is started again under its name is the same one. */
  static final class Query {
    final String name;
    volatile String id;
    volatile String run;
    volatile boolean active = true;
    volatile boolean stateful;
    volatile int partitions = 1;
    volatile int batches;
    volatile List<String> reads = List.of();
    volatile List<String> writes = List.of();

    Query(String name, String id, String run) {
      this.name = name;
      this.id = id;
      this.run = run;
    }
  }

  private final Map<String, Query> byName = new ConcurrentHashMap<>();
  private final Map<String, Query> byId = new ConcurrentHashMap<>();

  Query byId(String id) {
    return byId.get(id);
  }

  Collection<Query> all() {
    return byName.values();
  }

  synchronized Query started(String id, String run, String given) {
    String plain = plain(given, id);
    Query there = byName.get(plain);
    boolean other = there != null && there.active && !there.id.equals(id);
    String name = other ? plain + "-" + id.substring(0, 8) : plain;
    Query query = byName.computeIfAbsent(name, none -> new Query(name, id, run));
    if (!run.equals(query.run)) {
      query.batches = 0;
    }
    query.id = id;
    query.run = run;
    query.active = true;
    byId.put(id, query);
    return query;
  }

  /** Letters, digits and a few signs, a letter first: a query's name is a folder's name too. */
  static String plain(String given, String id) {
    if (given == null || given.isBlank()) {
      return "query-" + id.substring(0, 8);
    }
    String plain = given.replaceAll("[^\\w.+\\-]", "_");
    boolean starts = Character.isLetter(plain.charAt(0)) && !plain.matches("(source|sink).*");
    return starts ? plain : "q-" + plain;
  }

  /** What a progress report says of a query; whether that is new. */
  static boolean describe(Query query, JsonNode progress) {
    List<String> reads = new ArrayList<>();
    progress.path("sources").forEach(source -> reads.add(shortened(source.path("description").asText(""))));
    String sink = progress.path("sink").path("description").asText("");
    // sinks that name no place are not one and the same: two queries with foreachBatch write to two places
    List<String> writes = List.of(sink.contains("[") ? shortened(sink) : query.name + "-out");
    int partitions = 0;
    for (JsonNode state : progress.path("stateOperators")) {
      partitions = Math.max(partitions, state.path("numShufflePartitions").asInt());
    }
    boolean stateful = progress.path("stateOperators").size() > 0;
    boolean fresh =
        !reads.equals(query.reads)
            || !writes.equals(query.writes)
            || stateful != query.stateful
            || (partitions > 0 && partitions != query.partitions);
    query.reads = reads;
    query.writes = writes;
    query.stateful = stateful;
    query.partitions = partitions > 0 ? partitions : query.partitions;
    return fresh;
  }

  /** KafkaV2[Subscribe[clicks]] is clicks, FileStreamSource[file:/data/in] is in. */
  static String shortened(String description) {
    String inner = description.replaceAll("\\]+$", "");
    inner = inner.substring(inner.lastIndexOf('[') + 1).replaceAll("/+$", "");
    String last = inner.substring(inner.lastIndexOf('/') + 1).replaceAll("@[0-9a-f]+$", "");
    String dotted = last.matches("([a-z]\\w*\\.)+[A-Z].*") ? last.substring(last.lastIndexOf('.') + 1) : last;
    return dotted.isBlank() ? "stream" : dotted.length() > 60 ? dotted.substring(0, 60) : dotted;
  }

  ObjectNode description(String application) {
    ObjectNode out = RunFolder.JSON.createObjectNode().put("name", application).put("attached", true);
    ArrayNode nodes = RunFolder.JSON.createArrayNode();
    Set<String> written = new LinkedHashSet<>();
    Set<String> read = new LinkedHashSet<>();
    for (Query query : byName.values()) {
      ObjectNode node = nodes.addObject().put("name", query.name).put("id", query.id).put("active", query.active);
      query.reads.forEach(node.putArray("reads")::add);
      query.writes.forEach(node.putArray("writes")::add);
      node.put("stateful", query.stateful).put("key_groups", query.partitions).put("terminal", true);
      node.putNull("source");
      read.addAll(query.reads);
      written.addAll(query.writes);
    }
    ArrayNode sources = out.putArray("sources");
    read.stream().filter(one -> !written.contains(one)).forEach(sources::add);
    ArrayNode kept = out.putArray("kept");
    written.forEach(kept::add);
    out.set("nodes", nodes);
    return out;
  }
}
