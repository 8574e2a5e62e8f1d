"""What has just happened, for everyone who listens: the last few events, numbered, so that who was away catches up.

Listeners read from one shared ring at their own pace. One that fell behind it is told to ask for everything anew,
so a slow browser costs no memory here.
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
    """``id`` names this process too: after a restart the numbers begin again."""

    id: str
    kind: str
    text: str


class News:
    """Published once, read by many."""

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
        """Lets everyone who listens go, so that the server can end."""
        self._closed = True
        self._wake()

    async def follow(self, last_id: str | None) -> AsyncIterator[Event]:
        """Everything after ``last_id``, for ever; who names none of ours is first told to ask for everything."""
        read = self._read_by(last_id or "")
        while not self._closed:
            if read < self._published - len(self._events):
                read = self._published
                yield Event(self._id(read), REFETCH, "{}")
            elif read < self._published:
                read += 1
                yield self._events[read - self._published - 1]
            else:
                # nothing is awaited between the look at ``_closed`` and here: no waking is slept through
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
