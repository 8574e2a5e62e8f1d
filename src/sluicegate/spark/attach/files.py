"""Input files of an attached query: how many wait, when the recent ones arrived, and how many rows they hold."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_BATCHES = 20


@dataclass(frozen=True, slots=True)
class FilesSeen:
    """One listing, made at ``at_s``: ``waiting`` files that no batch has read.

    ``came`` are (second, files, bytes) by modification time over the last two minutes, whether read or not.
    """

    at_s: float
    waiting: int
    came: tuple[tuple[int, int, int], ...] = ()
    waiting_bytes: int = 0

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> FilesSeen:
        came = tuple((int(second), int(count), int(size)) for second, count, size in told["came"])
        waiting, size = int(told["waiting"]), int(told["waiting_bytes"])
        return cls(float(told["at_s"]), waiting, came, size)

    def came_within(self, window_s: float) -> tuple[int, int]:
        """Files and bytes that arrived within the last ``window_s`` seconds.

        >>> FilesSeen(100.5, 0, came=((89, 5, 90), (90, 5, 80), (91, 2, 70), (100, 1, 9))).came_within(10.0)
        (3, 79)
        """
        recent = [(count, size) for second, count, size in self.came if second >= math.ceil(self.at_s - window_s)]
        return sum(count for count, _ in recent), sum(size for _, size in recent)

    def per_s(self, window_s: float) -> tuple[float, float]:
        """Files and bytes per second over the whole seconds of the window and the current, partial one.

        >>> FilesSeen(100.5, 0, came=(*((second, 2, 80) for second in range(60, 100)), (100, 1, 40))).per_s(10.0)
        (2.0, 80.0)
        """
        took_s = self.at_s - math.ceil(self.at_s - window_s)
        files, size = self.came_within(window_s)
        return files / took_s, size / took_s


@dataclass(slots=True)
class RowsInFiles:
    """Estimates rows from files, learned from the batches whose files are known.

    Uses rows per byte where sizes are known: when the load rises a writer often makes larger files rather than more of
    them, which a mean of rows per file would follow only after the old batches have left the window.
    """

    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_BATCHES))

    def learn(self, sources: Iterable[Mapping[str, Any]]) -> None:
        for source in sources:
            files = sum(int(count) for _, count in source.get("files") or ())
            if files:
                self.batches.append((int(source["rows"]), files, int(source.get("bytes") or 0)))

    @property
    def per_file(self) -> float | None:
        """
        >>> known = RowsInFiles()
        >>> known.learn([{"rows": 300, "files": [[1.0, 2], [2.0, 1]]}, {"rows": 7}])
        >>> known.per_file
        100.0
        """
        files = sum(count for _, count, _ in self.batches)
        return sum(rows for rows, _, _ in self.batches) / files if files else None

    def of(self, files: float, size: float) -> float | None:
        """Estimated rows in ``files`` files with ``size`` bytes in total.

        >>> known = RowsInFiles()
        >>> known.learn([{"rows": 300, "files": [[1.0, 3]], "bytes": 6000}])
        >>> known.of(3, 18000), known.of(3, 0)
        (900.0, 300.0)
        """
        sized = [(rows, there) for rows, _, there in self.batches if there]
        if sized and size:
            return size * sum(rows for rows, _ in sized) / sum(there for _, there in sized)
        return None if self.per_file is None else files * self.per_file
