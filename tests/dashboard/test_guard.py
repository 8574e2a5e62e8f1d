"""Other sites' pages get nothing, and beyond this machine only who knows the token."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from sluicegate.dashboard.child import Dashboard
from sluicegate.dashboard.guard import LOOPBACK, Access, Guard
from sluicegate.dashboard.server import ASKS_WITHIN_S, MOST_CONNECTIONS

get = partial(httpx.get, timeout=60)  # a busy machine takes longer than httpx waits by itself

PRIVATE = ("/api/run", "/api/series", "/api/decisions", "/metrics")


@pytest.fixture(scope="module")
def guarded(run_folder: Path) -> Iterator[tuple[str, str]]:
    """Address and token of a server that listens beyond this machine."""
    arguments = [str(run_folder), "--port=0", "--host=0.0.0.0", "--with-parent"]
    command = [sys.executable, "-m", "sluicegate.dashboard", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.fullmatch(r"dashboard at http://[^/:]+:(\d+)/\?token=(\S+)\n", process.stdout.readline())
        assert found is not None
        yield f"http://127.0.0.1:{found[1]}", found[2]
        process.terminate()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]:1"])
def test_a_name_that_was_made_to_point_here_is_refused(dashboard: Dashboard, host: str) -> None:
    for path in ("/", "/static/icon.svg", *PRIVATE):
        assert get(dashboard.url + path.lstrip("/"), headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:80", "[::1]:80"])
def test_names_of_this_machine_are_answered(dashboard: Dashboard, host: str) -> None:
    assert get(f"{dashboard.url}api/run", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
    ],
)
def test_what_a_page_of_another_site_asks_is_refused(dashboard: Dashboard, headers: dict[str, str]) -> None:
    for path in (*PRIVATE, "/api/events"):
        assert get(dashboard.url + path.lstrip("/"), headers=headers).status_code == 403


def test_a_link_from_elsewhere_may_open_the_page(dashboard: Dashboard) -> None:
    assert get(dashboard.url, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_our_own_page_may_ask(dashboard: Dashboard) -> None:
    own = {"Origin": dashboard.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert get(f"{dashboard.url}api/run", headers=own).status_code == 200


def test_every_answer_forbids_what_is_not_needed(dashboard: Dashboard) -> None:
    for path in ("", "api/run", "metrics", "static/icon.svg", "nowhere"):
        headers = get(dashboard.url + path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; frame-ancestors 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]


def test_beyond_this_machine_nothing_is_told_without_the_token(guarded: tuple[str, str]) -> None:
    address, token = guarded
    for path in ("/", "/static/icon.svg", "/api/events", *PRIVATE):
        for wrong in ({}, {"token": ""}, {"token": token[:-1]}, {"token": "x"}):
            assert get(address + path, params=wrong).status_code == 401
    assert get(f"{address}/api/run", headers={"Authorization": "Bearer x"}).status_code == 401


def test_the_token_in_the_address_becomes_a_cookie_that_no_script_reads(guarded: tuple[str, str]) -> None:
    address, token = guarded
    with httpx.Client(base_url=address, timeout=60) as browser:
        cookie = browser.get("/", params={"token": token}).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert browser.get("/api/run").status_code == 200
        assert browser.get("/api/run", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_prometheus_may_show_the_token_as_a_bearer(guarded: tuple[str, str]) -> None:
    address, token = guarded
    assert get(f"{address}/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_bodies_and_long_addresses_are_refused(dashboard: Dashboard) -> None:
    assert httpx.post(f"{dashboard.url}api/run", content=b"x" * 100_000, timeout=60).status_code == 413
    assert httpx.request("GET", f"{dashboard.url}api/run", content=iter([b"x"] * 3), timeout=60).status_code == 413
    assert get(f"{dashboard.url}api/series?operator={'x' * 5000}").status_code == 414
    assert get(f"{dashboard.url}api/run").status_code == 200


def answer_to(scope: Scope) -> int:
    """The status of the guard's own answer to a request from this machine."""
    told: list[int] = []

    async def send(message: Message) -> None:
        told.extend([message["status"]] if "status" in message else [])

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("it came through")

    asyncio.run(Guard(never, Access(LOOPBACK, None))(scope, receive, send))
    (status,) = told
    return status


def test_an_address_that_is_no_text_is_refused_whatever_server_let_it_through() -> None:
    scope = {"type": "http", "path": "/nowhere/", "query_string": b"x=\xa3", "headers": [(b"host", b"localhost")]}
    assert answer_to(scope) == 400


def test_headers_have_a_limit(dashboard: Dashboard) -> None:
    assert get(f"{dashboard.url}api/run", headers={"X": "x" * 40_000}).status_code in (400, 431)
    assert get(f"{dashboard.url}api/run", headers={"X": "x" * 10_000}).status_code == 200


def test_a_length_of_the_body_that_is_no_number_is_refused_whatever_server_let_it_through() -> None:
    scope = {"type": "http", "path": "/", "query_string": b"", "headers": [(b"content-length", b"\xb2")]}
    assert answer_to(scope) == 413


def begun_again(dashboard: Dashboard) -> socket.socket:
    """A connection that was answered once and has begun another request."""
    address = httpx.URL(dashboard.url)
    made = socket.create_connection((address.host, address.port or 80), 10)
    made.sendall(b"GET /api/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert made.recv(65_536).startswith(b"HTTP/1.1 404")
    made.sendall(b"G")
    return made


def test_who_connects_and_asks_nothing_makes_room_and_too_many_are_told_to_come_later(dashboard: Dashboard) -> None:
    address = httpx.URL(dashboard.url)
    held = [begun_again(dashboard)]
    held += [socket.create_connection((address.host, address.port or 80), 10) for _ in range(MOST_CONNECTIONS - 1)]
    try:
        assert get(f"{dashboard.url}api/run").status_code == 503
        for one in (held[0], held[1]):
            one.settimeout(ASKS_WITHIN_S * 6)
            while one.recv(65_536):  # what is left of the first answer
                pass
        deadline_s = time.monotonic() + 60
        while get(f"{dashboard.url}api/run").status_code != 200:
            assert time.monotonic() < deadline_s
            time.sleep(0.5)
    finally:
        for one in held:
            one.close()
