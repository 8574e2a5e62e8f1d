"""The dashboard's process: takes a port, polls the folder, answers until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
import sys
import time
from pathlib import Path
from types import FrameType

import uvicorn

from sluicegate.dashboard.guard import LOOPBACK, MOST_HEAD_BYTES, Access, Guard
from sluicegate.dashboard.record import Record
from sluicegate.dashboard.routes import application
from sluicegate.dashboard.watching import News, Watching
from sluicegate.errors import BadInput, EnvironmentLacks

PORT = 8642
HOST = "127.0.0.1"
MOST_CONNECTIONS = 512
"""Most concurrent connections, including pages that listen for events; further ones get a 503."""
ASKS_WITHIN_S = 10.0
"""A connection without a request by then is closed."""
_TICKS_A_LOOK = 10


def serve(folder: Path, host: str = HOST, port: int = PORT, with_parent: bool = False) -> None:
    """Show a run until Ctrl-C, or ``with_parent`` until the process that started this one is gone."""
    news = News()
    watching = Watching(Record(folder), news, os.getppid() if with_parent else None)
    listening = listen(host, port)
    access = access_of(host, listening.getsockname()[1])
    server = _Server(Guard(application(watching), access), watching, address(listening, host, access.token))
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
    finally:
        listening.close()


def access_of(host: str, port: int) -> Access:
    """Access rules for a host: beyond this machine a token is needed, and then any host name is accepted."""
    if host in LOOPBACK:
        return Access(LOOPBACK, None)
    return Access(None, secrets.token_urlsafe(24), cookie=f"sluicegate_{port}")


def listen(host: str, port: int) -> socket.socket:
    """Bind a port; an error is one line that says why not."""
    if not 0 <= port <= 65_535:
        raise BadInput(f"--port {port}: a port is a number from 1 to 65535, or 0 for any that is free")
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (socket.gaierror, UnicodeError) as problem:
        raise BadInput(f"--host {host}: this machine has no such address ({problem})") from problem
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(where)
    except OSError as problem:
        listening.close()
        raise EnvironmentLacks(_why_not(host, port, problem)) from problem
    return listening


def _why_not(host: str, port: int, problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: choose another with --port, or --port 0 for any that is free"
    return f"port {port} of {host} cannot be used ({problem.strerror}): choose another with --port or --host"


def address(listening: socket.socket, host: str, token: str | None) -> str:
    """The URL to open; a server on all addresses of this machine uses the machine's name."""
    reached = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{reached}]" if ":" in reached else reached
    return f"http://{name}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")


class _Server(uvicorn.Server):
    """Prints its address once it answers, and ends all event listeners when it is told to stop."""

    def __init__(self, guarded: Guard, watching: Watching, told: str) -> None:
        config = uvicorn.Config(
            guarded,
            log_level="warning",
            access_log=False,  # would show the token of an address
            http="h11",  # where httptools is installed uvicorn would take that, which knows no such limit
            ws="none",
            timeout_graceful_shutdown=3,
            limit_concurrency=MOST_CONNECTIONS,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,  # of those that have not come in whole
        )
        super().__init__(config)
        self._watching, self._told = watching, told
        self._since: dict[tuple[object, object], float] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # before it serves: Ctrl-C may come during start-up
        self._loop = asyncio.get_running_loop()
        self._watching.on_end = self._end
        await super().startup(sockets)
        sys.stdout.write(f"dashboard at {self._told}\n")
        sys.stdout.flush()

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; every tenth call closes connections that have waited for a request too long."""
        if counter % _TICKS_A_LOOK == 0:
            self._close_silent(time.monotonic())
        return await super().on_tick(counter)

    def _close_silent(self, now_s: float) -> None:
        """Close connections without a first request, and those that began another one and did not end it.

        uvicorn closes idle ones, but waits without limit once a single byte of the next request is there.
        """
        last = ((one, getattr(one, "cycle", None)) for one in self.server_state.connections)
        waiting = [pair for pair in last if pair[1] is None or pair[1].response_complete]
        self._since = {pair: self._since.get(pair, now_s) for pair in waiting}
        for (one, _), since_s in self._since.items():
            transport = getattr(one, "transport", None)
            if transport is not None and now_s - since_s > ASKS_WITHIN_S:
                transport.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._watching.news.close)

    def _end(self) -> None:
        self._watching.news.close()
        self.should_exit = True
