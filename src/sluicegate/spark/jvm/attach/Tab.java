package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Locale;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils;
import org.apache.spark.ui.WebUIPage;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.xml.Node;
import scala.xml.Unparsed;

/** A tab in Spark's UI: SLO, load, tasks, executors, and decisions with their reasons. */
final class Tab extends SparkUITab {
  private static final DateTimeFormatter CLOCK = DateTimeFormatter.ofPattern("HH:mm:ss").withZone(ZoneId.systemDefault());
  private static final int DECISIONS = 20;

  /** One letter: a browser would break a line between those of ->. */
  private static final String ARROW = " \u2192 ";
  private static final long OLD_SECONDS = 30;

  private Tab(SparkUI ui) {
    super(ui, "sluicegate");
  }

  @Override
  public String name() {
    return "Sluicegate";
  }

  /** Adds the tab; returns an action that removes it. */
  static Runnable attach(Attachment attachment) {
    if (attachment.context.ui().isEmpty()) {
      return () -> {};
    }
    SparkUI ui = attachment.context.ui().get();
    Tab tab = new Tab(ui);
    tab.attachPage(new Page(tab, attachment));
    ui.attachTab(tab);
    return () -> ui.detachTab(tab);
  }

  private static final class Page extends WebUIPage {
    private final Tab tab;
    private final Attachment attachment;

    Page(Tab tab, Attachment attachment) {
      super("");
      this.tab = tab;
      this.attachment = attachment;
    }

    @Override
    public Seq<Node> render(HttpServletRequest request) {
      String body;
      try {
        attachment.guard.fault("tab-page");
        body = Tab.body(attachment);
      } catch (Throwable problem) {
        body = "<p>" + escaped("the record cannot be read: " + problem) + "</p>";
      }
      List<Node> nodes = List.of(new Unparsed(body));
      Seq<Node> content = CollectionConverters.asScala(nodes).toSeq();
      return UIUtils.headerSparkPage(request, "Sluicegate", () -> content, tab, Option.empty(), false, false, false);
    }
  }

  private static String body(Attachment attachment) throws Exception {
    JsonNode control = attachment.folder.read("control.json");
    List<JsonNode> ticks = attachment.folder.last("ticks.jsonl", 1);
    StringBuilder out = new StringBuilder("<style>.sg td,.sg th{padding:.25rem .75rem;text-align:left}</style>");
    if (control == null) {
      return out.append("<p>No controller has started yet: nothing is moved.</p>").toString();
    }
    JsonNode tick = ticks.isEmpty() ? RunFolder.JSON.createObjectNode() : ticks.get(0);
    row(out, "Policy", control.path("policy").asText() + (control.path("dry_run").asBoolean() ? " (observes only)" : ""));
    row(out, "Promise", promise(control));
    row(out, "Observed", observed(tick));
    row(out, "Load", figure(tick.path("arrivals_per_s"), " rows/s"));
    JsonNode sojourn = tick.path("sojourn");
    row(out, "Latency", "mean " + figure(sojourn.path("mean_s"), " s") + ", p95 " + figure(sojourn.path("p95_s"), " s"));
    row(out, "Executors", figure(tick.path("executors"), ""));
    row(out, "Record", attachment.folder.path.toString());
    notes(out, control, tick);
    queries(out, tick);
    decisions(out, attachment.folder.last("decisions.jsonl", DECISIONS));
    return out.toString();
  }

  /** Unreachable SLOs, unknown settings and advice for the user, as in `sluicegate status`. */
  private static void notes(StringBuilder out, JsonNode control, JsonNode tick) {
    if (!control.path("no_executors").isNull() && control.path("executors").isArray()) {
      row(out, "Executors stay", control.path("no_executors").asText());
    }
    for (JsonNode one : tick.path("refusals")) {
      if (List.of("promise", "trigger").contains(one.path("rule").asText())) {
        row(out, "Out of reach", PlainWords.plain(one.path("why").asText()));
      } else if (one.path("rule").asText().equals("tasks")) {
        row(out, "Left to Spark", one.path("why").asText());
      }
    }
    control.path("unknown_settings").forEach(one -> row(out, "No setting of ours", one.asText()));
    tick.path("advice").forEach(one -> row(out, "Advice", one.asText()));
  }

  private static String promise(JsonNode control) {
    StringBuilder out = new StringBuilder();
    control.path("slo").forEach(one -> out.append(out.length() == 0 ? "" : ", ").append(one.asText()));
    control.path("query_slo").properties().forEach(one -> out.append(out.length() == 0 ? "" : "; ").append(one.getKey()).append(": ").append(one.getValue().asText()));
    return out.length() == 0 ? "none" : out.toString();
  }

  /** The time of the last observation, and its age where it is old: the figures below it are of then. */
  private static String observed(JsonNode tick) {
    if (!tick.path("at_s").isNumber()) {
      return "nothing yet";
    }
    long at = (long) (tick.path("at_s").asDouble() * 1e3);
    long age = (System.currentTimeMillis() - at) / 1000;
    return CLOCK.format(Instant.ofEpochMilli(at)) + (age < OLD_SECONDS ? "" : ", " + age + " s ago: the controller is silent");
  }

  private static void queries(StringBuilder out, JsonNode tick) {
    out.append("<h4>Queries</h4><table class='sg table table-sm'><tr>");
    for (String heading : List.of("query", "tasks (k)", "rows/s", "busy", "rows waiting", "latency")) {
      out.append("<th>").append(heading).append("</th>");
    }
    out.append("</tr>");
    tick.path("operators").properties().forEach(one -> {
      JsonNode told = one.getValue();
      out.append("<tr>");
      cell(out, one.getKey());
      cell(out, figure(tick.path("running").path(one.getKey()), ""));
      cell(out, figure(told.path("arrivals_per_s"), ""));
      cell(out, told.path("utilisation").isNumber() ? Math.round(100 * told.path("utilisation").asDouble()) + "%" : "-");
      cell(out, figure(told.path("queue_rows"), ""));
      cell(out, figure(told.path("sojourn_s"), " s"));
      out.append("</tr>");
    });
    out.append("</table>");
  }

  private static void decisions(StringBuilder out, List<JsonNode> decisions) {
    out.append("<h4>Decisions</h4><table class='sg table table-sm'>");
    for (int i = decisions.size() - 1; i >= 0; i--) {
      JsonNode one = decisions.get(i);
      StringBuilder moves = new StringBuilder();
      one.path("rescales").forEach(move -> moves.append(moves.length() == 0 ? "" : ", ").append(move.path("operator").asText())
          .append(' ').append(move.path("have").asInt()).append(ARROW).append(move.path("want").asInt()));
      one.path("changes").forEach(move -> moves.append(moves.length() == 0 ? "" : ", ").append(move.path("what").asText())
          .append(' ').append(move.path("have").asText()).append(ARROW).append(move.path("want").asText()));
      StringBuilder why = new StringBuilder();
      one.path("reasons").forEach(reason -> why.append(why.length() == 0 ? "" : "; ").append(PlainWords.plain(reason.asText())));
      out.append("<tr>");
      cell(out, CLOCK.format(Instant.ofEpochMilli((long) (one.path("at_s").asDouble() * 1e3))));
      cell(out, moves.toString());
      cell(out, why.toString());
      out.append("</tr>");
    }
    out.append(decisions.isEmpty() ? "<tr><td>none yet</td></tr></table>" : "</table>");
  }

  private static void row(StringBuilder out, String what, String value) {
    out.append("<div><strong>").append(escaped(what)).append(":</strong> ").append(escaped(value)).append("</div>");
  }

  private static void cell(StringBuilder out, String value) {
    out.append("<td>").append(escaped(value)).append("</td>");
  }

  private static String figure(JsonNode value, String unit) {
    if (!value.isNumber()) {
      return "-";
    }
    double number = value.asDouble();
    return String.format(Locale.ROOT, number == Math.rint(number) ? "%,.0f" : "%,.2f", number) + unit;
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\"", "&quot;");
  }
}
