package sluicegate.attach;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps our faults away from the user's query: whatever is thrown is caught, logged once, and the lever concerned is
 * given up for the rest of the application.
 */
final class Guard {
  private static final Logger LOG = LoggerFactory.getLogger("sluicegate");
  private static final long SLOW_NANOS = 500_000_000L;
  private static final int MOST_SLOW = 2;

  /** What may be given up. Each stands alone: without tasks, executors still follow. */
  enum Lever {
    TASKS,
    PLACES,
    EXECUTORS,
    WATCHING
  }

  @FunctionalInterface
  interface Body {
    void run() throws Throwable;
  }

  private final Set<Lever> gone = ConcurrentHashMap.newKeySet();
  private final Set<String> said = ConcurrentHashMap.newKeySet();
  private final Map<Lever, Integer> slow = new ConcurrentHashMap<>();
  private final Map<String, String> faults = new ConcurrentHashMap<>();

  /** Faults to inject, for tests: CALLBACK=throw or CALLBACK=MILLISECONDS, with commas between. */
  Guard(String faults) {
    for (String one : faults.split(",")) {
      int equals = one.indexOf('=');
      if (equals > 0) {
        this.faults.put(one.substring(0, equals).trim(), one.substring(equals + 1).trim());
      }
    }
  }

  static void say(String line) {
    LOG.warn("sluicegate: {}", line);
  }

  boolean has(Lever lever) {
    return !gone.contains(lever);
  }

  void giveUp(Lever lever, String why) {
    if (gone.add(lever)) {
      say(lever.name().toLowerCase() + " given up, the queries go on without: " + why);
    }
  }

  /** The same line is said once. */
  void once(String line) {
    if (said.add(line)) {
      say(line);
    }
  }

  /** Runs what is no lever of its own; a problem is said once, and the next call tries again. */
  void run(String what, Body body) {
    try {
      fault(what);
      body.run();
    } catch (Throwable problem) {
      if (said.add(what)) {
        say(what + ": " + problem);
      }
    }
  }

  /** For code on the user's threads: slow twice is as bad as failed. */
  void timed(Lever lever, long began) {
    long took = System.nanoTime() - began;
    if (took > SLOW_NANOS && slow.merge(lever, 1, Integer::sum) >= MOST_SLOW) {
      giveUp(lever, "it took " + took / 1_000_000 + " ms of a query's time, twice");
    }
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
