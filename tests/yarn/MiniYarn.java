import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * java MiniYarn.java CONF NODES MEMORY_MB: a ResourceManager and NodeManagers on loopback, in one process.
 *
 * <p>Once all nodes are there, CONF/yarn-site.xml has the addresses, for HADOOP_CONF_DIR. They end with standard input, so
 * they do not outlive the process that started them.
 */
public final class MiniYarn {
  private static final int UP_MS = 120_000;
  private static final int DOWN_MS = 5_000;

  public static void main(String[] arguments) throws Exception {
    var settings = new YarnConfiguration();
    Map.of(
            "fs.defaultFS", "file:///",
            "yarn.nodemanager.resource.memory-mb", arguments[2],
            "yarn.scheduler.minimum-allocation-mb", "128",
            "yarn.scheduler.capacity.root.queues", "default",
            "yarn.scheduler.capacity.root.default.capacity", "100",
            "yarn.scheduler.capacity.maximum-am-resource-percent", "1.0",
            // Java bounds its heap itself; what it only reserves is no reason to end a container
            "yarn.nodemanager.vmem-check-enabled", "false",
            "yarn.nodemanager.pmem-check-enabled", "false",
            // else a disk that is nearly full makes every node unhealthy
            "yarn.nodemanager.disk-health-checker.enable", "false")
        .forEach(settings::set);
    var cluster = new MiniYARNCluster("yarn", Integer.parseInt(arguments[1]), 1, 1);
    cluster.init(settings);
    cluster.start();
    if (!cluster.waitForNodeManagersToConnect(UP_MS)) {
      throw new IllegalStateException("the NodeManagers do not register");
    }
    write(cluster.getConfig(), Path.of(arguments[0]));
    System.in.transferTo(OutputStream.nullOutputStream());
    haltSoon();
    cluster.stop();
    System.exit(0);
  }

  /** Nodes that stop wait long for what their containers left behind; there is nothing to keep here. */
  private static void haltSoon() {
    var timer = new Timer(true);
    timer.schedule(
        new TimerTask() {
          @Override
          public void run() {
            Runtime.getRuntime().halt(0);
          }
        },
        DOWN_MS);
  }

  /** What a client needs to know. Whole or not at all: who waits for the file may read it at once. */
  private static void write(Configuration cluster, Path folder) throws Exception {
    var addresses = new Configuration(false);
    addresses.set("fs.defaultFS", "file:///");
    for (var entry : cluster.getPropsWithPrefix("yarn.resourcemanager.").entrySet()) {
      if (entry.getKey().endsWith("address")) {
        addresses.set("yarn.resourcemanager." + entry.getKey(), entry.getValue());
      }
    }
    Path draft = folder.resolve("draft");
    try (var out = Files.newOutputStream(draft)) {
      addresses.writeXml(out);
    }
    Files.move(draft, folder.resolve("yarn-site.xml"), StandardCopyOption.ATOMIC_MOVE);
  }
}
