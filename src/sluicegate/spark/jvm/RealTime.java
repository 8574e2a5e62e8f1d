package sluicegate;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.classic.Dataset;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Checks an operator's plan for real-time mode, and carries the column with the rows' times through it. */
public final class RealTime {
  private RealTime() {}

  /** Microseconds since the epoch at which a row passes the place in the plan where this is called. */
  public static long now() {
    Instant at = Instant.now();
    return at.getEpochSecond() * 1_000_000L + at.getNano() / 1_000;
  }

  /** The same rows with an input column restored in all projections that dropped it; unchanged if none did. */
  public static Dataset<Row> carrying(Dataset<Row> rows, String column) {
    LogicalPlan plan = carried(rows.queryExecution().analyzed(), column);
    return Dataset.ofRows(rows.sparkSession(), plan);
  }

  /** The first kind of Python node or expression in the plan; empty if there is none. */
  public static String python(Dataset<Row> rows) {
    return firstOf(rows.queryExecution().analyzed(), true, "Python", "InPandas", "InArrow", "PySpark");
  }

  /** The first kind of node that keeps state or combines rows; empty if each row is processed alone. */
  public static String together(Dataset<Row> rows) {
    return firstOf(
        rows.queryExecution().analyzed(), false, "Aggregate", "Deduplicate", "Distinct", "Join", "WithState", "Window", "Sort");
  }

  /** An option of the stream that the plan reads; empty if it is not set, or there is not exactly one stream. */
  public static String option(Dataset<Row> rows, String name) {
    List<StreamingRelationV2> found = new ArrayList<>();
    streams(rows.queryExecution().analyzed(), found);
    return found.size() == 1 ? found.get(0).extraOptions().getOrDefault(name, "") : "";
  }

  /** Spark's name of the source that the plan reads; empty unless it reads exactly one data source V2 stream. */
  public static String source(Dataset<Row> rows) {
    List<StreamingRelationV2> found = new ArrayList<>();
    streams(rows.queryExecution().analyzed(), found);
    return found.size() == 1 ? found.get(0).sourceName() : "";
  }

  private static void streams(LogicalPlan plan, List<StreamingRelationV2> found) {
    if (plan instanceof StreamingRelationV2 stream) {
      found.add(stream);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> streams(child, found));
  }

  private static LogicalPlan carried(LogicalPlan plan, String column) {
    List<LogicalPlan> children = new ArrayList<>();
    CollectionConverters.asJava(plan.children()).forEach(child -> children.add(carried(child, column)));
    LogicalPlan renewed = (LogicalPlan) plan.withNewChildren(seq(children));
    if (!(renewed instanceof Project project) || named(project.output(), column) != null) {
      return renewed;
    }
    Attribute dropped = named(project.child().output(), column);
    if (dropped == null) {
      return renewed;
    }
    List<NamedExpression> kept = new ArrayList<>(CollectionConverters.asJava(project.projectList()));
    kept.add(dropped);
    return new Project(seq(kept), project.child());
  }

  private static Attribute named(Seq<Attribute> attributes, String column) {
    return CollectionConverters.asJava(attributes).stream()
        .filter(attribute -> attribute.name().equals(column))
        .findFirst()
        .orElse(null);
  }

  /** The class name of the first node, or expression if {@code within}, that contains one of {@code kinds}. */
  private static String firstOf(LogicalPlan plan, boolean within, String... kinds) {
    List<Object> there = new ArrayList<>(List.of(plan));
    if (within) {
      CollectionConverters.asJava(plan.expressions()).forEach(expression -> expressions(expression, there));
    }
    for (Object one : there) {
      String kind = one.getClass().getSimpleName();
      for (String part : kinds) {
        if (kind.contains(part)) {
          return kind;
        }
      }
    }
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      String found = firstOf(child, within, kinds);
      if (!found.isEmpty()) {
        return found;
      }
    }
    return "";
  }

  private static void expressions(Expression expression, List<Object> found) {
    found.add(expression);
    CollectionConverters.asJava(expression.children()).forEach(child -> expressions(child, found));
  }

  private static <T> Seq<T> seq(List<T> from) {
    return CollectionConverters.asScala(from).toSeq();
  }
}
