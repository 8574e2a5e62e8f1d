package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;

/** The application's run folder, in the formats of a pipeline's run log, shared with controller and dashboard. */
final class RunFolder {
  static final ObjectMapper JSON = new ObjectMapper();
  private static final long MOST_BYTES = 2_000_000;
  private static final int TAIL_BYTES = 60_000;

  final Path path;
  private final FileLock lock;

  /** Creates and locks the folder; throws if another application holds it. */
  RunFolder(Path path) throws IOException {
    this.path = path;
    makeOwnerOnly(path);
    ownerOnlyFile(path.resolve("lock"));
    FileChannel channel = FileChannel.open(path.resolve("lock"), StandardOpenOption.WRITE);
    FileLock taken = null;
    try {
      taken = channel.tryLock();
    } catch (java.nio.channels.OverlappingFileLockException same) {
      taken = null;
    }
    if (taken == null) {
      channel.close();
      throw new IOException("another application is attached there: set another spark.sluicegate.folder");
    }
    lock = taken;
    Files.deleteIfExists(path.resolve("said.jsonl"));
  }

  /** Creates the folder with access for the owner only; an existing folder keeps its permissions. */
  private static void makeOwnerOnly(Path path) throws IOException {
    try {
      Files.createDirectories(path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (UnsupportedOperationException noSuchRights) {
      Files.createDirectories(path);
    }
  }

  /** Creates a file for its owner alone, whatever the umask is: the folder may be one that others can read. */
  static void ownerOnlyFile(Path file) throws IOException {
    try {
      Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    } catch (FileAlreadyExistsException there) {
      return;
    } catch (UnsupportedOperationException noSuchRights) {
      Files.createFile(file);
    }
  }

  void close() throws IOException {
    lock.channel().close();
  }

  /** Writes a file atomically: readers see the old or the new version. */
  synchronized void write(String name, JsonNode document) throws IOException {
    Path draft = path.resolve("." + name + ".draft");
    ownerOnlyFile(draft);
    Files.writeString(draft, document.toString());
    Files.move(draft, path.resolve(name), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }

  /** Appends a line to a query's batch log; a full file is rotated first. */
  void batch(String query, JsonNode line) throws IOException {
    append(query, "batches.jsonl", line);
  }

  /** Appends a line to a query's log of topic offsets. */
  void source(String query, JsonNode line) throws IOException {
    append(query, "source.jsonl", line);
  }

  /** Deletes the logs of a query. */
  void delete(String query) throws IOException {
    Path home = path.resolve("operators").resolve(query);
    if (Files.isDirectory(home)) {
      try (var files = Files.list(home)) {
        for (Path file : files.toList()) {
          Files.deleteIfExists(file);
        }
      }
      Files.deleteIfExists(home);
    }
  }

  /** Appends a logged message (failures, disabled levers), for users who do not see the driver's log. */
  void said(String what) {
    try {
      double now = System.currentTimeMillis() / 1e3;
      append(path.resolve("said.jsonl"), JSON.createObjectNode().put("at_s", now).put("line", what));
    } catch (IOException unwritten) {
      throw new UncheckedIOException(unwritten);
    }
  }

  private void append(String query, String name, JsonNode line) throws IOException {
    Path log = path.resolve("operators").resolve(query).resolve(name);
    makeOwnerOnly(log.getParent());
    append(log, line);
  }

  /** In one write, and on a line of its own even if a full disk has cut the line before. */
  private static synchronized void append(Path log, JsonNode line) throws IOException {
    if (Files.exists(log) && Files.size(log) > MOST_BYTES) {
      Files.move(log, log.resolveSibling(log.getFileName() + ".1"), StandardCopyOption.REPLACE_EXISTING);
    }
    ownerOnlyFile(log);
    try (RandomAccessFile file = new RandomAccessFile(log.toFile(), "rw")) {
      long end = file.length();
      file.seek(Math.max(end - 1, 0));
      boolean torn = end > 0 && file.read() != '\n';
      file.seek(end);
      file.write(((torn ? "\n" : "") + line + "\n").getBytes(StandardCharsets.UTF_8));
    }
  }

  /** Reads a document; null if there is no such file. */
  JsonNode read(String name) throws IOException {
    try {
      return JSON.readTree(Files.readAllBytes(path.resolve(name)));
    } catch (NoSuchFileException gone) {
      return null;
    }
  }

  /** A stamp that changes whenever the file is written; null if there is no file. */
  String stamp(String name) throws IOException {
    try {
      var found = Files.readAttributes(path.resolve(name), java.nio.file.attribute.BasicFileAttributes.class);
      return found.lastModifiedTime() + "/" + found.fileKey() + "/" + found.size();
    } catch (NoSuchFileException gone) {
      return null;
    }
  }

  /** The last lines of a log, newest last. */
  List<JsonNode> last(String name, int count) throws IOException {
    List<JsonNode> lines = new ArrayList<>();
    if (!Files.exists(path.resolve(name))) {
      return lines;
    }
    try (RandomAccessFile file = new RandomAccessFile(path.resolve(name).toFile(), "r")) {
      long from = Math.max(file.length() - TAIL_BYTES, 0);
      byte[] bytes = new byte[(int) (file.length() - from)];
      file.seek(from);
      file.readFully(bytes);
      String[] texts = new String(bytes, StandardCharsets.UTF_8).split("\n");
      for (int i = Math.max(texts.length - count, from > 0 ? 1 : 0); i < texts.length; i++) {
        if (!texts[i].isBlank()) {
          lines.add(JSON.readTree(texts[i]));
        }
      }
    }
    return lines;
  }
}
