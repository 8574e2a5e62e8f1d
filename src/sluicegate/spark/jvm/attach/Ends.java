package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import sluicegate.KafkaOffsets;

/**
 * The sources and the sink of a query, as kafka://SERVERS/TOPIC or a path, so that queries that read each other's
 * topics, tables and folders can be connected. The location is null if progress reports and the plan do not give it.
 */
final class Ends {
  private Ends() {}

  /** One source or sink: its display name, and its location, or null if unknown. */
  record End(String name, String at) {}

  static List<End> reads(JsonNode progress, StreamExecution query) {
    List<End> found = new ArrayList<>();
    int number = 0;
    for (JsonNode source : progress.path("sources")) {
      String described = Guard.redacted(source.path("description").asText(""));
      if (described.startsWith("Kafka") && source.path("endOffset").isObject()) {
        String servers = servers(query, number);
        source.path("endOffset").fieldNames().forEachRemaining(t -> found.add(new End(t, kafka(servers, t))));
      } else {
        found.add(new End(Queries.shortened(described), path(described)));
      }
      number++;
    }
    return found;
  }

  static End writes(JsonNode progress, StreamExecution query, String otherwise) {
    String described = Guard.redacted(progress.path("sink").path("description").asText(""));
    if (described.contains("KafkaSourceProvider")) {
      Option<String> topic = option(query, "topic");
      String servers = option(query, "kafka.bootstrap.servers").getOrElse(() -> "");
      return topic.isDefined() ? new End(topic.get(), kafka(servers, topic.get())) : new End(otherwise, null);
    }
    // sinks without a location must stay distinct: two queries with foreachBatch write to different places
    return described.contains("[") ? new End(Queries.shortened(described), path(described)) : new End(otherwise, null);
  }

  private static String kafka(String servers, String topic) {
    return "kafka://" + servers + "/" + topic;
  }

  /** The text in brackets if it is a path, as in FileSink[/data/out] or FileStreamSource[file:/data/in]. */
  private static String path(String described) {
    int from = described.indexOf('[');
    String inner = from < 0 ? "" : described.substring(from + 1).replaceAll("\\]+$", "");
    return inner.contains("/") && !inner.contains("[") ? inner.replaceAll("/+$", "").replaceFirst("^file:/+", "/") : null;
  }

  private static String servers(StreamExecution query, int number) {
    try {
      List<SparkDataStream> sources = CollectionConverters.asJava(query.sources());
      return KafkaOffsets.servers(sources.get(number));
    } catch (Exception | LinkageError unknown) {
      return "";
    }
  }

  private static Option<String> option(StreamExecution query, String key) {
    return query != null && query.logicalPlan() instanceof WriteToMicroBatchDataSource write
        ? write.writeOptions().get(key)
        : Option.empty();
  }
}
