"""An index of open slots by room left, for best fit in two dimensions without scanning every slot.

Best is the smallest CPU + memory left that is enough in both. Slots are kept in rows: a row holds a range of CPU left,
sorted by the sum, and splits in two when it grows long. A search starts at the row of the requested CPU; in each row
only sums from the requested one upwards can fit, and the first that fits is the row's best. It ends when no later row
can hold a smaller sum than the best so far. Slots with equal room are one entry, so a thousand equal ones cost as much
as one. A search reads one row's entries and the heads of the others, not all slots.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort

SLACK = 1e-9
"""Tolerance, so that shares that sum to a whole slot fit it in spite of rounding."""

_LONG = 192
_Rest = tuple[float, float, float]


class OpenSlots:
    """Slots in use with room left; among equal ones the lowest number is taken first."""

    __slots__ = ("_held", "_lows", "_rows")

    def __init__(self) -> None:
        self._lows: list[float] = [0.0]
        self._rows: list[list[_Rest]] = [[]]
        self._held: dict[_Rest, list[int]] = {}

    def put(self, slot: int, cpu: float, memory: float) -> None:
        """Add a slot with ``cpu`` and ``memory`` left (rounding below 0 counts as 0)."""
        cpu, memory = max(cpu, 0.0), max(memory, 0.0)
        rest = (cpu + memory, cpu, memory)
        if rest in self._held:
            heapq.heappush(self._held[rest], slot)
            return
        self._held[rest] = [slot]
        number = bisect_right(self._lows, cpu) - 1
        insort(self._rows[number], rest)
        if len(self._rows[number]) > _LONG:
            self._split(number)

    def take(self, cpu: float, memory: float) -> tuple[int, float, float] | None:
        """Remove and return the best slot for a need, with its room; ``None`` if none has enough.

        >>> some = OpenSlots()
        >>> some.put(1, 0.9, 0.9), some.put(2, 0.3, 0.9), some.put(3, 0.5, 0.4)
        (None, None, None)
        >>> some.take(0.4, 0.1), some.take(0.4, 0.1), some.take(0.4, 0.1)
        ((3, 0.5, 0.4), (1, 0.9, 0.9), None)
        """
        best = self._best(cpu - SLACK, memory - SLACK)
        if best is None:
            return None
        slots = self._held[best]
        slot = heapq.heappop(slots)
        if not slots:
            self._forget(best)
        return slot, best[1], best[2]

    def _best(self, cpu: float, memory: float) -> _Rest | None:
        best: _Rest | None = None
        for number in range(max(bisect_right(self._lows, cpu) - 1, 0), len(self._rows)):
            least = max(cpu, self._lows[number]) + memory
            if best is not None and best[0] <= least:
                break
            row = self._rows[number]
            for at in range(bisect_left(row, (least,)), len(row)):
                rest = row[at]
                if best is not None and rest >= best:
                    break
                if rest[1] >= cpu and rest[2] >= memory:
                    best = rest
                    break
        return best

    def _split(self, number: int) -> None:
        """Halve a row at its median CPU; a row whose entries have equal CPU cannot be split."""
        row = self._rows[number]
        cpus = sorted(rest[1] for rest in row)
        middle = next((cpu for cpu in cpus[len(cpus) // 2 :] if cpu > cpus[0]), None)
        if middle is not None:
            self._rows[number : number + 1] = [[r for r in row if r[1] < middle], [r for r in row if r[1] >= middle]]
            self._lows.insert(number + 1, middle)

    def _forget(self, rest: _Rest) -> None:
        del self._held[rest]
        number = bisect_right(self._lows, rest[1]) - 1
        row = self._rows[number]
        del row[bisect_left(row, rest)]
        if not row and number:
            del self._rows[number], self._lows[number]
