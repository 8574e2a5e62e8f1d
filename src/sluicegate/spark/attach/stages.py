"""Which stages of a batch carry its work, and in how many tasks.

A batch of ``foreachBatch`` may run several jobs of the user's own, adaptive execution joins the partitions of a small
shuffle, and an aggregate without a key ends in one task. So the widest stage need not be the one that processors help:
one that follows the plan counts, else the stages that read if most work is there, else those with the most run time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LEADS, _LEADS_NO_MORE = 0.5, 0.35
"""Share of the work from which reading counts, and below which it no longer does."""
_WEIGHT = 0.2
"""Weight of one batch in the share of reading. Half: a changed query is seen late. Double: single batches decide."""
_CARRIES = 0.1
"""Least share of the work behind a shuffle of stages that are said to follow the plan."""


@dataclass(slots=True)
class StagesSeen:
    """What the batches of one query so far say about its stages.

    ``reading`` are the tasks of the last batch that read a source, ``most_reading`` the most of any batch; ``planned``
    the numbers of tasks that plans gave it recently; ``led``: its work is in stages that read, though others follow.
    """

    scan_only: bool = False
    scan_share: float | None = None
    reading: int = 1
    most_reading: int = 1
    led: bool = False
    planned: deque[int] = field(default_factory=lambda: deque(maxlen=6))
    _leads: bool = False

    def tasks_of(self, line: Mapping[str, Any]) -> int | None:
        """The tasks that carry the work of a batch; ``None`` if its stages are not known.

        >>> stage = lambda tasks, behind, run_s: {"tasks": tasks, "behind_shuffle": behind, "run_s": run_s}
        >>> StagesSeen().tasks_of({"tasks": 2, "stages": [stage(12, False, 9.0), stage(2, True, 1.0)]})
        12
        >>> several = [stage(3, True, 4.0), stage(200, True, 5.0)]
        >>> StagesSeen(planned=deque([3])).tasks_of({"tasks": 200, "stages": several})
        3
        """
        stages = line.get("stages") or ()
        reads = [one for one in stages if not one["behind_shuffle"]]
        behind = [one for one in stages if one["behind_shuffle"]]
        if not stages:
            return None
        if reads:
            self.scan_only = not behind
            self.reading = max(int(one["tasks"]) for one in reads)
            self.most_reading = max(self.most_reading, self.reading)
            self._learn_share(_run_s(reads), _run_s(stages))
        if not behind:
            return int(line["tasks"])
        follows = self._following(behind)
        widest = max(int(one["tasks"]) for one in behind)
        stateful = bool(line.get("state_partitions"))
        self.led = bool(reads) and self._leads and (not stateful or (follows is None and self.reading > widest))
        if self.led:
            return self.reading
        return follows or _heaviest(behind)

    def plans(self, tasks: int) -> None:
        """Remember the tasks of a plan: batches that began before it still have those of the last one."""
        if not self.planned or self.planned[-1] != tasks:
            self.planned.append(tasks)

    def _learn_share(self, reading_s: float, all_s: float) -> None:
        share = reading_s / all_s if all_s > 0 else 0.0
        before = share if self.scan_share is None else self.scan_share
        self.scan_share = before + _WEIGHT * (share - before)
        self._leads = self.scan_share >= (_LEADS_NO_MORE if self._leads else _LEADS)

    def _following(self, behind: list[Mapping[str, Any]]) -> int | None:
        """The planned number of tasks that a considerable part of the work behind a shuffle ran in."""
        by_tasks, whole_s = _by_tasks(behind), _run_s(behind)
        told = [tasks for tasks in self.planned if tasks in by_tasks and by_tasks[tasks] >= _CARRIES * whole_s]
        return max(told, key=lambda tasks: by_tasks[tasks]) if told else None


def _run_s(stages: Any) -> float:
    return sum(float(one["run_s"]) for one in stages)


def _by_tasks(stages: list[Mapping[str, Any]]) -> dict[int, float]:
    found = defaultdict[int, float](float)
    for one in stages:
        found[int(one["tasks"])] += float(one["run_s"])
    return found


def _heaviest(stages: list[Mapping[str, Any]]) -> int:
    by_tasks = _by_tasks(stages)
    return max(by_tasks, key=lambda tasks: (by_tasks[tasks], tasks))
