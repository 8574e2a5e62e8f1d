"""Polls the folder a few times a second and publishes events, on the server's own thread: no locks are needed."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from sluicegate.dashboard.news import REFETCH, News
from sluicegate.dashboard.record import Document, Record

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
