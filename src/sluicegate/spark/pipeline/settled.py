"""Whether a query has anything left to do, by its checkpoint.

A query with processing-time timers runs batches without input back to back, forever, to check which timers are due. In
these batches and between them it counts as idle. One such batch may also follow input, when a watermark moved.
"""

from __future__ import annotations

from pathlib import Path

from sluicegate.runlog.files import read_if_there
from sluicegate.spark.edges.offsets import last_batch, last_committed


def between_batches(checkpoint: Path) -> bool:
    """Whether the last batch that was planned is committed."""
    return last_committed(checkpoint) == last_batch(checkpoint)


def only_timers(checkpoint: Path) -> bool:
    """Whether the last two planned batches had no input: a watermark alone causes only one such batch."""
    planned = last_batch(checkpoint)
    return planned is not None and _took_nothing(checkpoint, planned) and _took_nothing(checkpoint, planned - 1)


def _took_nothing(checkpoint: Path, batch: int) -> bool:
    now, before = (_offsets(checkpoint, number) for number in (batch, batch - 1))
    return now is not None and now == before


def _offsets(checkpoint: Path, batch: int) -> list[str] | None:
    """The offset lines of all sources; the first two lines of the file are the version and Spark's metadata."""
    text = read_if_there(checkpoint / "offsets" / str(batch))
    return None if text is None else text.splitlines()[2:]
