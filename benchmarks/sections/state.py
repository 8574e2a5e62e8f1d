"""State that is rescaled, moved, lost and repaired."""

from __future__ import annotations

from sections.section import Column, Line, Section, ratio, seconds


def _chooser(line: Line) -> str:
    """
    >>> _chooser({"pace_s": 0.5}), _chooser({"pace_s": 0.5, "by": "es-stream, node below alpha"})
    ('fixed, 0.5 s', 'es-stream, node below alpha')
    """
    by = line.get("by", "fixed")
    return f"fixed, {line['pace_s']:g} s" if by == "fixed" else by


SECTIONS: tuple[Section, ...] = (
    Section(
        "rescale",
        "State: k within its key groups, beyond them, and stopping everything",
        "One aggregation. Within its key groups k changes at the next batch; for more, that one query is stopped "
        "at a batch boundary, its state is repartitioned and verified, and the query is restarted while the "
        "others continue; in the last column Spark alone makes the same change of partitions, with everything "
        "stopped. Gaps are between two batches at the sink. The size of the state is that of its rows, before "
        "compression.",
        "stateful_rescale.py",
        (Column("state, MB", "state_mb"),),
        (
            Column("keys", "keys"),
            Column("usual gap", "usual_gap_s", seconds),
            Column("within its groups", "within_s", seconds),
            Column("beyond them", "beyond_s", seconds),
            Column("stop everything", "all_s", seconds),
            Column("everything / within", "within_ratio", ratio),
            Column("everything / beyond", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "repartition",
        "Repartition time against parallelism",
        "The state of one aggregation is repartitioned by Spark's own function into the given number of "
        "partitions, in as many tasks as there are cores (Es-Stream's figure: 42 MB, time falls with "
        "parallelism). Beyond two tasks at a time the two cores are the limit. Equation 25 is scaled to the first "
        "row.",
        "state_parallelism.py",
        (Column("tasks at a time", "tasks"), Column("partitions", "partitions")),
        (
            Column("state, MB", "state_mb"),
            Column("repartition", "took_s", seconds),
            Column("equation 25", "eq_25_s", seconds),
            Column("same rows", "same"),
        ),
    ),
    Section(
        "recovery",
        "One operator fails, against starting everything again",
        "The middle of three queries fails: only it is restarted and resumes after its last batch; compared with "
        "a restart of the whole pipeline after the same failure. Seconds from the failed rows to the first row at "
        "the sink.",
        "recovery.py",
        (Column("what", lambda line: "one of three queries"),),
        (
            Column("alone", "alone_s", seconds),
            Column("everything", "all_s", seconds),
            Column("everything / alone", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "losses",
        "A lost executor, node and driver, against Spark's own recovery",
        "The same count by key as a pipeline and as a plain query, in turns, each in a driver of its own on the same "
        "cluster of two local nodes. Seconds from the loss until a row that was fed at that moment is counted at the "
        "sink; a lost driver is started again at once. The batch that loses an executor runs its lost task on the one "
        "that Spark starts in its place, whose first task is slow (1.4 s of a batch of 3.5 s in a run that was looked "
        "at): no loop runs here, which would warm it up first.",
        "losses.py",
        (Column("lost", "loss"),),
        (
            Column("sluicegate", "ours_s", seconds),
            Column("plain query", "plain_s", seconds),
            Column("sluicegate / plain", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "redeployment",
        "An instance moves to another node, against killing its executor",
        "A stateful operator on a cluster of two local workers: its placement switches between two batches once "
        "the other executor is warm; or its executor is killed. The longest gap at the sink.",
        "redeployment.py",
        (Column("keys", "keys"),),
        (
            Column("moved", "moved_s", seconds),
            Column("killed", "killed_s", seconds),
            Column("killed / moved", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "backup_interval",
        "Repair time against the backup interval",
        "The pace of a stateful operator is its backup interval: a longer one costs fewer commits and more rows to "
        "repeat. Measured beside Es-Stream's equation 26, at fixed paces and at the one that Es-Stream chooses on a "
        "node below and above its alpha with repairs bounded to 1 s (the start of the query comes on top of that).",
        "backup_interval.py",
        (Column("chosen by", lambda line: _chooser(line)),),
        (
            Column("pace", "pace_s", seconds),
            Column("repair", "repair_s", seconds),
            Column("equation 26", "eq_26_s", seconds),
            Column("batches a second", "batches_per_s", ratio),
            Column("exact", "exact"),
        ),
    ),
)
