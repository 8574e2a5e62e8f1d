"""What edges cost, beside Spark's own files, Kafka and a plain query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sections.section import Column, Line, Section, close, ratio


def _above(key: str, aim: float, what: str) -> Callable[[Sequence[Line]], str]:
    def verdict(lines: Sequence[Line]) -> str:
        values = [line[key] for line in lines]
        return f"Aim: {what} at least {aim:g}; reached in {sum(one >= aim for one in values)} of {len(values)} runs."

    return verdict


SECTIONS: tuple[Section, ...] = (
    Section(
        "edges",
        "Edges against Spark's own Parquet source and sink",
        "One light SQL operator with an edge at each side, and the same query with Spark's file source and sink, "
        "in turns. Decoding and encoding Parquet limits both.",
        "edge_throughput.py 8",
        (Column("rows", "rows"),),
        (
            Column("edges, rows/s", "edges_per_s"),
            Column("Spark's Parquet, rows/s", "parquet_per_s"),
            Column("edges / Parquet", "ratio", ratio),
        ),
    ),
    Section(
        "kafka_edges",
        "A Kafka topic as an edge, against Spark's own Kafka sink and source",
        "Two light operators with a topic between them, and the same as two plain queries, in turns with one real "
        "broker; JSON records on both sides, one batch per table fed. The edge is exactly once, Spark's sink at "
        "least once. The edge is slower because its rows pass through Python on both sides, where Spark's own stay in "
        "Java.",
        "kafka_edges.py",
        (Column("rows", "rows"),),
        (
            Column("Kafka edge, rows/s", "edge_per_s"),
            Column("Spark's Kafka, rows/s", "spark_per_s"),
            Column("edge / Spark", "ratio", ratio),
            Column("exact", "exact"),
        ),
    ),
    Section(
        "checksums",
        "What checksums cost an edge",
        "Rows a second of batch time with checksums over those without, in pairs that take turns.",
        "edge_checksums.py 3",
        (Column("rows", "rows"),),
        (Column("with / without", "ratio", close),),
        _above("ratio", 0.97, "with over without"),
    ),
    Section(
        "plain",
        "A pipeline against the same code as a plain query",
        "Word count, fused into one query, against plain Structured Streaming with foreachBatch, in turns: lines "
        "per second of large batches, and processor time of small ones, including the loop and its logs.",
        "plain_query.py 0.9",
        (Column("lines", "lines"),),
        (
            Column("throughput / plain", "throughput_ratio", ratio),
            Column("processor time a small batch / plain", "cpu_ratio", ratio),
        ),
    ),
)
