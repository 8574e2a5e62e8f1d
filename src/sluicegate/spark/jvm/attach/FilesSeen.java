package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;

/**
 * Lists the input folders of queries periodically: files not read yet, and modification times of the recent ones.
 *
 * <p>On its own thread, of which it takes at most a fiftieth: slow listings are made less often. A listing ends beyond a
 * second or {@link #MOST_FILES} files, and a query is no longer listed after {@link #MOST_FAILED} that ended so or failed
 * in a row: one alone may be a busy disk's. Object stores are not listed, as they charge for it.
 */
final class FilesSeen {
  private static final Set<String> LISTED = Set.of("file", "hdfs", "viewfs", "webhdfs", "swebhdfs");
  private static final int MOST_FILES = 20_000;
  private static final long MOST_NANOS = 1_000_000_000L;
  private static final int RARELY = 50;
  private static final long REMEMBERED_MS = 120_000;
  private static final long MOST_LOG_BYTES = 4_000_000;
  private static final int MOST_ASKED = 20;
  private static final int MOST_FAILED = 5;
  private static final long AGAIN_NANOS = 1_000_000_000L;

  private final Attachment attachment;
  private final Map<String, Sample> samples = new ConcurrentHashMap<>();

  FilesSeen(Attachment attachment) {
    this.attachment = attachment;
  }

  /** The last listing of one query's files. */
  private static final class Sample {
    final Map<String, Long> recent = new HashMap<>();
    final Map<String, Long> bytes = new ConcurrentHashMap<>();
    final Set<String> notTaken = ConcurrentHashMap.newKeySet();
    final Map<String, Long> unread = new ConcurrentHashMap<>();
    long againAt = System.nanoTime();
    int failed;
    boolean gone;
    volatile ObjectNode told;
  }

  /** Lists the files of all queries that are due. */
  void look() {
    for (Queries.Query query : attachment.queries.all()) {
      if (!query.active) {
        samples.remove(query.name);
        continue;
      }
      Sample sample = samples.computeIfAbsent(query.name, none -> new Sample());
      if (!sample.gone && System.nanoTime() - sample.againAt >= 0) {
        long began = System.nanoTime();
        try {
          attachment.guard.fault("listing");
          list(query, sample);
          sample.failed = 0;
        } catch (Throwable problem) {
          if (++sample.failed >= MOST_FAILED) {
            giveUp(query, sample, Guard.words(problem));
          }
          sample.told = null; // until a listing says how many there are now
          sample.againAt = Math.max(sample.againAt, System.nanoTime() + (AGAIN_NANOS << sample.failed));
        }
        sample.againAt = Math.max(sample.againAt, System.nanoTime() + RARELY * (System.nanoTime() - began));
      }
    }
  }

  /** All samples, by query, for the controller. */
  ObjectNode told() {
    ObjectNode out = RunFolder.JSON.createObjectNode();
    samples.forEach((name, sample) -> {
      if (sample.told != null) {
        out.set(name, sample.told);
      }
    });
    return out;
  }

  /** Excludes files that were there before a trigger that found no rows: the query does not read them. */
  void foundNothing(String query, double lookedSeconds) {
    Sample sample = samples.get(query);
    if (sample != null) {
      sample.unread.forEach((path, came) -> {
        if (came / 1e3 < lookedSeconds - 2) {
          sample.notTaken.add(path);
        }
      });
    }
  }

  private void list(Queries.Query query, Sample sample) throws Exception {
    long began = System.nanoTime();
    long now = System.currentTimeMillis();
    Map<String, Long> unread = new HashMap<>();
    Set<String> there = new HashSet<>();
    boolean any = false;
    for (SparkDataStream source : attachment.sourcesOf(query.run)) {
      Path path = SparkInternals.filesOf(source);
      if (path == null) {
        continue;
      }
      any = true;
      Configuration conf = attachment.context.hadoopConfiguration();
      FileSystem fs = path.getFileSystem(conf);
      if (!LISTED.contains(fs.getUri().getScheme())) {
        giveUp(query, sample, "its files are on an object store, which is not listed");
        return;
      }
      Map<String, FileStatus> found = new HashMap<>();
      FileStatus[] roots = fs.globStatus(path);
      for (FileStatus root : roots == null ? new FileStatus[0] : roots) {
        walk(fs, root, found, began);
      }
      for (var file : found.entrySet()) {
        if (file.getValue().getModificationTime() > now - REMEMBERED_MS) {
          sample.recent.put(file.getKey(), file.getValue().getModificationTime());
        }
      }
      found.forEach((name, file) -> sample.bytes.put(name, file.getLen()));
      there.addAll(found.keySet());
      unread.putAll(SparkInternals.unread(source, found));
    }
    sample.bytes.keySet().retainAll(there);
    sample.notTaken.retainAll(there);
    unread.keySet().removeAll(sample.notTaken);
    sample.recent.values().removeIf(came -> came < now - REMEMBERED_MS);
    sample.unread.keySet().retainAll(unread.keySet());
    sample.unread.putAll(unread);
    if (any) {
      sample.told = document(sample, now);
    }
  }

  private static void walk(FileSystem fs, FileStatus at, Map<String, FileStatus> found, long began) throws Exception {
    if (System.nanoTime() - began > MOST_NANOS || found.size() > MOST_FILES) {
      throw new IllegalStateException("listing its files takes too long");
    }
    if (at.isFile()) {
      found.put(at.getPath().toString(), at);
      return;
    }
    for (FileStatus one : fs.listStatus(at.getPath())) {
      String name = one.getPath().getName();
      boolean hidden = name.startsWith(".") || (name.startsWith("_") && !name.contains("="));
      if (!hidden && !name.endsWith("._COPYING_")) {
        walk(fs, one, found, began);
      }
    }
  }

  private ObjectNode document(Sample sample, long now) {
    ObjectNode out = RunFolder.JSON.createObjectNode().put("at_s", now / 1e3).put("waiting", sample.unread.size());
    out.put("waiting_bytes", sample.unread.keySet().stream().mapToLong(path -> sample.bytes.getOrDefault(path, 0L)).sum());
    Map<Long, long[]> bySecond = new TreeMap<>();
    sample.recent.forEach((path, came) -> {
      if (!sample.notTaken.contains(path)) {
        long[] there = bySecond.computeIfAbsent(came / 1000, none -> new long[2]);
        there[0] += 1;
        there[1] += sample.bytes.getOrDefault(path, 0L);
      }
    });
    ArrayNode came = out.putArray("came");
    bySecond.forEach((second, there) -> came.addArray().add(second).add(there[0]).add(there[1]));
    return out;
  }

  private void giveUp(Queries.Query query, Sample sample, String why) {
    sample.gone = true;
    sample.told = null;
    attachment.guard.once("files waiting for " + query.name + " are not counted: " + why);
  }

  /**
   * Adds to a batch's source the modification times of its files, as [seconds, files], and their total size: names and
   * times are from the checkpoint, sizes from the listing. What is not available is left out.
   */
  void tellBatch(Queries.Query query, int source, JsonNode start, JsonNode end, ObjectNode told) {
    String root = attachment.checkpointOf(query.run);
    if (root == null || !end.has("logOffset")) {
      return;
    }
    Map<Long, Integer> byTenth = new TreeMap<>();
    Set<String> paths = new HashSet<>();
    try {
      for (long n = start.path("logOffset").asLong(-1) + 1; n <= end.path("logOffset").asLong(); n++) {
        read(new Path(new Path(root, "sources"), Integer.toString(source)), n, byTenth, paths);
      }
      Long bytes = bytesOf(paths, samples.get(query.name));
      if (bytes != null) {
        told.put("bytes", bytes);
      }
    } catch (Exception problem) {
      return;
    }
    if (!byTenth.isEmpty()) {
      ArrayNode out = told.putArray("files");
      byTenth.forEach((tenth, files) -> out.addArray().add(tenth / 10.0).add(files));
    }
  }

  /** The total size of files; null if the query is not listed, or too many files would have to be looked up. */
  private Long bytesOf(Set<String> paths, Sample sample) throws Exception {
    if (sample == null || sample.gone) {
      return null;
    }
    long bytes = 0;
    int asked = 0;
    for (String path : paths) {
      Path file = new Path(new URI(path));
      Long known = sample.bytes.get(file.toString());
      if (known == null && ++asked > MOST_ASKED) {
        return null;
      }
      bytes += known != null ? known : file.getFileSystem(attachment.context.hadoopConfiguration()).getFileStatus(file).getLen();
    }
    return bytes;
  }

  private void read(Path folder, long number, Map<Long, Integer> byTenth, Set<String> paths) throws Exception {
    FileSystem fs = folder.getFileSystem(attachment.context.hadoopConfiguration());
    Path plain = new Path(folder, Long.toString(number));
    Path log = fs.exists(plain) ? plain : new Path(folder, number + ".compact");
    if (fs.getFileStatus(log).getLen() > MOST_LOG_BYTES) {
      throw new IllegalStateException("too long a log");
    }
    try (var lines = new BufferedReader(new InputStreamReader(fs.open(log), StandardCharsets.UTF_8))) {
      lines.readLine(); // the version line
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        JsonNode entry = RunFolder.JSON.readTree(line);
        if (entry.path("batchId").asLong(-1) == number) {
          byTenth.merge(entry.path("timestamp").asLong() / 100, 1, Integer::sum);
          paths.add(entry.path("path").asText());
        }
      }
    }
  }
}
