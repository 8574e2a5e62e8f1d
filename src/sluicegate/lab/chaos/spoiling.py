"""Damages files of a pipeline (delete, empty, truncate, overwrite, flip one bit) and restores them if needed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sluicegate.runlog.layout import Layout
from sluicegate.spark.pipeline.graph import RunningGraph


def _flip(read: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(read))
    return read[:at] + bytes([read[at] ^ (1 << rng.randrange(8))]) + read[at + 1 :]


WAYS: Mapping[str, Callable[[bytes, random.Random], bytes | None]] = {
    "deleted": lambda read, rng: None,
    "emptied": lambda read, rng: b"",
    "torn": lambda read, rng: read[: len(read) // 2],
    "overwritten": lambda read, rng: rng.randbytes(len(read)),
    "flipped": _flip,
}


def _newest(folder: Path, pattern: str = "*") -> list[Path]:
    """The file with the highest number for a name, if any."""
    found = [path for path in folder.glob(pattern) if path.stem.isdigit()]
    return [max(found, key=lambda path: int(path.stem))] if found else []


def _files(layout: Layout, graph: RunningGraph) -> dict[str, list[Path]]:
    """By kind: the files that a resumed pipeline reads."""
    streams = [*graph.sources, *(stream for node in graph.nodes for stream in node.writes)]
    edges = [layout.edge(stream) for stream in streams]
    checkpoints = [layout.checkpoint(node.name) for node in graph.nodes]
    return {
        "manifest": [path for edge in edges for path in _newest(edge / "manifests", "*.json")],
        "data": [path for edge in edges for path in sorted((edge / "data").glob("*/*.parquet"))[-1:]],
        "mark": [edge / name for edge in edges for name in ("newest", "oldest")],
        "edge.json": [edge / "edge.json" for edge in edges],
        "offsets": [path for c in checkpoints for path in _newest(c / "offsets")],
        "commits": [path for c in checkpoints for path in _newest(c / "commits")],
        "metadata": [c / "metadata" for c in checkpoints],
        "state": [path for c in checkpoints for path in _states(c)],
        "plan": [layout.plan],
        "pipeline.json": [layout.description],
        "log": [layout.ticks, layout.decisions, layout.failures, *(layout.batches(n.name) for n in graph.nodes)],
    }


def _states(checkpoint: Path) -> list[Path]:
    """The newest file of every state store."""
    found: dict[Path, Path] = {}
    for path in (checkpoint / "state").rglob("*"):
        if path.is_file() and path.suffix in (".changelog", ".zip", ".delta"):
            known = found.get(path.parent)
            if known is None or path.stat().st_mtime > known.stat().st_mtime:
                found[path.parent] = path
    return sorted(found.values())


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A damaged file, with its content before and after."""

    path: Path
    way: str
    kind: str
    before: bytes
    after: bytes | None

    def restore(self) -> bool:
        """Restore the content, unless the file was written since; return whether it was restored."""
        now = self.path.read_bytes() if self.path.exists() else None
        if now != self.after:
            return False
        self.path.write_bytes(self.before)
        return True


def spoil(layout: Layout, graph: RunningGraph, rng: random.Random) -> Spoiled | None:
    """Damage one file of a pipeline that is not running; ``None`` if the drawn kind has no file or nothing changed."""
    kinds = _files(layout, graph)
    kind, way = rng.choice(sorted(kinds)), rng.choice(sorted(WAYS))
    found = [path for path in kinds[kind] if path.is_file() and path.stat().st_size]
    if not found:
        return None
    path = rng.choice(sorted(found))
    before = path.read_bytes()
    after = WAYS[way](before, rng)
    if after == before:
        return None
    if after is None:
        path.unlink()
    else:
        path.write_bytes(after)
    return Spoiled(path, way, kind, before, after)
