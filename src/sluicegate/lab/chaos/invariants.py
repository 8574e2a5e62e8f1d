"""Invariants that a pipeline's folder must satisfy after any faults, besides the right answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sluicegate.errors import SluicegateError
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.pipeline.verify import verify

_MOST_LEFT = 40
"""Allowed leftovers of the batches since the last cleanup: manifests that every reader has consumed, data folders
without a manifest, drafts. Without cleanup a run leaves hundreds."""


def broken(layout: Layout, graph: RunningGraph) -> list[str]:
    """One line for each violated invariant; the pipeline must not be running."""
    return [*_sound(layout), *_batches(layout, graph), *_bounded(layout, graph), *_no_trace(layout)]


def _sound(layout: Layout) -> Iterator[str]:
    """Verify manifest chains, checksums, checkpoints against edges, and state against commits."""
    try:
        yield from (f"verify: {fault}" for fault in verify(layout.folder).faults)
    except SluicegateError as problem:
        yield f"verify: {problem}"


def _batches(layout: Layout, graph: RunningGraph) -> Iterator[str]:
    """Every batch is committed exactly once: no gaps, no repeats."""
    for node in graph.nodes:
        for log in ("offsets", "commits"):
            numbers = sorted(int(p.name) for p in (layout.checkpoint(node.name) / log).glob("*") if p.name.isdigit())
            if numbers and numbers != list(range(numbers[0], numbers[-1] + 1)):
                yield f"{node.name}: {log} have a gap: {numbers}"
        logged = Counter(_numbers(layout.batches(node.name)))
        again = [number for number, times in logged.items() if times > 1]
        if again:
            yield f"{node.name}: batch {again[0]} is logged as committed {logged[again[0]]} times"


def _numbers(path: Path) -> Iterator[int]:
    for line in Tail(path).lines():
        try:
            yield int(json.loads(line)["batch"])
        except (ValueError, KeyError, TypeError):
            continue  # a line that a killed driver or a spoiled file left


def _bounded(layout: Layout, graph: RunningGraph) -> Iterator[str]:
    """Consumed manifests, data without a manifest, and drafts of interrupted batches have been deleted."""
    for stream in graph.streams:
        edge = FolderEdge(layout.edge(stream))
        numbers = edge.numbers()
        if stream not in graph.kept and len(numbers) > _MOST_LEFT:
            yield f"edge {stream!r}: {len(numbers)} manifests are left"
        homes = sum(path.is_dir() for path in (edge.folder / "data").iterdir())
        if homes > len(numbers) + _MOST_LEFT:
            yield f"edge {stream!r}: {homes} folders of data for {len(numbers)} manifests"
    drafts = [path for path in layout.folder.rglob(".*") if path.is_file() and path.suffix != ".crc"]
    if len(drafts) > _MOST_LEFT:
        yield f"{len(drafts)} drafts are left, such as {drafts[0]}"


def _no_trace(layout: Layout) -> Iterator[str]:
    text = layout.controller_log.read_text(errors="replace") if layout.controller_log.exists() else ""
    if "Traceback" in text:
        _, _, after = text.rpartition("Traceback")
        where = [line.strip() for line in after.splitlines() if line.startswith("  File ")]
        ends = next((line for line in after.splitlines()[1:] if line and not line.startswith(" ")), "cut off")
        yield f"the controller left {text.count('Traceback')} traces, the last: {ends} ({', '.join(where[-1:])})"
