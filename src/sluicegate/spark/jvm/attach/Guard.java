package sluicegate.attach;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
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
 * disabled for the rest of the application; for one query only if it failed for that. A lever that is slow is suspended,
 * for longer each time.
 */
final class Guard {
  private static final Logger LOG = LoggerFactory.getLogger("sluicegate");
  private static final Pattern ADDRESS = Pattern.compile("((?<!\\w)\\w++://[^/\\s:@\\[\\]]*:)[^/\\s]+@");

  /** A name is tried at its first letter only, and taken whole: else a word of 20 KB in an error takes 20 s. */
  private static final Pattern AFTER =
      Pattern.compile(
          "((?<![\\w.-])(?=[\\w.-]*(?:secret|passw(?:or)?d|passphrase|pwd|token|"
              + "(?:access|account|api|encryption|keystore|private)[._-]?key|jaas[._-]?config|credential))"
              + "[\\w.-]++[\"']?\\s*(?:[=:]>?|->)\\s*)(?:\\\\+\"[^\"]*\"|\"[^\"]*\"|'[^']*'|[\"']?[^\\s,;&}\\]\"']+)",
          Pattern.CASE_INSENSITIVE);
  private static final Pattern BEARER = Pattern.compile("(\\b(?:Bearer|Basic)\\s+)[A-Za-z0-9+/=._~-]{8,}");
  private static final List<String> OF_FEWER_TASKS = List.of("SPARK-24821", "OutOfMemoryError");
  private static final List<String> OF_CLASSES =
      List.of("ClassNotFoundException", "NoClassDefFoundError", "InvalidClassException");
  private static final long SLOW_NANOS = 500_000_000L;
  private static final double SLOW_SHARE = 0.1;
  private static final double FIRST_BATCH_SECONDS = 30;
  private static final long SLOW_AGAIN_NANOS = 600_000_000_000L;
  private static final int MOST_DOUBLINGS = 7;
  private static final int MOST_REMEMBERED = 1000;

  /** The levers that can be disabled independently: without TASKS, executors still follow the plan. */
  enum Lever {
    TASKS,
    PLACES,
    EXECUTORS,
    PACE,
    SPLITTING
  }

  /** The newest only: an application of months that names every query anew has ever new lines. */
  private static final class Remembered<V> extends LinkedHashMap<String, V> {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, V> eldest) {
      return size() > MOST_REMEMBERED;
    }
  }

  @FunctionalInterface
  interface Body {
    void run() throws Throwable;
  }

  private final Set<Lever> gone = ConcurrentHashMap.newKeySet();
  private final Map<String, String> goneOf = Collections.synchronizedMap(new Remembered<>());
  private final Set<String> said = Collections.synchronizedSet(Collections.newSetFromMap(new Remembered<>()));
  private final Map<Lever, Long> slowAt = new ConcurrentHashMap<>();
  private final Map<Lever, Integer> rests = new ConcurrentHashMap<>();
  private final Map<Lever, Long> restsUntil = new ConcurrentHashMap<>();
  private final long restNanos;
  private final Map<String, String> faults = new ConcurrentHashMap<>();
  private final BooleanSupplier over;
  private volatile Consumer<String> heard = line -> {};

  /**
   * {@code over}: the application has ended, so failures are expected and not logged. {@code faults} to inject, for
   * tests: CALLBACK=throw or CALLBACK=MILLISECONDS, each also with :TIMES, comma-separated. {@code restSeconds}: how
   * long a slow lever is suspended at first.
   */
  Guard(String faults, int restSeconds, BooleanSupplier over) {
    this.over = over;
    restNanos = restSeconds * 1_000_000_000L;
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

  /**
   * The line of a query's failure that several partitions in one task, or a class of ours, may explain; null if there is
   * none. SPARK-24821: a barrier stage has as many tasks as the partitions below it.
   */
  static String mayBeOurs(String failure) {
    return failure.lines().filter(Guard::namesOurs).findFirst().map(line -> line.replaceFirst("^[:\\s]+", "").strip()).orElse(null);
  }

  /** Searches for plain texts: a pattern would take minutes for a row of 300 KB in an error. */
  private static boolean namesOurs(String line) {
    return OF_FEWER_TASKS.stream().anyMatch(line::contains)
        || OF_CLASSES.stream().anyMatch(name -> line.contains(name) && line.indexOf("sluicegate", line.indexOf(name)) >= 0);
  }

  /** A line for those who read along, no fault. The logger's name, which precedes it, says whose line it is. */
  static void tellOf(String line) {
    LOG.info(redacted(line));
  }

  static void say(String line) {
    LOG.warn(redacted(line));
  }

  /** Masks passwords before @ in addresses, and values after names such as password, like runlog/redacted.py. */
  static String redacted(String text) {
    String known = AFTER.matcher(ADDRESS.matcher(text).replaceAll("$1***@")).replaceAll("$1***");
    return BEARER.matcher(known).replaceAll("$1***");
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
    Long until = restsUntil.get(lever);
    return !gone.contains(lever) && (until == null || System.nanoTime() - until >= 0);
  }

  /** Whether a query has a lever: none of those whose own plans made it fail. */
  boolean has(Lever lever, String query) {
    return has(lever) && whyGone(lever, query) == null;
  }

  /** Why a query alone has lost a lever; null if it has not. */
  String whyGone(Lever lever, String query) {
    return query == null ? null : goneOf.get(lever + " " + query);
  }

  /** Disables a lever for one query: what its plans make fail need not fail for others. */
  void giveUp(Lever lever, String query, String problem) {
    String why = problem.lines().findFirst().orElse("");
    if (query == null) {
      giveUp(lever, why);
    } else if (goneOf.putIfAbsent(lever + " " + query, why) == null && !over.getAsBoolean()) {
      tell(lever.name().toLowerCase() + " of " + query + " given up, it goes on without and others with them: " + why);
    }
  }

  void giveUp(Lever lever, String why) {
    if (gone.add(lever) && !over.getAsBoolean()) {
      tell(lever.name().toLowerCase() + " given up, the queries go on without: " + why);
    }
  }

  /** Logs a line, unless it was logged before. */
  void once(String line) {
    once(line, line);
  }

  /** Logs a line, unless one of this trouble was logged before: its text may differ from time to time. */
  void once(String trouble, String line) {
    if (said.add(trouble)) {
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

  /**
   * For code on the user's threads: a lever that is slow twice within ten minutes is suspended, at first for ten minutes.
   * Slow is more than half a second, and more than a tenth of the query's last batch, which took {@code batchSeconds}:
   * where the machine is overloaded everything is slow, and that is when tasks have to follow. 0: it had none yet, and
   * its first one, which loads classes, is taken for a long one.
   *
   * <p>Not for good: two pauses of the garbage collector would otherwise leave an application of months as it is.
   */
  void timed(Lever lever, long began, double batchSeconds) {
    long now = System.nanoTime();
    double batch = batchSeconds > 0 ? batchSeconds : FIRST_BATCH_SECONDS;
    if (now - began > Math.max(SLOW_NANOS, SLOW_SHARE * 1e9 * batch)) {
      Long before = slowAt.put(lever, now);
      if (before != null && now - before < SLOW_AGAIN_NANOS) {
        slowAt.remove(lever);
        rest(lever, now, (now - began) / 1_000_000);
      }
    }
  }

  private void rest(Lever lever, long now, long tookMillis) {
    int before = rests.merge(lever, 1, Integer::sum) - 1;
    long nanos = restNanos << Math.min(before, MOST_DOUBLINGS);
    restsUntil.put(lever, now + nanos);
    if (!over.getAsBoolean()) {
      String slow = "it took " + tookMillis + " ms of a query's time, twice";
      tell(lever.name().toLowerCase() + " left to Spark for " + nanos / 1_000_000_000L + " s: " + slow);
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
    String[] parts = wanted.split(":");
    int left = parts.length > 1 ? Integer.parseInt(parts[1]) : Integer.MAX_VALUE;
    if (left <= 0) {
      return;
    }
    faults.replace(callback, parts[0] + ":" + (left - 1));
    if (parts[0].equals("throw")) {
      throw new IllegalStateException("injected into " + callback);
    }
    Thread.sleep(Long.parseLong(parts[0]));
  }
}
