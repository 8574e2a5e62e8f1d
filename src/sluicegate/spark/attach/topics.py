"""Tracks the offsets of an attached query's topics, and which of their partitions are idle or stuck.

The driver polls the broker once a second and logs the latest offsets together with those that batches have been planned
up to. If the broker cannot be polled (it is down, or its client is not as expected), progress reports are used instead.

- *idle*: no row arrived for a while, and none waits. Its task in a batch has nothing to do.
- *stuck*: rows wait, and no batch has read any of them for a while, at least three batches.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluicegate.runlog.batch_log import DAMAGE, Tail
from sluicegate.spark.kafka.curve import OffsetCurve

_ANSWERS_S = 5.0
"""An older answer is stale; the driver polls once a second."""
_QUIET_S = 30.0
"""Seconds without arrivals, or without reads, until a partition is idle or stuck. At half, bursty partitions count as
idle between bursts."""
_BATCHES = 3
"""The same in batch durations; the longer of the two applies."""
_WINDOW_S = 5.0


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """State of one partition: "flowing", "idle" or "stuck"; ``lag`` is the rows that no batch has been planned for."""

    name: str
    lag: int
    state: str


@dataclass(slots=True)
class _Partition:
    latest: int
    taken: int | None
    came_s: float
    moved_s: float
    """When a batch last read rows from it, or when rows began to wait."""

    @property
    def lag(self) -> int:
        return max(self.latest - self.taken, 0) if self.taken is not None else 0


@dataclass(slots=True)
class TopicsSeen:
    """The broker's offsets as of the last poll."""

    tail: Tail
    curve: OffsetCurve = field(default_factory=OffsetCurve)
    """By "topic/partition"; from progress reports if the broker is not polled."""
    at_s: float | None = None
    tasks: int = 0
    """The most tasks of a batch under the connector's settings; 0: no bound."""
    problem: str | None = None
    partitions: dict[str, _Partition] = field(default_factory=dict)
    _totals: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=120))

    def look(self) -> None:
        for line in self.tail.lines():
            with contextlib.suppress(*DAMAGE):  # a full disk may have cut a line
                told = json.loads(line)
                self.problem = told.get("problem")
                if "latest" in told:
                    self._take(told)

    def _take(self, told: Mapping[str, Any]) -> None:
        at_s, latest = float(told["at_s"]), {str(key): int(n) for key, n in told["latest"].items()}
        self.curve.add(at_s, {key.partition("/")[2]: n for key, n in latest.items()})
        if told.get("dated"):  # ages of the backlog before the first poll: history, not the present state
            return
        self.at_s, self.tasks = at_s, int(told["tasks"])
        self._totals.append((at_s, sum(latest.values())))
        self.partitions = {key: self._seen(key, at_s, n, told["taken"].get(key)) for key, n in latest.items()}

    def _seen(self, key: str, at_s: float, latest: int, taken: int | None) -> _Partition:
        before = self.partitions.get(key)
        if before is None:
            return _Partition(latest, taken, at_s, at_s)
        moved = taken != before.taken or before.lag == 0
        came_s = at_s if latest != before.latest else before.came_s
        return _Partition(latest, taken, came_s, at_s if moved else before.moved_s)

    @property
    def known(self) -> bool:
        """Whether the query reads topics at all."""
        return self.at_s is not None or self.problem is not None

    def answers(self, now_s: float) -> bool:
        return self.at_s is not None and now_s - self.at_s <= _ANSWERS_S and self.problem is None

    def behind(self, now_s: float) -> int | None:
        """Rows that no batch has been planned for; ``None`` if the broker does not answer or no batch has begun."""
        if not self.answers(now_s) or any(one.taken is None for one in self.partitions.values()):
            return None
        return sum(one.lag for one in self.partitions.values())

    def per_s(self, now_s: float) -> float | None:
        """Arriving rows per second over the last seconds, whether batches read them or not."""
        known = [(at_s, rows) for at_s, rows in self._totals if at_s >= now_s - _WINDOW_S]
        if not self.answers(now_s) or len(known) < 2:
            return None
        (since_s, before), (until_s, after) = known[0], known[-1]
        return max(after - before, 0) / (until_s - since_s) if until_s - since_s >= 2.0 else None

    def seen(self, batch_s: float) -> list[PartitionSeen]:
        """The state of every partition; ``batch_s`` is the duration of a batch."""
        quiet_s, at_s = max(_QUIET_S, _BATCHES * batch_s), self.at_s or 0.0
        return [PartitionSeen(key, one.lag, _state(one, at_s, quiet_s)) for key, one in self.partitions.items()]

    def helpful_tasks(self, batch_s: float) -> int | None:
        """How many tasks of a stage that reads the topics have rows; ``None`` if the connector sets no bound."""
        if not self.tasks or not self.partitions:
            return None
        busy = sum(one.state != "idle" for one in self.seen(batch_s))
        return max(min(self.tasks - len(self.partitions) + busy, self.tasks), 1)

    def document(self, now_s: float, batch_s: float) -> dict[str, object]:
        """The entry of the tick log; flowing partitions without lag are only counted."""
        seen = self.seen(batch_s)
        return {
            "partitions": len(seen),
            "behind": self.behind(now_s),
            "lag": {one.name.partition("/")[2]: one.lag for one in seen if one.lag},
            **{state: [one.name.partition("/")[2] for one in seen if one.state == state] for state in _TOLD},
            "problem": self.problem,
        }


_TOLD = ("idle", "stuck")


def _state(one: _Partition, at_s: float, quiet_s: float) -> str:
    if one.lag and at_s - one.moved_s > quiet_s:
        return "stuck"
    return "idle" if not one.lag and at_s - one.came_s > quiet_s else "flowing"
