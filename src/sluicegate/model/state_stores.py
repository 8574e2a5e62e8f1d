"""Estimates what many state partitions cost a batch with little state, and how much fewer of them would save.

Every batch commits every store, with or without rows, one after the other within a task. With N stores, k concurrent
tasks and C seconds of task time for all commits, n stores instead of N make a batch shorter by about

    C (1 - n/N) / k

since the time of one commit hardly depends on its row count when that is small.
"""

from __future__ import annotations

from dataclasses import dataclass

_MANY = 64
"""Fewest partitions that advice is given for. At half, 32 partitions get it; at double, 100 do not."""
_FEW_ROWS = 1000
"""Rows per partition from which on the rows, not the commits, dominate the cost."""
_FEWEST = 8


@dataclass(frozen=True, slots=True)
class StoresSeen:
    """A typical batch: stores, rows in them, task time of all commits (0: unknown), duration, concurrent tasks."""

    partitions: int
    rows: int
    commit_s: float
    batch_s: float
    processors: int

    @property
    def too_many(self) -> bool:
        return self.partitions >= _MANY and self.rows < _FEW_ROWS * self.partitions

    def saved_s(self, partitions: int) -> float:
        """How much shorter a batch would be.

        >>> StoresSeen(200, 1000, commit_s=12.0, batch_s=7.0, processors=2).saved_s(16)
        5.52
        """
        fewer = self.commit_s * (1 - partitions / self.partitions) / max(self.processors, 1)
        return round(min(fewer, self.batch_s), 3)


def fewer_stores(most_tasks: int) -> int:
    """The least of 8, 16, 32, ... that gives two stores to each of ``most_tasks``, so that shares can be even.

    >>> fewer_stores(1), fewer_stores(6), fewer_stores(8)
    (8, 16, 16)
    """
    found = _FEWEST
    while found < 2 * most_tasks:
        found *= 2
    return found


def advice(seen: StoresSeen, most_tasks: int, checkpoint: str = "CHECKPOINT", rocksdb: bool = True) -> str | None:
    """One line of advice with the expected gain; ``None`` if there is nothing to gain."""
    fewer = fewer_stores(most_tasks)
    if not seen.too_many or fewer >= seen.partitions:
        return None
    saved_s = seen.saved_s(fewer)
    share = f"{saved_s / seen.batch_s:.0%}" if seen.batch_s > 0 else ""
    gain = (
        f"about {saved_s:.2g} s of a batch's {seen.batch_s:.2g} s ({share})"
        if saved_s > 0
        else f"what {seen.partitions} stores cost every batch"
    )
    cure = (
        f"`sluicegate repartition {checkpoint} {fewer}` on the stopped query saves {gain}"
        if rocksdb
        else f"a new query on RocksDB with spark.sql.shuffle.partitions={fewer} saves {gain}; Spark cannot repartition "
        "the state of this one"
    )
    return f"{seen.partitions} state partitions hold {seen.rows:,} rows: {cure}"
