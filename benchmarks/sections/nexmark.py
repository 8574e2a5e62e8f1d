"""Nexmark, plain, attached and as pipelines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sections.section import Column, Line, Section, seconds


def _nexmark(lines: Sequence[Line]) -> str:
    """The other ways over plain over all queries, from the medians of each."""
    middle: dict[str, dict[str, tuple[float, float]]] = {}
    for line in lines:
        query, way = line["query"], line["way"]
        of = [one for one in lines if (one["query"], one["way"]) == (query, way) and one["turn"]]
        if of and way not in middle.get(query, {}):
            wall, cpu = (statistics.median(one[what] for one in of) for what in ("wall_s", "cpu_s"))
            middle.setdefault(query, {})[way] = (wall, cpu)
    said = []
    for way, aim in (("attached", " (throughput; the aim is 0.98)"), ("pipeline", " (throughput)")):
        both = [found for found in middle.values() if {"plain", way} <= set(found)]
        if both:
            wall, cpu = (sum(one["plain"][i] for one in both) / sum(one[way][i] for one in both) for i in (0, 1))
            said.append(f"plain over {way} {wall:.3f} in wall time{aim} and {cpu:.3f} in processor time")
    return f"All queries together: {'; '.join(said)}; 1 is no loss." if said else "Only one way was measured."


SECTIONS: tuple[Section, ...] = (
    Section(
        "nexmark",
        "Nexmark, plain, attached and as pipelines",
        "Ten queries of Nexmark as ordinary Structured Streaming ([what they are](nexmark.md)), plain, attached, "
        "and as pipelines whose operators are separate queries with edges between them; in turns, and every sink "
        "is compared with an independent result. Processor time is that of the driver and all processes it "
        "started. A pipeline needs a write, a read and a batch for every edge, and has a k for each operator.",
        "nexmark/run.py",
        (Column("query", "query"), Column("way", "way")),
        (
            Column("events/s", lambda line: line["events"] / line["wall_s"] if line["wall_s"] else None),
            Column("processor time", "cpu_s", seconds),
            Column("exact", lambda line: line["wrong"] is None),
        ),
        _nexmark,
    ),
)
