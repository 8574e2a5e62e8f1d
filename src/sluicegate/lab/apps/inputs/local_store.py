"""A small local store of blobs and table records instead of a cloud store: answers HTTP requests after a delay.

Its contents are a formula of names and keys, so that answers can be checked without querying it:

    GET /blob/NUMBER    ``BLOB_BYTES`` bytes, always the same for a number
    GET /table/KEY      one record as JSON, ``COLUMNS`` numbers of four digits: some 300 bytes

It runs in a thread of the process that starts it, on a free loopback port: only Spark workers on the same machine can
reach it.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from hashlib import shake_128
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from sluicegate.errors import EnvironmentLacks

HOST = "127.0.0.1"
BLOBS = 32
BLOB_BYTES = 64 * 1024
RECORDS = 20_000
COLUMNS = 20
_PRIME = 1_000_003
Get = Callable[[str], bytes]


@cache
def blob(number: int) -> bytes:
    """
    >>> len(blob(3)), blob(3) == blob(4)
    (65536, False)
    """
    return shake_128(f"blob {number}".encode()).digest(BLOB_BYTES)


def record(key: int) -> dict[str, int]:
    """One record, the history of a meter: its load in each of the last ``COLUMNS`` hours."""
    return {f"hour_{n:02}": 1000 + (key * COLUMNS + n) * 40503 % _PRIME % 9000 for n in range(COLUMNS)}


def found(path: str) -> bytes | None:
    """The content at a path; ``None`` if there is none.

    >>> found("/blob/1") == blob(1), found("/blob/one"), found("/table/20000")
    (True, None, None)
    """
    _, kind, name = (*path.split("/"), "", "")[:3]
    held = {"blob": BLOBS, "table": RECORDS}.get(kind, 0)
    if not name.isdecimal() or int(name) >= held:
        return None
    return blob(int(name)) if kind == "blob" else json.dumps(record(int(name))).encode()


@contextmanager
def local_store(waits_s: Mapping[str, float]) -> Iterator[int]:
    """Run a store within the block and yield its port. ``waits_s`` are delays by kind, "blob" and "table"."""
    with _Server((HOST, 0), partial(_Reply, waits_s)) as server:
        thread = threading.Thread(target=partial(server.serve_forever, 0.05), name="sluicegate-store", daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def reading(port: int) -> Iterator[Get]:
    """Open one connection for many requests; yields a function that fetches the body at a path."""
    connection = HTTPConnection(HOST, port, timeout=30.0)
    try:
        yield partial(_fetched, connection)
    finally:
        connection.close()


def _fetched(connection: HTTPConnection, path: str) -> bytes:
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, HTTPException) as problem:
        raise EnvironmentLacks(
            f"no store answers at {HOST}:{connection.port}: `sluicegate run` brings one up, for workers on its machine"
        ) from problem
    if response.status != HTTPStatus.OK:
        raise EnvironmentLacks(f"the store holds no {path}: ask for a blob or a record it has")
    return body


class _Server(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128
    """All tasks of a batch connect at once, and a refused connection is retried only a second later."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore workers that disconnect during an answer: Spark stopped them and will retry."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Reply(StreamRequestHandler):
    """Minimal HTTP: many requests on one connection, each answered by a length and a body."""

    disable_nagle_algorithm = True

    def __init__(self, waits_s: Mapping[str, float], *connection: Any) -> None:
        self._waits_s = waits_s
        super().__init__(*connection)

    def handle(self) -> None:
        while question := self.rfile.readline():
            while self.rfile.readline().strip():
                pass  # headers are ignored
            self.wfile.write(self._answer(question.split()[1].decode()))

    def _answer(self, path: str) -> bytes:
        time.sleep(self._waits_s.get(path.split("/")[1], 0.0))
        body = found(path)
        status = HTTPStatus.OK if body is not None else HTTPStatus.NOT_FOUND
        head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: {len(body or b'')}\r\n\r\n"
        return head.encode() + (body or b"")
