package sluicegate;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import scala.Option;
import scala.collection.immutable.Set;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads the offsets of a query's topics from the broker, independently of the query, with our own admin client that is
 * built from the query's settings.
 *
 * <p>The connector is in the user's session, in a class loader below ours, so its classes and Kafka's are called by
 * reflection. If one of them is not as expected this throws, and the caller does without the offsets.
 */
public final class KafkaOffsets {
  private static final String STREAM = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream";
  private static final String STRATEGY = "org.apache.spark.sql.kafka010.ConsumerStrategy";
  private static final String ADMIN = "org.apache.kafka.clients.admin.Admin";
  private static final Map<SparkDataStream, AutoCloseable> CLIENTS = Collections.synchronizedMap(new WeakHashMap<>());

  /**
   * One line per source of the query, in the order of its offset log: empty if it is not Kafka's, else the most tasks
   * of a batch of it (0: no bound) and "topic partition offset" triples, tab-separated.
   * {@code atMs} is the time to ask for (the first offset of that time or later, the latest if there is none);
   * a negative time means now.
   */
  public static String at(StreamExecution query, long atMs, long timeoutMs) throws Exception {
    StringBuilder out = new StringBuilder();
    for (SparkDataStream source : CollectionConverters.asJava(query.sources())) {
      if (source.getClass().getName().equals(STREAM)) {
        out.append(ofSource(source, atMs, timeoutMs));
      }
      out.append('\n');
    }
    return out.toString();
  }

  /** Whether the query has a Kafka source; sources are known once the query has begun. */
  public static boolean reads(StreamExecution query) {
    return CollectionConverters.asJava(query.sources()).stream().anyMatch(s -> s.getClass().getName().equals(STREAM));
  }

  /** The brokers' addresses, as the user gave them; empty if the source is not Kafka's. */
  public static String servers(SparkDataStream source) throws Exception {
    if (!source.getClass().getName().equals(STREAM)) {
      return "";
    }
    Map<?, ?> settings = (Map<?, ?>) read(read(source, "kafkaOffsetReader"), "driverKafkaParams");
    Object found = settings.get("bootstrap.servers");
    return found == null ? "" : found.toString();
  }

  /** Closes the admin clients of a query. */
  public static void close(StreamExecution query) throws Exception {
    for (SparkDataStream source : CollectionConverters.asJava(query.sources())) {
      AutoCloseable client = CLIENTS.remove(source);
      if (client != null) {
        named(client.getClass().getClassLoader(), ADMIN).getMethod("close", Duration.class).invoke(client, Duration.ZERO);
      }
    }
  }

  private static String ofSource(SparkDataStream source, long atMs, long timeoutMs) throws Exception {
    Object reader = read(source, "kafkaOffsetReader");
    Object strategy = read(reader, "consumerStrategy");
    ClassLoader loader = source.getClass().getClassLoader();
    Class<?> adminType = named(loader, ADMIN);
    Object admin = client(source, strategy, reader);
    Method assigned = named(loader, STRATEGY).getMethod("assignedTopicPartitions", adminType);
    Set<?> partitions = (Set<?>) open(assigned).invoke(strategy, admin);
    Class<?> spec = named(loader, "org.apache.kafka.clients.admin.OffsetSpec");
    Object latest = spec.getMethod("latest").invoke(null);
    Object wanted = atMs < 0 ? latest : spec.getMethod("forTimestamp", long.class).invoke(null, atMs);
    Map<Object, Object> asked = new HashMap<>();
    CollectionConverters.asJava(partitions).forEach(partition -> asked.put(partition, wanted));
    Map<Object, Long> offsets = listed(adminType, admin, asked, timeoutMs);
    Map<Object, Object> later = new HashMap<>(); // no row of that time or later: use the end offset
    offsets.forEach((partition, offset) -> later.computeIfAbsent(partition, p -> offset < 0 ? latest : null));
    if (!later.isEmpty()) {
      offsets.putAll(listed(adminType, admin, later, timeoutMs));
    }
    Map<String, Long> sorted = new TreeMap<>();
    for (var entry : offsets.entrySet()) {
      Object partition = entry.getKey();
      String topic = (String) partition.getClass().getMethod("topic").invoke(partition);
      sorted.put(topic + "\t" + partition.getClass().getMethod("partition").invoke(partition), entry.getValue());
    }
    StringBuilder out = new StringBuilder().append(tasks(reader, sorted.size()));
    sorted.forEach((partition, offset) -> out.append('\t').append(partition).append('\t').append(offset));
    return out.toString();
  }

  /** The most tasks of a batch: one per partition, unless the user lets the connector split partitions. */
  private static long tasks(Object reader, int partitions) throws Exception {
    Object calculator = read(reader, "rangeCalculator");
    if (((Option<?>) read(calculator, "maxRecordsPerPartition")).isDefined()) {
      return 0;
    }
    Option<?> least = (Option<?>) read(calculator, "minPartitions");
    return least.isDefined() ? Math.max(((Number) least.get()).longValue(), partitions) : partitions;
  }

  private static Object client(SparkDataStream source, Object strategy, Object reader) throws Exception {
    AutoCloseable known = CLIENTS.get(source);
    if (known == null) {
      Map<Object, Object> settings = new HashMap<>((Map<?, ?>) read(reader, "driverKafkaParams"));
      settings.put("request.timeout.ms", "5000"); // fail fast if no broker answers
      settings.put("default.api.timeout.ms", "10000");
      Method create = named(source.getClass().getClassLoader(), STRATEGY).getMethod("createAdmin", Map.class);
      known = (AutoCloseable) open(create).invoke(strategy, settings);
      CLIENTS.put(source, known);
    }
    return known;
  }

  private static Map<Object, Long> listed(Class<?> adminType, Object admin, Map<Object, Object> asked, long timeoutMs)
      throws Exception {
    Object result = adminType.getMethod("listOffsets", Map.class).invoke(admin, asked);
    Object all = result.getClass().getMethod("all").invoke(result);
    CompletionStage<?> answer = (CompletionStage<?>) all.getClass().getMethod("toCompletionStage").invoke(all);
    Map<?, ?> found = (Map<?, ?>) answer.toCompletableFuture().get(timeoutMs, TimeUnit.MILLISECONDS);
    Map<Object, Long> offsets = new HashMap<>();
    for (var entry : found.entrySet()) {
      Object info = entry.getValue();
      offsets.put(entry.getKey(), (Long) open(info.getClass().getMethod("offset")).invoke(info));
    }
    return offsets;
  }

  private static Object read(Object of, String name) throws ReflectiveOperationException {
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          field.setAccessible(true);
          return field.get(of);
        }
      }
    }
    throw new NoSuchFieldException(of.getClass().getName() + "." + name);
  }

  private static Method open(Method method) {
    method.setAccessible(true);
    return method;
  }

  private static Class<?> named(ClassLoader loader, String name) throws ClassNotFoundException {
    return Class.forName(name, false, loader);
  }
}
