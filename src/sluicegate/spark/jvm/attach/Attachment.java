package sluicegate.attach;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import sluicegate.NodeLoads;

/** One attached application: its observed state, the plan in force, and the threads that update both. */
public final class Attachment {
  private static final String KEYS = "spark.sluicegate.";
  private static final long MOST_CLOSING_MS = 8000;
  private static final int MOST_EXECUTORS = 10_000;

  /** Settings that are never recorded, such as the password of a cluster's pages. */
  private static final Pattern SECRET =
      Pattern.compile("(?i)secret|passw|passphrase|token|credential|jaas|(?:access|api|private).?key");

  /** The promise of a query is always recorded: its name is the user's, and may be "tokens". */
  private static final Pattern PROMISE = Pattern.compile("query\\..+\\.slo");

  /** The texts that mean yes, as in options.py. */
  private static final Set<String> YES = Set.of("true", "1", "yes");

  private static final Set<SparkSession> RULED = Collections.newSetFromMap(new WeakHashMap<>());
  private static final Set<SparkContext> MET = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  private static volatile Attachment current;

  final SparkContext context;
  final Guard guard;
  final Queries queries = new Queries();
  final RunFolder folder;

  private final boolean touches;
  private final String noExecutors;
  private final Map<String, String> hosts = new ConcurrentHashMap<>();
  private final Map<String, Integer> cores = new ConcurrentHashMap<>();
  private final Map<String, Map<String, Integer>> seated = new ConcurrentHashMap<>();
  private final Map<String, StatePlaces.Placed> places = new ConcurrentHashMap<>();
  private final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor(Attachment::daemon);
  private final ScheduledExecutorService lister = Executors.newSingleThreadScheduledExecutor(Attachment::daemon);
  private final ScheduledExecutorService asker = Executors.newSingleThreadScheduledExecutor(Attachment::daemon);
  final FilesSeen files = new FilesSeen(this);
  private final Watch watch;
  private final ExecutorLever lever = new ExecutorLever(this);
  private final PaceLever pace = new PaceLever(this);
  private final SplitLever split = new SplitLever(this);
  private final boolean paces;
  private final int mostExecutors;
  private final ControllerProcess controller;
  private final Topics topics;
  private volatile SparkSession session;
  private volatile WantedPlan plan = WantedPlan.NONE;
  private volatile String planStamp;
  private volatile double lastCame;
  private Set<String> missing = Set.of();
  private Set<String> unheard = Set.of();
  private volatile Runnable untab = () -> {};

  private Attachment(SparkContext context, String application) throws Exception {
    this.context = context;
    int restSeconds = context.conf().getInt(KEYS + "test.rest_s", 600);
    guard = new Guard(context.conf().get(KEYS + "test.faults", ""), restSeconds, context::isStopped);
    String version = context.conf().get(KEYS + "test.version", context.version());
    touches = SparkInternals.tried(version);
    if (touches) {
      SparkInternals.forgetStore(); // executors will call these: fail early here if they do not work
      PartitionContext.tryOut();
      ExecutorJar.bring(context); // attached by a session, not by the plugin, which has done so
    }
    folder = new RunFolder(folderOf(context, application));
    guard.heardBy(line -> clock.execute(() -> folder.said(line))); // never on Spark's or a query's thread
    if (!touches) {
      guard.once("Spark " + version + " was not tried (" + SparkInternals.TRIED + "x was): it observes, and moves nothing");
    }
    paces = YES.contains(context.conf().get(KEYS + "pace", "").toLowerCase());
    mostExecutors = mostOf(context.conf().get(KEYS + "executors", ""));
    noExecutors = ExecutorLever.refusal(context);
    if (noExecutors != null && context.conf().contains(KEYS + "executors")) {
      guard.once("executors are not moved: " + noExecutors);
    }
    seed();
    describeApplication(application);
    describe();
    watch = new Watch(this);
    String python = context.conf().get(KEYS + "python", "python3");
    boolean wanted = !context.conf().get(KEYS + "controller", "process").equals("none");
    if (wanted) {
      Files.deleteIfExists(folder.path.resolve("plan.json")); // of an earlier application in the same folder
    }
    controller = wanted ? new ControllerProcess(this, python) : null;
    topics = new Topics(this);
    every(200, "plan", this::readPlan);
    every(200, "sources", this::moveSources);
    every(1000, "controller", this::watchController);
    every(1000, "nodes", this::writeNodes);
    every(1000, "forgotten", this::deleteForgotten);
    // on a thread of its own: a master that does not answer keeps it waiting for minutes
    asker.scheduleWithFixedDelay(() -> guard.run("executors", this::moveExecutors), 0, 500, TimeUnit.MILLISECONDS);
    lister.scheduleWithFixedDelay(() -> guard.run("files", files::look), 1000, 1000, TimeUnit.MILLISECONDS);
  }

  /** The attachment of this process; null if there is none. */
  static Attachment current() {
    return current;
  }

  /** Attaches an application, once. A failure is logged and returned, and the application runs on unattached. */
  public static synchronized String attach(SparkContext context, String application) {
    if (current != null && current.context == context) {
      return "";
    }
    detach(); // an earlier application of this process
    MET.add(context);
    Attachment made = null;
    try {
      made = new Attachment(context, application);
      made.begin();
      current = made;
      Guard.tellOf("attached, watch it with: sluicegate status " + made.folder.path);
      return "";
    } catch (Throwable problem) {
      if (made != null) {
        made.close();
      }
      Guard.say("not attached, the application goes on without: " + Guard.words(problem));
      return Guard.words(problem);
    }
  }

  private void begin() throws Exception {
    guard.fault("attach");
    context.addSparkListener(watch);
    clock.scheduleWithFixedDelay(() -> guard.run("executors", this::recount), 2, 10, TimeUnit.SECONDS);
    clock.scheduleWithFixedDelay(() -> guard.run("queries", this::recountQueries), 2, 10, TimeUnit.SECONDS);
    guard.run("tab", () -> untab = Tab.attach(this));
  }

  /** Attaches from a session if the application's code has overwritten spark.plugins; never after a detach. */
  static void attachWithoutPlugin(SparkSession session) {
    try {
      SparkContext context = SparkInternals.context(session);
      if (current == null && !MET.contains(context)) { // first: a query that starts must not wait while we detach
        attachFrom(context);
      }
    } catch (Throwable problem) {
      Guard.say("not attached, the application goes on without: " + Guard.words(problem));
    }
  }

  private static synchronized void attachFrom(SparkContext context) {
    try {
      boolean wanted = context.conf().getAllWithPrefix(KEYS).length > 0;
      boolean plugged = context.conf().get("spark.plugins", "").contains(SluicegatePlugin.class.getName());
      if (wanted && !plugged && current == null && !MET.contains(context)) {
        Guard.say("spark.plugins lacks sluicegate's: attached by the session, executors do not report their load");
        attach(context, context.applicationId());
      }
    } catch (Throwable problem) {
      Guard.say("not attached, the application goes on without: " + Guard.words(problem));
    }
  }

  /** Attaches an existing session: queries started from now on follow the plan. */
  public static String attachSession(SparkSession session) {
    SparkContext context = SparkInternals.context(session);
    String problem = attach(context, context.applicationId());
    boolean configured = context.conf().get("spark.sql.extensions", "").contains(Extension.class.getName());
    if (problem.isEmpty() && !configured && RULED.add(session)) {
      SparkInternals.addRule(session);
    }
    if (problem.isEmpty()) {
      current.session = session;
    }
    return problem;
  }

  /** Detaches: from the next batch on Spark runs unmodified; executors stay as they are. */
  public static synchronized void detach() {
    Attachment last = current;
    current = null;
    if (last != null) {
      last.closeInTime();
    }
  }

  /** Closes on a thread of its own: a disk that hangs must not hold up spark.stop(). */
  private void closeInTime() {
    Thread closing = daemon(this::close);
    closing.start();
    try {
      closing.join(MOST_CLOSING_MS);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  /** Ends this attachment, unless another one has replaced it. */
  static synchronized void end(Attachment which) {
    if (current == which) {
      detach();
    }
  }

  /** The path of the application's run folder; null if nothing is attached. */
  public static String folder() {
    Attachment now = current;
    return now == null ? null : now.folder.path.toString();
  }

  private void close() {
    guard.run("close", () -> context.removeSparkListener(watch));
    guard.run("close", () -> untab.run());
    clock.shutdownNow();
    asker.shutdownNow();
    guard.run("close", pace::giveBackAll);
    guard.run("close", split::giveBackAll);
    lister.shutdownNow();
    watch.close();
    topics.close();
    guard.run("close", () -> queries.all().forEach(one -> one.active = false));
    guard.run("close", this::describe);
    if (controller != null) {
      guard.run("close", controller::close);
    }
    guard.run("close", folder::close);
  }

  // ---- called by the plan rule

  boolean moves(Guard.Lever which) {
    return touches && guard.has(which);
  }

  boolean moves(Guard.Lever which, String query) {
    return touches && guard.has(which, query);
  }

  WantedPlan plan() {
    return plan;
  }

  /** Remembers the first session: any session gives access to the queries of all sessions. */
  void seen(SparkSession any) {
    if (session == null) {
      session = any;
    }
  }

  String nameOf(String id, SparkSession asking) {
    Queries.Query known = queries.byId(id);
    if (known != null) {
      return known.name;
    }
    var found = SparkInternals.query(asking, id);
    if (found == null) {
      return null;
    }
    return queries.started(id, found.runId().toString(), found.name(), run -> SparkInternals.query(asking, run) != null).name;
  }

  /** Executors that may get tasks, in Spark's location format. */
  List<String> seats() {
    List<String> found = new ArrayList<>();
    new TreeMap<>(hosts).forEach((id, host) -> {
      if (!lever.leaves(id)) {
        found.add(SparkInternals.seat(host, id));
      }
    });
    return found;
  }

  /** Whether queries earlier in name order fill a seat; the order keeps two queries from avoiding each other. */
  boolean taken(String seat, String query) {
    int tasks = 0;
    for (var other : seated.entrySet()) {
      tasks += other.getKey().compareTo(query) < 0 ? other.getValue().getOrDefault(seat, 0) : 0;
    }
    return tasks >= executorCores();
  }

  void took(String query, List<String> seats, int[] tasks, StatePlaces.Placed placed) {
    places.put(query, placed);
    Map<String, Integer> now = new HashMap<>();
    for (int i = 0; i < tasks.length; i++) {
      now.put(seats.get(i), tasks[i]);
    }
    seated.put(query, now);
  }

  /** The placement of the last batch's state; null if Spark chose it. */
  StatePlaces.Placed placesOf(String query) {
    return places.get(query);
  }

  /** Why no plan moves the tasks of a query; null if plans do. */
  String leftOf(Queries.Query query) {
    String failed = guard.whyGone(Guard.Lever.TASKS, query.name);
    return failed == null ? query.left : "a plan that moved it failed (" + Guard.redacted(failed) + ")";
  }

  /** A query that failed, perhaps because of its plan, is left to Spark when it is started again. */
  void failed(Queries.Query query, String failure) {
    String ours = plan.queries().containsKey(query.name) ? Guard.mayBeOurs(failure) : null;
    if (ours != null) {
      guard.giveUp(Guard.Lever.TASKS, query.name, ours);
    }
  }

  void ended(String query) {
    places.remove(query);
    seated.remove(query);
    lever.batchEnded(query);
  }

  // ---- called by the listener

  void cores(String executor, int count) {
    cores.put(executor, count);
  }

  void came(String executor, String host) {
    if (!executor.equals("driver")) {
      hosts.put(executor, host);
      lastCame = System.currentTimeMillis() / 1e3;
    }
  }

  void left(String executor) {
    hosts.remove(executor);
    cores.remove(executor);
    lever.left(executor);
    NodeLoads.forget(executor);
  }

  void batchEnded(String query) {
    lever.batchEnded(query);
  }

  double lastCameSeconds() {
    return lastCame;
  }

  Double triggerSeconds(String id) throws ReflectiveOperationException {
    return session == null ? null : SparkInternals.triggerSeconds(session, id);
  }

  List<SparkDataStream> sourcesOf(String run) {
    return session == null ? List.of() : SparkInternals.sources(session, run);
  }

  StreamExecution running(String run) {
    return session == null ? null : SparkInternals.query(session, run);
  }

  String checkpointOf(String run) {
    return session == null ? null : SparkInternals.checkpoint(session, run);
  }

  List<String> executors() {
    return List.copyOf(hosts.keySet());
  }

  /** The number of tasks that one executor can run at once. */
  int executorCores() {
    return Math.max(cores.values().stream().mapToInt(Integer::intValue).max().orElse(1) / taskCpus(), 1);
  }

  private int taskCpus() {
    return Math.max(context.conf().getInt("spark.task.cpus", 1), 1);
  }

  /** The number of tasks that can run at once. */
  int slots() {
    int each = taskCpus();
    if (context.isLocal()) {
      return Math.max(SparkInternals.localCores(context) / each, 1);
    }
    return cores.entrySet().stream().filter(e -> hosts.containsKey(e.getKey())).mapToInt(e -> e.getValue() / each).sum();
  }

  // ---- the folder

  void describe() throws Exception {
    folder.write("pipeline.json", queries.description(context.appName(), this::checkpointOf));
  }

  private void describeApplication(String application) throws Exception {
    ObjectNode out = RunFolder.JSON.createObjectNode().put("application", application).put("name", context.appName());
    out.put("master", context.master()).put("spark", context.version()).put("touches", touches);
    out.put("local", context.isLocal()).put("no_executors", noExecutors).put("started_s", now());
    ObjectNode settings = out.putObject("settings");
    for (var one : context.conf().getAllWithPrefix(KEYS)) {
      if (PROMISE.matcher(one._1()).matches() || !SECRET.matcher(one._1()).find()) {
        settings.put(one._1(), one._2());
      }
    }
    folder.write("application.json", out);
  }

  private void readPlan() throws Exception {
    String stamp = folder.stamp("plan.json");
    if (stamp == null) {
      plan = WantedPlan.NONE;
    } else if (!stamp.equals(planStamp)) {
      JsonNode document = folder.read("plan.json");
      plan = document == null ? WantedPlan.NONE : WantedPlan.of(document);
    }
    planStamp = stamp;
  }

  private void moveExecutors() {
    if (noExecutors != null || !moves(Guard.Lever.EXECUTORS)) {
      return;
    }
    try {
      guard.fault("lever");
      lever.step(Math.min(plan.executors(), mostExecutors));
    } catch (Throwable problem) {
      if (asker.isShutdown()) {
        return; // interrupted by a detach
      }
      guard.giveUp(Guard.Lever.EXECUTORS, problem.toString());
    }
  }

  private void moveSources() throws Exception {
    if (moves(Guard.Lever.PACE) && paces) {
      try {
        guard.fault("pace");
        pace.step(plan);
      } catch (Throwable problem) {
        guard.giveUp(Guard.Lever.PACE, problem.toString());
        pace.giveBackAll();
      }
    }
    if (moves(Guard.Lever.SPLITTING)) {
      try {
        guard.fault("split");
        split.step(plan);
      } catch (Throwable problem) {
        guard.giveUp(Guard.Lever.SPLITTING, problem.toString());
        split.giveBackAll();
      }
    }
  }

  private void watchController() throws Exception {
    if (controller != null) {
      controller.watch();
    }
  }

  private void deleteForgotten() throws Exception {
    for (String name = queries.nextForgotten(); name != null; name = queries.nextForgotten()) {
      folder.delete(name);
      ended(name);
    }
  }

  private void writeNodes() throws Exception {
    ObjectNode out = RunFolder.JSON.createObjectNode().put("at_s", now()).put("slots", slots());
    out.set("executors", RunFolder.JSON.valueToTree(context.isLocal() ? null : hosts.size()));
    out.put("executor_cores", executorCores());
    ObjectNode busy = out.putObject("busy");
    if (session != null) {
      queries.all().stream().filter(one -> one.active).forEach(one -> busy.put(one.name, SparkInternals.busy(session, one.run)));
    }
    out.set("files", files.told());
    ArrayNode loads = out.putArray("loads");
    NodeLoads.told().lines().filter(line -> !line.isBlank()).forEach(loads::add);
    folder.write("nodes.json", out);
  }

  private void seed() {
    for (var one : scala.jdk.javaapi.CollectionConverters.asJava(knownExecutors())) {
      cores(one.id(), one.totalCores());
      came(one.id(), one.hostPort().replaceAll(":\\d+$", ""));
    }
    lastCame = 0;
  }

  /** Finds executors whose events came before the listener, or were dropped; one is gone if missing twice in a row. */
  private void recount() {
    Set<String> active = new HashSet<>();
    for (var one : scala.jdk.javaapi.CollectionConverters.asJava(knownExecutors())) {
      active.add(one.id());
      if (!hosts.containsKey(one.id())) {
        cores(one.id(), one.totalCores());
        came(one.id(), one.hostPort().replaceAll(":\\d+$", ""));
      }
    }
    Set<String> absent = new HashSet<>(hosts.keySet());
    absent.removeAll(active);
    absent.stream().filter(missing::contains).forEach(this::left);
    missing = absent;
  }

  /** Ends queries of whose end no event told, since Spark or we dropped it; one has ended if missing twice in a row. */
  private void recountQueries() throws Exception {
    Set<String> gone = new HashSet<>();
    boolean fresh = false;
    for (Queries.Query one : queries.all()) {
      String run = one.run;
      if (one.active && session != null && running(run) == null) {
        gone.add(run);
        if (unheard.contains(run) && queries.ended(one, run)) {
          ended(one.name);
          fresh = true;
        }
      }
    }
    unheard = gone;
    if (fresh) {
      describe();
    }
  }

  private scala.collection.immutable.Seq<org.apache.spark.status.api.v1.ExecutorSummary> knownExecutors() {
    return context.statusStore().executorList(true);
  }

  private void every(long millis, String what, Guard.Body body) {
    clock.scheduleWithFixedDelay(() -> guard.run(what, body), 0, millis, TimeUnit.MILLISECONDS);
  }

  private static Thread daemon(Runnable body) {
    Thread thread = new Thread(body, "sluicegate-clock");
    thread.setDaemon(true);
    return thread;
  }

  /** The upper end of a range such as 1:4, which binds whatever the plan says. */
  private static int mostOf(String range) {
    String most = range.substring(range.indexOf(':') + 1).trim();
    return most.matches("[1-9]\\d{0,3}") ? Integer.parseInt(most) : MOST_EXECUTORS;
  }

  private static double now() {
    return System.currentTimeMillis() / 1e3;
  }

  private static Path folderOf(SparkContext context, String application) {
    String given = context.conf().get(KEYS + "folder", "");
    if (!given.isEmpty()) {
      return Path.of(given).toAbsolutePath();
    }
    String home = System.getenv("SLUICEGATE_HOME");
    // $HOME first, as Python's commands do: Java reads the password file, where a container's user may have no entry
    String ofUser = System.getenv().getOrDefault("HOME", System.getProperty("user.home"));
    Path base = home == null || home.isEmpty() ? Path.of(ofUser, ".sluicegate") : Path.of(home);
    return base.resolve("attached").resolve(application).toAbsolutePath();
  }
}
