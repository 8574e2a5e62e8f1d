package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;

/** The plan in force from plan.json: tasks by query and stage, and executors. If empty, Spark runs unmodified. */
record WantedPlan(Map<String, Query> queries, int executors) {
  static final WantedPlan NONE = new WantedPlan(Map.of(), 0);
  private static final int MOST_SPREAD = 10_000;
  private static final long MOST_PACE_MS = 3_600_000;

  /**
   * Tasks of one query. {@code stages}, by kind (scan, shuffle, state) or number, override {@code tasks}, which is for
   * shuffle and state stages; {@code byBatch} changes all of them at every batch, for tests. {@code spread}: tasks that
   * read its sources if they provide fewer, 0: unchanged; {@code pace} is null if it is not controlled.
   */
  record Query(int tasks, Map<String, Integer> stages, int[] byBatch, int spread, Pace pace) {
    static final Query AS_IT_IS = new Query(0, Map.of(), new int[0], 0, null);

    int tasksOf(String kind, int stage, long batch) {
      if (byBatch.length > 0) {
        return batch < 0 ? 0 : byBatch[(int) (batch % byBatch.length)];
      }
      Integer chosen = stages.getOrDefault(Integer.toString(stage), stages.get(kind));
      return chosen != null ? chosen : kind.equals(SparkInternals.SCAN) ? 0 : tasks;
    }
  }

  /** Milliseconds between batch starts (0: back to back), and the most rows and files per batch. */
  record Pace(long everyMs, long mostRows, int mostFiles) {}

  static WantedPlan of(JsonNode document) {
    Map<String, Query> queries = new HashMap<>();
    document.path("operators").properties().forEach(one -> queries.put(one.getKey(), query(one.getValue())));
    return new WantedPlan(Map.copyOf(queries), document.path("executors").asInt(0));
  }

  private static Query query(JsonNode one) {
    Map<String, Integer> stages = new HashMap<>();
    one.path("stages").properties().forEach(stage -> stages.put(stage.getKey(), stage.getValue().asInt()));
    int[] byBatch = new int[one.path("by_batch").size()];
    for (int i = 0; i < byBatch.length; i++) {
      byBatch[i] = one.path("by_batch").get(i).asInt();
    }
    Pace pace = null;
    if (one.path("pace_s").isNumber()) {
      long rows = one.path("most_rows").asLong(0);
      int files = one.path("most_files").asInt(0);
      long every = Math.min(Math.max(Math.round(one.path("pace_s").asDouble() * 1e3), 0), MOST_PACE_MS);
      pace = new Pace(every, rows > 0 ? rows : Long.MAX_VALUE, files > 0 ? files : Integer.MAX_VALUE);
    }
    int spread = Math.min(one.path("spread").asInt(0), MOST_SPREAD);
    return new Query(one.path("processors").asInt(0), Map.copyOf(stages), byBatch, spread, pace);
  }
}
