package sluicegate.attach;

import java.io.File;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The controller beside the driver: one that dies is started again, and no query waits for it. */
final class ControllerProcess {
  private static final int MOST_STARTS = 20;
  private static final int REFUSED = 2;

  private final Attachment attachment;
  private final String python;
  private final File log;
  private Process process;
  private int starts;

  ControllerProcess(Attachment attachment, String python) {
    this.attachment = attachment;
    this.python = python;
    log = attachment.folder.path.resolve("controller.log").toFile();
  }

  void watch() throws Exception {
    if (process != null && process.isAlive()) {
      return;
    }
    if (process != null && process.exitValue() == REFUSED) {
      attachment.guard.once("no controller, so nothing is moved: see " + log);
      return;
    }
    if (starts++ < MOST_STARTS) {
      String parent = Long.toString(ProcessHandle.current().pid());
      String folder = attachment.folder.path.toString();
      var command = List.of(python, "-m", "sluicegate.spark.attach.controller", folder, "--parent=" + parent);
      var builder = new ProcessBuilder(command).redirectErrorStream(true);
      builder.redirectInput(new File("/dev/null")).redirectOutput(ProcessBuilder.Redirect.appendTo(log));
      builder.environment().remove("SPARK_ENV_LOADED");
      process = builder.start();
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
