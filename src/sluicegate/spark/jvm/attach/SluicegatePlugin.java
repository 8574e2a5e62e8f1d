package sluicegate.attach;

import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import sluicegate.NodeLoads;

/** spark.plugins=sluicegate.attach.SluicegatePlugin: attaches an application without changes to its code. */
public final class SluicegatePlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new Driver();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new NodeLoads().executorPlugin();
  }

  private static final class Driver implements DriverPlugin {
    private final DriverPlugin loads = new NodeLoads().driverPlugin();
    private SparkContext context;

    /** Runs before any user code, so that all sessions are built with our extension. */
    @Override
    public Map<String, String> init(SparkContext context, PluginContext none) {
      this.context = context;
      try {
        String given = context.conf().get("spark.sql.extensions", "");
        String ours = Extension.class.getName();
        if (!given.contains(ours)) {
          context.conf().set("spark.sql.extensions", given.isEmpty() ? ours : given + "," + ours);
        }
      } catch (Throwable problem) {
        Guard.say("no plan rule, tasks stay as they are: " + problem);
      }
      try {
        ExecutorJar.bring(context);
      } catch (Throwable problem) {
        Guard.say("executors may lack sluicegate's jar; name it in spark.jars: " + Guard.words(problem));
      }
      return Map.of();
    }

    /** Called when the application has its id, and still before any user code. */
    @Override
    public void registerMetrics(String application, PluginContext none) {
      Attachment.attach(context, application);
    }

    @Override
    public Object receive(Object message) throws Exception {
      return loads.receive(message);
    }

    @Override
    public void shutdown() {
      Attachment.detach();
    }
  }
}
