"""Damages files of a pipeline and restores them if needed; its plan and logs also while it runs."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan, PlanInForce
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
    edges = [layout.edge(stream) for stream in graph.streams]
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


def _by_hand(names: Sequence[str], k: int) -> bytes:
    """A plan as a person would write it, without the entries that only the controller needs."""
    return json.dumps({"version": 9, "operators": {n: {"processors": k} for n in names}, "executors": k}).encode()


def _whole(names: Sequence[str], k: int) -> bytes:
    operators = {name: OperatorPlan(k) for name in names}
    return PlanInForce(9, operators).to_json().encode()


PLANS: Mapping[str, Callable[[Sequence[str], random.Random], bytes]] = {
    "garbage": lambda names, rng: rng.randbytes(300),
    "empty": lambda names, rng: b"",
    "torn": lambda names, rng: _by_hand(names, 2)[:40],
    "another type": lambda names, rng: b"[1, 2, 3]",
    "absurd": lambda names, rng: _whole(names, rng.choice((0, -5, 10**12))),
    "by hand": lambda names, rng: _by_hand(names, rng.randint(1, 9)),
    "of another number of tasks": lambda names, rng: _whole(names, rng.randint(1, 9)),
}


def plan_overwritten(path: Path, names: Sequence[str], rng: random.Random) -> str:
    """Overwrite a plan in one of several ways; returns which."""
    way = rng.choice(sorted(PLANS))
    path.write_bytes(PLANS[way](names, rng))
    return f"{path.name}: {way}"


def plan_spoiled(layout: Layout, graph: RunningGraph, rng: random.Random) -> str:
    return plan_overwritten(layout.plan, [node.name for node in graph.nodes], rng)


def log_overwritten(layout: Layout, graph: RunningGraph, rng: random.Random) -> str | None:
    """Overwrite a file of a running pipeline that nothing depends on; ``None`` if there is none yet."""
    names = (layout.ticks, layout.decisions, layout.failures, layout.nodes, layout.control, layout.what_if)
    found = [path for path in (*names, *(layout.batches(node.name) for node in graph.nodes)) if path.is_file()]
    if not found:
        return None
    path = rng.choice(sorted(found))
    with contextlib.suppress(OSError):
        path.write_bytes(rng.randbytes(200))
    return f"{path.relative_to(layout.folder)} overwritten"
