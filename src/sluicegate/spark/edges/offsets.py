"""Which manifests a batch takes in, as Spark's own offset log says: the log is written before the batch runs."""

from __future__ import annotations

import json
from pathlib import Path

from sluicegate.runlog.files import read_if_there


def batch_range(checkpoint: Path, batch: int) -> dict[str, tuple[int, int]]:
    """For every edge: the first manifest of the batch, and one past its last."""
    before = ends(checkpoint, batch - 1) if batch > 0 else {}
    return {edge: (before.get(edge, 0), end) for edge, end in ends(checkpoint, batch).items()}


def ends(checkpoint: Path, batch: int) -> dict[str, int]:
    """One past the last manifest of each edge, as of ``batch``; lines of other sources are not ours to read.

    A query that reads an edge twice (a join with itself) has two lines for it: what both have taken counts.
    """
    text = read_if_there(checkpoint / "offsets" / str(batch))
    found: dict[str, int] = {}
    for line in (text or "").splitlines()[2:]:
        if line.startswith("{"):
            offset = json.loads(line)
            if "edge" in offset and "next" in offset:
                edge, end = str(offset["edge"]), int(offset["next"])
                found[edge] = min(end, found.get(edge, end))
    return found


def last_batch(checkpoint: Path) -> int | None:
    """The last batch Spark has planned, finished or not."""
    return _highest(checkpoint / "offsets")


def last_committed(checkpoint: Path) -> int | None:
    """The last batch that Spark has finished and will not run again."""
    return _highest(checkpoint / "commits")


def committed(checkpoint: Path) -> dict[str, int]:
    """For every edge: the first manifest that no finished batch has taken, where any was."""
    batch = last_committed(checkpoint)
    return {} if batch is None else ends(checkpoint, batch)


def _highest(folder: Path) -> int | None:
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.exists() else []
    return max(numbers, default=None)
