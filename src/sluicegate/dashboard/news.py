"""Server-sent events for all listeners: the last few, numbered, so that a listener that reconnects catches up.

Listeners read from one shared ring at their own pace. One that fell behind it is told to refetch everything, so a slow
browser costs no memory here.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

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
