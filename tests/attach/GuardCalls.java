package sluicegate.attach;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** Calls the guard as the driver's code does, and prints what it makes of that. */
public final class GuardCalls {
  private static final long SECOND = 1_000_000_000L;

  public static void main(String[] told) {
    Guard slow = new Guard("", 600, () -> false);
    slow.timed(Guard.Lever.TASKS, System.nanoTime() - SECOND, 3);
    slow.timed(Guard.Lever.TASKS, System.nanoTime() - SECOND, 3);
    System.out.println("slow " + slow.has(Guard.Lever.TASKS));

    Guard overloaded = new Guard("", 600, () -> false);
    overloaded.timed(Guard.Lever.TASKS, System.nanoTime() - SECOND, 100);
    overloaded.timed(Guard.Lever.TASKS, System.nanoTime() - SECOND, 100);
    System.out.println("overloaded " + overloaded.has(Guard.Lever.TASKS));

    Guard cold = new Guard("", 600, () -> false);
    cold.timed(Guard.Lever.TASKS, System.nanoTime() - SECOND, 0);
    cold.timed(Guard.Lever.TASKS, System.nanoTime() - SECOND, 0);
    System.out.println("cold " + cold.has(Guard.Lever.TASKS));

    Guard shared = new Guard("", 600, () -> false);
    List<String> said = new ArrayList<>();
    shared.heardBy(said::add);
    shared.giveUp(Guard.Lever.TASKS, "one", "a plan of it failed\nwith details");
    shared.giveUp(Guard.Lever.TASKS, "one", "again");
    System.out.println("one " + shared.has(Guard.Lever.TASKS, "one"));
    System.out.println("other " + shared.has(Guard.Lever.TASKS, "other"));
    said.forEach(line -> System.out.println("told " + line));
    shared.giveUp(Guard.Lever.TASKS, null, "before any query is known");
    System.out.println("none " + shared.has(Guard.Lever.TASKS, "other"));

    System.out.println("barrier " + Guard.mayBeOurs("An error occurred\n: SparkException: [SPARK-24821]: a chain\n\tat x"));
    System.out.println("class " + Guard.mayBeOurs("x\njava.lang.ClassNotFoundException: sluicegate.attach.OneByOne\n"));
    System.out.println("theirs " + Guard.mayBeOurs("java.lang.ClassNotFoundException: com.example.Sink\n\tat sluicegate"));

    Guard troubled = new Guard("", 600, () -> false);
    List<String> lines = new ArrayList<>();
    troubled.heardBy(lines::add);
    for (int request = 0; request < 5000; request++) {
      troubled.once("the broker", "the broker did not answer request " + request);
    }
    troubled.once("another trouble");
    System.out.println("troubled " + lines.size());

    long began = System.nanoTime();
    Guard.redacted("IllegalArgumentException: no number: '" + "a".repeat(300_000) + "'");
    Guard.redacted("x://".repeat(75_000));
    Guard.mayBeOurs("x\n" + "ClassNotFoundException ".repeat(13_000));
    System.out.println("redacted " + (System.nanoTime() - began < 2 * SECOND));
    String quoted = "https://u:hunter2@h {\"api.key\": \"hunter2\"} Map(password -> hunter2) Bearer hunter2hunter2";
    for (String reason : told) {
      String given = new String(Base64.getDecoder().decode(reason), StandardCharsets.UTF_8);
      byte[] words = PlainWords.plain(given).getBytes(StandardCharsets.UTF_8);
      System.out.println(reason + " " + Base64.getEncoder().encodeToString(words));
    }
    System.out.println("secret " + Guard.redacted(quoted).contains("hunter2"));
  }
}
