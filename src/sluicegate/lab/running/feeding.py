"""Feeds an application at the rate of its load, from a thread next to the pipeline.

The birth time of a row is when the load says it is due, even if the thread is late: so delay of the feeder counts as
latency and is not hidden.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

import pyarrow as pa

from sluicegate.errors import BadInput
from sluicegate.lab.running.app import App
from sluicegate.lab.running.load import Load

FEED_S = 0.2
"""Interval at which rows are appended to the sources."""
_MOST_ROWS = 200_000


class FeedsRows(Protocol):
    """Appends rows to one source: an edge or a topic."""

    rows: int

    def append(self, table: pa.Table, born: Iterable[tuple[float, float]] | None = None) -> None: ...


class Feeder:
    """Feeds every source of an application the same load for ``seconds``, appending rows every ``every_s``."""

    def __init__(
        self, app: App, feeds: Mapping[str, FeedsRows], load: Load, seconds: float, every_s: float = FEED_S
    ) -> None:
        if app.rows is None:
            raise BadInput(f"application {app.name!r} makes no rows of its own: feed its sources from outside")
        self._rows, self._feeds, self._load, self._seconds = app.rows, feeds, load, seconds
        self._every_s, self._ended = every_s, threading.Event()
        self.problem: BaseException | None = None
        self.fed: dict[str, int] = {name: feed.rows for name, feed in feeds.items()}
        self.peak_per_s = 0.0  # over all sources
        self._thread = threading.Thread(target=self._run, name="sluicegate-feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def join(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` for the end of the load; return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._feed()
        except BaseException as problem:
            self.problem = problem

    def _feed(self) -> None:
        began_s = at_s = time.time()
        owed = 0.0
        while not self._ended.is_set() and at_s - began_s < self._seconds:
            self._ended.wait(max(at_s + self._every_s - time.time(), 0.0))
            until_s = min(max(time.time(), at_s + self._every_s), began_s + self._seconds)
            rate = self._load((at_s - began_s) / self._seconds)
            self.peak_per_s = max(self.peak_per_s, rate * len(self._feeds))
            owed += rate * (until_s - at_s)
            count = min(int(owed), _MOST_ROWS)
            if count:
                self._append(count, at_s, until_s)
            owed -= count
            at_s = until_s

    def _append(self, count: int, since_s: float, until_s: float) -> None:
        parts = min(count, 4)
        born = [(since_s + (until_s - since_s) * (i + 0.5) / parts, count / parts) for i in range(parts)]
        for name, feed in self._feeds.items():
            feed.append(self._rows(name, self.fed[name], count), born)
            self.fed[name] += count
