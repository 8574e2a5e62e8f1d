"""Other sites' pages get nothing, and beyond this machine only who knows the token."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from sluicegate.dashboard.child import Dashboard
from sluicegate.dashboard.guard import LOOPBACK, Access, Guard
from sluicegate.dashboard.server import ASKS_WITHIN_S, MOST_CONNECTIONS

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
        assert httpx.get(dashboard.url + path.lstrip("/"), headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:80", "[::1]:80"])
def test_names_of_this_machine_are_answered(dashboard: Dashboard, host: str) -> None:
    assert httpx.get(f"{dashboard.url}api/run", headers={"Host": host}).status_code == 200


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
        assert httpx.get(dashboard.url + path.lstrip("/"), headers=headers).status_code == 403


def test_a_link_from_elsewhere_may_open_the_page(dashboard: Dashboard) -> None:
    assert httpx.get(dashboard.url, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_our_own_page_may_ask(dashboard: Dashboard) -> None:
    own = {"Origin": dashboard.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert httpx.get(f"{dashboard.url}api/run", headers=own).status_code == 200


def test_every_answer_forbids_what_is_not_needed(dashboard: Dashboard) -> None:
    for path in ("", "api/run", "metrics", "static/icon.svg", "nowhere"):
        headers = httpx.get(dashboard.url + path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; frame-ancestors 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]


def test_beyond_this_machine_nothing_is_told_without_the_token(guarded: tuple[str, str]) -> None:
    address, token = guarded
    for path in ("/", "/static/icon.svg", "/api/events", *PRIVATE):
        for wrong in ({}, {"token": ""}, {"token": token[:-1]}, {"token": "x"}):
            assert httpx.get(address + path, params=wrong).status_code == 401
    assert httpx.get(f"{address}/api/run", headers={"Authorization": "Bearer x"}).status_code == 401


def test_the_token_in_the_address_becomes_a_cookie_that_no_script_reads(guarded: tuple[str, str]) -> None:
    address, token = guarded
    with httpx.Client(base_url=address) as browser:
        cookie = browser.get("/", params={"token": token}).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert browser.get("/api/run").status_code == 200
        assert browser.get("/api/run", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_prometheus_may_show_the_token_as_a_bearer(guarded: tuple[str, str]) -> None:
    address, token = guarded
    assert httpx.get(f"{address}/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_bodies_and_long_addresses_are_refused(dashboard: Dashboard) -> None:
    assert httpx.post(f"{dashboard.url}api/run", content=b"x" * 100_000).status_code == 413
    assert httpx.request("GET", f"{dashboard.url}api/run", content=iter([b"x"] * 3)).status_code == 413
    assert httpx.get(f"{dashboard.url}api/series?operator={'x' * 5000}").status_code == 414
    assert httpx.get(f"{dashboard.url}api/run").status_code == 200


def test_an_address_that_is_no_text_is_refused_whatever_server_let_it_through() -> None:
    told: list[int] = []

    async def send(message: Message) -> None:
        told.extend([message["status"]] if "status" in message else [])

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("it came through")

    scope = {"type": "http", "path": "/nowhere/", "query_string": b"x=\xa3", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(never, Access(LOOPBACK, None))(scope, receive, send))
    assert told == [400]


def test_who_connects_and_asks_nothing_makes_room_and_too_many_are_told_to_come_later(dashboard: Dashboard) -> None:
    address = httpx.URL(dashboard.url)
    held = [socket.create_connection((address.host, address.port or 80), 10) for _ in range(MOST_CONNECTIONS)]
    try:
        assert httpx.get(f"{dashboard.url}api/run").status_code == 503
        held[0].settimeout(ASKS_WITHIN_S * 6)
        assert held[0].recv(1) == b"", "closed by the server"
        deadline_s = time.monotonic() + 60
        while httpx.get(f"{dashboard.url}api/run").status_code != 200:
            assert time.monotonic() < deadline_s
            time.sleep(0.5)
    finally:
        for one in held:
            one.close()
