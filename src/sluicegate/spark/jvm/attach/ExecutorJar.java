package sluicegate.attach;

import java.nio.file.Path;
import org.apache.spark.SparkContext;
import scala.jdk.javaapi.CollectionConverters;

/** Brings our jar to the executors: tasks that were moved have classes of ours, and fail without them. */
final class ExecutorJar {
  private ExecutorJar() {}

  /** Does nothing if the executors have it: if --jars replaced spark.jars, it is only on the driver's class path. */
  static void bring(SparkContext context) throws Exception {
    Path jar = Path.of(ExecutorJar.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    String name = jar.getFileName().toString();
    boolean known = CollectionConverters.asJava(context.listJars()).stream().anyMatch(one -> one.endsWith("/" + name));
    if (known || context.isLocal() || context.conf().get("spark.executor.extraClassPath", "").contains(name)) {
      return;
    }
    context.addJar(jar.toString());
    // executors load these jars before their plugins
    context.conf().set("spark.app.initial.jar.urls", String.join(",", CollectionConverters.asJava(context.listJars())));
  }
}
