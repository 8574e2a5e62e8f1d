"""Polls the folder a few times a second and publishes events, on the server's own thread: no locks are needed.

Server-sent events go to all listeners: the last few, numbered, so that a listener that reconnects catches up. Listeners
read from one shared ring at their own pace. One that fell behind it is told to refetch everything, so a slow browser
costs no memory here.
"""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from sluicegate.dashboard.record import Document, Record

REFETCH = "refetch"
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Event:
    """An event; its ``id`` includes the process, since numbers begin again after a restart."""

    id: str
    kind: str
    text: str


class News:
    """Events that are published once and read by many listeners."""

    def __init__(self) -> None:
        self._process = uuid.uuid4().hex[:8]
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._published = 0
        self._more = asyncio.Event()
        self._closed = False

    def publish(self, kind: str, text: str) -> None:
        self._published += 1
        self._events.append(Event(self._id(self._published), kind, text))
        self._wake()

    def close(self) -> None:
        """End all listeners, so that the server can stop."""
        self._closed = True
        self._wake()

    async def follow(self, last_id: str | None) -> AsyncIterator[Event]:
        """Yield all events after ``last_id``, forever; without a valid id the first event is a refetch."""
        read = self._read_by(last_id or "")
        while not self._closed:
            if read < self._published - len(self._events):
                read = self._published
                yield Event(self._id(read), REFETCH, "{}")
            elif read < self._published:
                read += 1
                yield self._events[read - self._published - 1]
            else:
                # no await since ``_closed`` was checked: no wake-up can be missed
                await self._more.wait()

    def _read_by(self, last_id: str) -> int:
        process, _, count = last_id.partition("-")
        ours = process == self._process and count.isdecimal() and int(count) <= self._published
        return int(count) if ours else -1

    def _id(self, count: int) -> str:
        return f"{self._process}-{count}"

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()


_LOOK_EVERY_S = 0.25


class Watching:
    """A record that is kept up to date while the server runs; calls ``on_end`` when ``parent`` is gone."""

    def __init__(self, record: Record, news: News, parent: int | None = None) -> None:
        self.record, self.news = record, news
        self.on_end: Callable[[], None] = lambda: None
        self._parent = parent
        record.publish = self._tell

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._watch())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def _watch(self) -> None:
        while self._parent is None or os.getppid() == self._parent:
            more, knew_all = False, self.record.caught_up
            # a file that cannot be read now is retried at the next poll
            with suppress(OSError):
                more = self.record.look()
            if self.record.caught_up and not knew_all:
                # clients that asked before all files were read have only part of the data
                self.news.publish(REFETCH, "{}")
            await asyncio.sleep(0 if more else _LOOK_EVERY_S)
        self.on_end()

    def _tell(self, kind: str, document: Document) -> None:
        self.news.publish(kind, json.dumps(document))
