"""The file that lists the operators that fail now or have stopped, for everything that shows a run.

The pipeline's process writes it on every change; while it names an operator, the promise is broken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sluicegate.runlog.files import read_if_there, write_whole


@dataclass(frozen=True, slots=True)
class Failing:
    """An operator whose batch failed and has not succeeded since; in the file, times are seconds since the epoch.

    ``tries`` counts all failed tries, ``alike`` the last of them with the same error. Without a ``next_try_s`` it has
    stopped. ``fault`` is what is at fault: see ``sluicegate.spark.pipeline.failures``.
    """

    operator: str
    batch: int
    since_s: float
    tries: int
    alike: int
    why: str
    fault: str
    next_try_s: float | None

    @property
    def stopped(self) -> bool:
        return self.next_try_s is None

    def line(self, now_s: float) -> str:
        """
        >>> Failing("count", 17, 88.0, 5, 5, "ConnectionRefusedError: [Errno 111]", "service", 108.0).line(now_s=100.0)
        'count: batch 17 fails since 12 s, tried 5 times: ConnectionRefusedError: [Errno 111], next try in 8 s'
        """
        times = "once" if self.tries == 1 else f"{self.tries} times"
        if self.next_try_s is None:
            return f"{self.operator}: stopped at batch {self.batch}, tried {times}: {self.why}"
        since_s, left_s = max(now_s - self.since_s, 0.0), self.next_try_s - now_s
        then = f"next try in {left_s:.0f} s" if left_s >= 0.5 else "being tried again"
        return f"{self.operator}: batch {self.batch} fails since {since_s:.0f} s, tried {times}: {self.why}, {then}"


def write_failures(path: Path, failing: Iterable[Failing]) -> None:
    write_whole(path, json.dumps({"operators": [asdict(one) for one in failing]}))


def read_failures(path: Path) -> tuple[Failing, ...]:
    """The failing operators; empty if the file is missing or another version wrote it."""
    try:
        read: Any = json.loads(read_if_there(path) or "{}")
        return tuple(_checked(Failing(**one)) for one in read.get("operators", ()))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return ()


def _checked(one: Failing) -> Failing:
    """Convert its numbers; ``TypeError`` or ``ValueError`` if they are none."""
    next_try_s = None if one.next_try_s is None else float(one.next_try_s)
    return replace(one, since_s=float(one.since_s), next_try_s=next_try_s, batch=int(one.batch), tries=int(one.tries))
