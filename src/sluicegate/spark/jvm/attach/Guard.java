package sluicegate.attach;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Isolates the user's queries from our failures: any exception is caught and logged once, and the lever concerned is
 * disabled for the rest of the application.
 */
final class Guard {
  private static final Logger LOG = LoggerFactory.getLogger("sluicegate");
  private static final Pattern ADDRESS = Pattern.compile("(\\w+://[^/\\s:@\\[\\]]*:)[^/\\s]+@");
  private static final Pattern AFTER =
      Pattern.compile(
          "([\\w.-]*(?:secret|passw(?:or)?d|pwd|token|(?:access|api|account|keystore)[._-]?key|jaas[._-]?config|credential)"
              + "[\\w.-]*[\"']?\\s*[=:]\\s*)(?:\\\\*\"[^\"]*\"|'[^']*'|[^\\s,;&}\\]\"']+)",
          Pattern.CASE_INSENSITIVE);
  private static final long SLOW_NANOS = 500_000_000L;
  private static final long SLOW_AGAIN_NANOS = 600_000_000_000L;

  /** The levers that can be disabled independently: without TASKS, executors still follow the plan. */
  enum Lever {
    TASKS,
    PLACES,
    EXECUTORS,
    PACE,
    SPLITTING
  }

  @FunctionalInterface
  interface Body {
    void run() throws Throwable;
  }

  private final Set<Lever> gone = ConcurrentHashMap.newKeySet();
  private final Set<String> said = ConcurrentHashMap.newKeySet();
  private final Map<Lever, Long> slowAt = new ConcurrentHashMap<>();
  private final Map<String, String> faults = new ConcurrentHashMap<>();
  private final BooleanSupplier over;
  private volatile Consumer<String> heard = line -> {};

  /**
   * {@code over}: the application has ended, so failures are expected and not logged. {@code faults} to inject, for
   * tests: CALLBACK=throw or CALLBACK=MILLISECONDS, comma-separated.
   */
  Guard(String faults, BooleanSupplier over) {
    this.over = over;
    for (String one : faults.split(",")) {
      int equals = one.indexOf('=');
      if (equals > 0) {
        this.faults.put(one.substring(0, equals).trim(), one.substring(equals + 1).trim());
      }
    }
  }

  /** The message of an exception in one line; with its class only if it has no message or is a file system error. */
  static String words(Throwable problem) {
    Throwable root = problem;
    while (root.getCause() != null && root.getCause() != root && root.getMessage() != null
        && root.getMessage().equals(root.getCause().toString())) {
      root = root.getCause();
    }
    String text = root.getMessage();
    boolean bare = text == null || text.isBlank() || root instanceof java.nio.file.FileSystemException;
    return (bare ? root.toString() : text).lines().findFirst().orElse("").strip();
  }

  /** A line for those who read along, no fault. */
  static void tellOf(String line) {
    LOG.info("sluicegate: {}", redacted(line));
  }

  static void say(String line) {
    LOG.warn("sluicegate: {}", redacted(line));
  }

  /** Masks passwords before @ in addresses, and values after names such as password, like runlog/redacted.py. */
  static String redacted(String text) {
    return AFTER.matcher(ADDRESS.matcher(text).replaceAll("$1***@")).replaceAll("$1***");
  }

  /** Sets a second receiver of the messages, besides the driver's log. */
  void heardBy(Consumer<String> listener) {
    heard = listener;
  }

  private void tell(String line) {
    say(line);
    try {
      heard.accept(redacted(line));
    } catch (RuntimeException unwritten) {
      // the driver's log has the line
    }
  }

  boolean has(Lever lever) {
    return !gone.contains(lever);
  }

  void giveUp(Lever lever, String why) {
    if (gone.add(lever) && !over.getAsBoolean()) {
      tell(lever.name().toLowerCase() + " given up, the queries go on without: " + why);
    }
  }

  /** Logs a line, unless it was logged before. */
  void once(String line) {
    if (said.add(line)) {
      tell(line);
    }
  }

  /** Runs code that is not a lever; a failure is logged once, and the next call tries again. */
  void run(String what, Body body) {
    try {
      fault(what);
      body.run();
    } catch (Throwable problem) {
      if (!over.getAsBoolean() && said.add(what)) {
        tell(what + ": " + problem.toString().lines().findFirst().orElse(""));
      }
    }
  }

  /** For code on the user's threads: a lever that is slow twice within ten minutes is disabled as if it had failed. */
  void timed(Lever lever, long began) {
    long now = System.nanoTime();
    if (now - began > SLOW_NANOS) {
      Long before = slowAt.put(lever, now);
      if (before != null && now - before < SLOW_AGAIN_NANOS) {
        giveUp(lever, "it took " + (now - began) / 1_000_000 + " ms of a query's time, twice");
      }
    }
  }

  /** Rethrows an interrupt: on a query's thread it is the user's stop(), not a fault of ours. */
  static void passOn(Throwable problem) {
    for (Throwable at = problem; at != null; at = at.getCause() == at ? null : at.getCause()) {
      if (at instanceof InterruptedException) {
        Guard.<RuntimeException>unchecked(problem);
      }
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void unchecked(Throwable problem) throws E {
    throw (E) problem;
  }

  void fault(String callback) throws InterruptedException {
    String wanted = faults.isEmpty() ? null : faults.get(callback);
    if (wanted == null) {
      return;
    }
    if (wanted.equals("throw")) {
      throw new IllegalStateException("injected into " + callback);
    }
    Thread.sleep(Long.parseLong(wanted));
  }
}
