package sluicegate;

/** What Spark asks of an edge while it plans a batch. Answered by the driver's Python, where all of the logic is. */
public interface EdgePlanner {
    /** The offset that the next batch ends at, given where the last one ended; the same one while nothing is due. */
    String latest(String start);

    /** Whether no batch may start any more, with or without rows: the pipeline stops. */
    boolean held();

    /** The tasks of a batch as JSON: {"whole": b, "tasks": [[[path, start, length, size, skip, take, sums], ..], ..]}. */
    String tasks(String start, String end);
}
