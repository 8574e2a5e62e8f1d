package sluicegate;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Reports the resource use of every executor to the driver every two seconds: its process and all its descendants,
 * including Python workers, which Spark's own metrics leave out. Linux only; elsewhere nothing is reported.
 */
public final class NodeLoads implements SparkPlugin {
  private static final long EVERY_S = 2;
  private static final Map<String, String> TOLD = new ConcurrentHashMap<>();

  /**
   * One line per executor: id, host, its assigned cores (else those of the host), cores busy, bytes in memory, bytes of
   * the host, share of time its busiest disk is busy, cores of the host, cores of the host busy with any process.
   */
  public static String told() {
    return String.join("\n", TOLD.values());
  }

  /** Drops the report of an executor that has left. */
  public static void forget(String executor) {
    TOLD.remove(executor);
  }

  @Override
  public DriverPlugin driverPlugin() {
    TOLD.clear(); // a second application in the same driver: the executors of the first are gone
    return new DriverPlugin() {
      @Override
      public Object receive(Object message) {
        String line = (String) message;
        TOLD.put(line.substring(0, line.indexOf('\t')), line);
        return null;
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new Teller();
  }

  private static final class Teller implements ExecutorPlugin {
    private final ScheduledExecutorService clock =
        Executors.newSingleThreadScheduledExecutor(
            task -> {
              Thread thread = new Thread(task, "sluicegate-node-load");
              thread.setDaemon(true);
              return thread;
            });
    private Reading before;

    @Override
    public void init(PluginContext context, Map<String, String> none) {
      if (Files.exists(Path.of("/proc/self/stat"))) {
        clock.scheduleWithFixedDelay(() -> tell(context), EVERY_S, EVERY_S, TimeUnit.SECONDS);
      }
    }

    @Override
    public void shutdown() {
      clock.shutdownNow();
    }

    private void tell(PluginContext context) {
      try {
        Reading now = Reading.take();
        if (before != null) {
          context.send(now.since(before, context));
        }
        before = now;
      } catch (Exception gone) {
        before = null; // a process ended meanwhile, or the driver is stopping: retried at the next reading
      }
    }
  }

  /** Counters at one moment; the difference of two readings is a load. */
  private record Reading(long nanos, Map<Long, Long> ticks, long bytes, long diskMillis, long hostTicks) {
    private static final double TICKS_A_SECOND = 100.0;
    private static final long PAGE_BYTES = 4096;

    static Reading take() throws IOException {
      ProcessHandle here = ProcessHandle.current();
      var pids = Stream.concat(Stream.of(here), here.descendants()).map(ProcessHandle::pid).toList();
      Map<Long, Long> ticks = pids.stream().collect(Collectors.toMap(pid -> pid, Reading::ticksOf));
      // without shared pages: those that forked workers share would count many times
      long pages = pids.stream().mapToLong(pid -> field(pid, 1) - field(pid, 2)).sum();
      return new Reading(System.nanoTime(), ticks, pages * PAGE_BYTES, busiestDiskMillis(), busyHostTicks());
    }

    String since(Reading before, PluginContext context) throws IOException {
      double seconds = (nanos - before.nanos) / 1e9;
      long spent =
          ticks.entrySet().stream()
              .mapToLong(one -> Math.max(one.getValue() - before.ticks.getOrDefault(one.getKey(), 0L), 0))
              .sum();
      return String.join(
          "\t",
          context.executorID(),
          // not context.hostname(): an executor serves no address of its own, so that call fails there
          SparkEnv.get().blockManager().blockManagerId().host(),
          context.conf().get("spark.executor.cores", "" + Runtime.getRuntime().availableProcessors()),
          Double.toString(spent / TICKS_A_SECOND / seconds),
          Long.toString(bytes),
          Long.toString(hostBytes()),
          Double.toString(Math.min((diskMillis - before.diskMillis) / 1e3 / seconds, 1.0)),
          Integer.toString(Runtime.getRuntime().availableProcessors()),
          Double.toString((hostTicks - before.hostTicks) / TICKS_A_SECOND / seconds));
    }

    /**
     * Busy time of the host's cores: the first line of /proc/stat without idle, iowait and low-priority work ("nice"),
     * which yields to ours.
     */
    private static long busyHostTicks() {
      String[] fields = read("/proc/stat").lines().findFirst().orElse("").trim().split("\\s+");
      long busy = 0;
      for (int i = 1; i < Math.min(fields.length, 9); i++) {
        busy += i == 2 || i == 4 || i == 5 ? 0 : Long.parseLong(fields[i]);
      }
      return busy;
    }

    private static long ticksOf(long pid) {
      String text = read("/proc/" + pid + "/stat");
      String[] after = text.substring(text.lastIndexOf(')') + 1).trim().split(" ");
      return after.length > 12 ? Long.parseLong(after[11]) + Long.parseLong(after[12]) : 0;
    }

    private static long field(long pid, int at) {
      String[] fields = read("/proc/" + pid + "/statm").split(" ");
      return fields.length > at ? Long.parseLong(fields[at]) : 0;
    }

    private static long busiestDiskMillis() throws IOException {
      try (Stream<String> lines = Files.lines(Path.of("/proc/diskstats"))) {
        return lines.mapToLong(line -> Long.parseLong(line.trim().split("\\s+")[12])).max().orElse(0);
      }
    }

    private static long hostBytes() throws IOException {
      try (Stream<String> lines = Files.lines(Path.of("/proc/meminfo"))) {
        String total = lines.filter(line -> line.startsWith("MemTotal")).findFirst().orElse("MemTotal: 0 kB");
        return Long.parseLong(total.split("\\s+")[1]) * 1024;
      }
    }

    private static String read(String file) {
      try {
        return Files.readString(Path.of(file));
      } catch (IOException gone) {
        return "";
      }
    }
  }
}
