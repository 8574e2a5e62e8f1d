"""Long runs: at the edge of capacity, and through a backlog."""

from __future__ import annotations

from sections.section import Column, Section, percent, ratio

SECTIONS: tuple[Section, ...] = (
    Section(
        "soak",
        "At the edge of capacity with a load that doubles at random",
        "Word count under the loop, the dashboard beside it; the higher level of the load is 0.8 of what all "
        "processors take from a backlog, or a smaller one that was given (`--rate`), beside other work. Last quarter "
        "over second quarter of the memory of each process, of the run's folder without what the sink keeps, and of "
        "the latency at the lower level. Java's resident memory grows up to its heap of 1 GB, the driver's Python also "
        "holds this benchmark's own record of every batch, and logs grow up to 8 MB each.",
        "soak.py --minutes 60",
        (Column("minutes", "minutes"), Column("rows/s at the higher level", "high_per_s")),
        (
            Column("driver, Python", "python_growth", ratio),
            Column("driver, Java", "java_growth", ratio),
            Column("controller", "controller_growth", ratio),
            Column("dashboard", "dashboard_growth", ratio),
            Column("disk", "disk_growth", ratio),
            Column("disk, MB at most", "disk_mb"),
            Column("latency", "latency_drift", ratio),
            Column("controller, of a core", "controller_share", percent),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "backlog",
        "A backlog of an hour",
        "Word count with an hour's tables, five a second, waiting on its source; a driver with little memory works "
        "them off. The resident memory of its Java process at most, meanwhile and while a few rows passed before.",
        "backlog.py",
        (Column("tables", "tables"), Column("heap", "memory")),
        (
            Column("rows", "rows"),
            Column("MB before", "calm_mb"),
            Column("MB at most", "most_mb"),
            Column("largest batch", "largest_batch"),
            Column("rows/s", "rows_per_s"),
            Column("failures", "failures"),
            Column("exact", "exact"),
        ),
    ),
)
