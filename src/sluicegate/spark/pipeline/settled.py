"""Whether a query has anything left to do, as its own checkpoint says.

A query with processing-time timers runs a batch without input after the other, for ever, to see which are due. Between
them and in them it has nothing to read: it is idle. One such batch may also follow input, where a watermark moved.
"""

from __future__ import annotations

from pathlib import Path

from sluicegate.runlog.files import read_if_there
from sluicegate.spark.edges.offsets import last_batch, last_committed


def between_batches(checkpoint: Path) -> bool:
    """Whether the last batch that was planned is committed."""
    return last_committed(checkpoint) == last_batch(checkpoint)


def only_timers(checkpoint: Path) -> bool:
    """Whether the last two batches that were planned took nothing in: more than a watermark asks for."""
    planned = last_batch(checkpoint)
    return planned is not None and _took_nothing(checkpoint, planned) and _took_nothing(checkpoint, planned - 1)


def _took_nothing(checkpoint: Path, batch: int) -> bool:
    now, before = (_offsets(checkpoint, number) for number in (batch, batch - 1))
    return now is not None and now == before


def _offsets(checkpoint: Path, batch: int) -> list[str] | None:
    """The lines of all sources; the first two are Spark's version and the time."""
    text = read_if_there(checkpoint / "offsets" / str(batch))
    return None if text is None else text.splitlines()[2:]
