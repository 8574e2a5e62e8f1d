package sluicegate.attach;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionCoalescer;
import org.apache.spark.rdd.PartitionGroup;
import org.apache.spark.rdd.RDD;
import scala.Option;

/**
 * Assigns partitions to tasks: a partition stays on the executor that has its state loaded as long as the load is even,
 * so a new executor gets its share at once. Stateless stages are cut evenly and placed by Spark.
 */
final class StatePlaces implements PartitionCoalescer, Serializable {
  private static final long serialVersionUID = 1L;

  private final transient String query;
  private final transient boolean stateful;

  StatePlaces(String query, boolean stateful) {
    this.query = query;
    this.stateful = stateful;
  }

  @Override
  public PartitionGroup[] coalesce(int most, RDD<?> parent) {
    Partition[] parts = parent.partitions();
    int tasks = Math.min(most, parts.length);
    Attachment attachment = Attachment.current();
    if (attachment == null || !stateful || !attachment.moves(Guard.Lever.PLACES, query)) {
      return neighbours(parts, tasks);
    }
    long began = System.nanoTime();
    try {
      attachment.guard.fault("places");
      return placed(attachment, parts, tasks, parent);
    } catch (Throwable problem) {
      Guard.passOn(problem);
      attachment.guard.giveUp(Guard.Lever.PLACES, query, problem.toString());
      return neighbours(parts, tasks);
    } finally {
      attachment.guard.timed(Guard.Lever.PLACES, began, attachment.queries.lastSeconds(query));
    }
  }

  private static PartitionGroup[] neighbours(Partition[] parts, int tasks) {
    PartitionGroup[] groups = new PartitionGroup[tasks];
    for (int task = 0; task < tasks; task++) {
      groups[task] = group(Option.empty(), List.of(parts), task, tasks);
    }
    return groups;
  }

  private PartitionGroup[] placed(Attachment attachment, Partition[] parts, int tasks, RDD<?> parent) {
    Map<String, List<Partition>> loaded = new HashMap<>();
    List<Partition> homeless = new ArrayList<>();
    List<String> seats = new ArrayList<>(attachment.seats());
    for (Partition part : parts) {
      String at = SparkInternals.preferred(parent, part.index(), seats);
      (at == null ? homeless : loaded.computeIfAbsent(at, none -> new ArrayList<>())).add(part);
    }
    if (seats.isEmpty()) {
      return neighbours(parts, tasks);
    }
    Map<Integer, String> before = new HashMap<>();
    loaded.forEach((seat, ones) -> ones.forEach(one -> before.put(one.index(), seat)));
    if (tasks < seats.size()) {
      // first the executors that other queries leave free, then those with the most state loaded
      seats.sort(
          Comparator.<String, Boolean>comparing(seat -> attachment.taken(seat, query))
              .thenComparing(seat -> -loaded.getOrDefault(seat, List.of()).size()));
      seats = seats.subList(0, tasks);
    }
    int[] share = new int[seats.size()];
    for (int task = 0; task < tasks; task++) {
      share[task % share.length]++;
    }
    List<List<Partition>> held = shares(seats, share, parts.length, loaded, homeless);
    attachment.took(query, seats, share, new Placed(parts.length, seats.size(), kept(seats, held, before)));
    return groups(seats, share, held, tasks);
  }

  /** The number of state partitions, of executors, and of partitions that stayed where they were. */
  record Placed(int partitions, int executors, int kept) {}

  private static int kept(List<String> seats, List<List<Partition>> held, Map<Integer, String> before) {
    int kept = 0;
    for (int seat = 0; seat < held.size(); seat++) {
      for (Partition part : held.get(seat)) {
        kept += seats.get(seat).equals(before.get(part.index())) ? 1 : 0;
      }
    }
    return kept;
  }

  /** The partitions of each executor: those it has loaded, up to its share, then unloaded and surplus ones. */
  private static List<List<Partition>> shares(
      List<String> seats, int[] share, int parts, Map<String, List<Partition>> loaded, List<Partition> homeless) {
    int tasks = 0;
    for (int one : share) {
      tasks += one;
    }
    List<List<Partition>> held = new ArrayList<>();
    List<Partition> loose = new ArrayList<>(homeless);
    int[] room = new int[share.length];
    int given = 0;
    for (int seat = 0; seat < share.length; seat++) {
      room[seat] = (int) ((long) parts * share[seat] / tasks);
      given += room[seat];
    }
    for (int seat = 0; given < parts; seat = (seat + 1) % share.length, given++) {
      room[seat]++;
    }
    for (int seat = 0; seat < share.length; seat++) {
      List<Partition> mine = loaded.getOrDefault(seats.get(seat), List.of());
      int kept = Math.min(mine.size(), room[seat]);
      held.add(new ArrayList<>(mine.subList(0, kept)));
      loose.addAll(mine.subList(kept, mine.size()));
      loaded.remove(seats.get(seat));
    }
    loaded.values().forEach(loose::addAll);
    int seat = 0;
    for (Partition part : loose) {
      while (held.get(seat).size() >= room[seat]) {
        seat++;
      }
      held.get(seat).add(part);
    }
    return held;
  }

  private static PartitionGroup[] groups(List<String> seats, int[] share, List<List<Partition>> held, int tasks) {
    PartitionGroup[] groups = new PartitionGroup[tasks];
    int at = 0;
    for (int seat = 0; seat < share.length; seat++) {
      for (int task = 0; task < share[seat]; task++) {
        groups[at++] = group(Option.apply(seats.get(seat)), held.get(seat), task, share[seat]);
      }
    }
    return groups;
  }

  private static PartitionGroup group(Option<String> place, List<Partition> parts, int task, int tasks) {
    PartitionGroup group = new PartitionGroup(place);
    int from = (int) ((long) task * parts.size() / tasks);
    int to = (int) ((long) (task + 1) * parts.size() / tasks);
    parts.subList(from, to).forEach(part -> group.partitions().append(part));
    return group;
  }
}
