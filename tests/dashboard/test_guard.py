"""Other sites' pages get nothing, and beyond this machine only who knows the token."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sluicegate.dashboard.child import Dashboard

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
