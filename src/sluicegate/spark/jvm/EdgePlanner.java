package sluicegate;

/** What Spark asks an edge while it plans a batch; implemented in Python in the driver. */
public interface EdgePlanner {
    /** The end offset of the next batch, given the end of the last one; the same offset while no batch is due. */
    String latest(String start);

    /** Whether no further batch may start, with or without rows, because the pipeline is stopping. */
    boolean held();

    /** Tasks of a batch as JSON: {"whole": b, "tasks": [[[path, start, length, size, skip, take, sums], ..], ..]}. */
    String tasks(String start, String end);
}
