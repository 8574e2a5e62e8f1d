package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;

/** The plan in force, as plan.json has it: tasks by query and stage, executors. An empty one: Spark as it is. */
record WantedPlan(Map<String, Query> queries, int executors) {
  static final WantedPlan NONE = new WantedPlan(Map.of(), 0);

  /**
   * Tasks of one query. {@code stages} by kind (scan, shuffle, state) or by number go before {@code tasks}, which is for
   * shuffle and state stages; {@code byBatch} moves all of them at every batch, for tests.
   */
  record Query(int tasks, Map<String, Integer> stages, int[] byBatch) {
    int tasksOf(String kind, int stage, long batch) {
      if (byBatch.length > 0) {
        return batch < 0 ? 0 : byBatch[(int) (batch % byBatch.length)];
      }
      Integer chosen = stages.getOrDefault(Integer.toString(stage), stages.get(kind));
      return chosen != null ? chosen : kind.equals(SparkInternals.SCAN) ? 0 : tasks;
    }
  }

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
    return new Query(one.path("processors").asInt(0), Map.copyOf(stages), byBatch);
  }
}
