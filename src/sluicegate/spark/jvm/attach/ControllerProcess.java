package sluicegate.attach;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs the controller process and restarts it when it dies; no query waits for it. */
final class ControllerProcess {
  private static final int REFUSED = 2;
  private static final int MOST_WORDS = 100_000;
  private static final long LONGEST_WAIT_NANOS = 60_000_000_000L;
  private static final long SOUND_NANOS = 300_000_000_000L;

  private final Attachment attachment;
  private final String python;
  private final File log;
  private Process process;
  private long startedAt;
  private long logBytes;
  private long waitNanos;
  private boolean refused;

  ControllerProcess(Attachment attachment, String python) {
    this.attachment = attachment;
    this.python = python;
    log = attachment.folder.path.resolve("controller.log").toFile();
  }

  /** Called once a second. Restarts the controller with exponential back-off of up to a minute. */
  void watch() {
    if (refused || (process != null && process.isAlive())) {
      return;
    }
    if (process != null) {
      ended(process.exitValue());
      process = null;
    } else if (System.nanoTime() - startedAt >= waitNanos) {
      start();
    }
  }

  private void ended(int code) {
    boolean sound = System.nanoTime() - startedAt > SOUND_NANOS;
    waitNanos = sound ? 0 : Math.min(Math.max(2 * waitNanos, 1_000_000_000L), LONGEST_WAIT_NANOS);
    refused = code == REFUSED;
    String then = refused ? "nothing is moved, the queries go on" : "the plan in force stays, and it is started again";
    attachment.guard.once("the controller ended (" + lastWords(code) + "): " + then + "; see " + log);
  }

  private void start() {
    startedAt = System.nanoTime();
    logBytes = log.length();
    String parent = Long.toString(ProcessHandle.current().pid());
    String folder = attachment.folder.path.toString();
    var command = List.of(python, "-m", "sluicegate.spark.attach.controller", folder, "--parent=" + parent);
    var builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.redirectInput(new File("/dev/null")).redirectOutput(ProcessBuilder.Redirect.appendTo(log));
    builder.environment().remove("SPARK_ENV_LOADED");
    try {
      RunFolder.ownerOnlyFile(log.toPath());
      process = builder.start();
    } catch (IOException problem) {
      waitNanos = LONGEST_WAIT_NANOS;
      String cure = "set spark.sluicegate.python to a Python that has sluicegate";
      attachment.guard.once("no controller, so nothing is moved: " + Guard.words(problem) + "; " + cure);
    }
  }

  /** The last line that this process logged, which gives the reason; else its exit code. */
  private String lastWords(int code) {
    try (var written = Files.newInputStream(log.toPath())) {
      written.skipNBytes(logBytes);
      List<String> lines = new String(written.readNBytes(MOST_WORDS), StandardCharsets.UTF_8).strip().lines().toList();
      return lines.isEmpty() ? "exit code " + code : lines.get(lines.size() - 1).strip().replaceFirst("^sluicegate: ", "");
    } catch (IOException unread) {
      return "exit code " + code;
    }
  }

  void close() throws Exception {
    if (process != null) {
      process.destroy();
      if (!process.waitFor(3, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    }
  }
}
