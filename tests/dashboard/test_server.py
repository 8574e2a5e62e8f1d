"""A real server, asked over HTTP as browsers and programs do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.dashboard.sample_run import BEGAN_S, SampleRun, write_run

from sluicegate.dashboard.child import Dashboard

get = partial(httpx.get, timeout=60)  # a busy machine takes longer than httpx waits by itself


@pytest.fixture(scope="module")
def client(dashboard: Dashboard) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=dashboard.url, timeout=60) as asking:
        yield asking


def events(answer: httpx.Response) -> Iterator[dict[str, str]]:
    """Server-sent events as they come."""
    event: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif event:
            yield event
            event = {}


def test_the_page_and_all_it_names_are_there(client: httpx.Client) -> None:
    page = client.get("/").text
    named = [part.split('"')[0] for part in page.replace('src="', 'href="').split('href="')[1:]]
    assert len(named) > 6
    for path in named:
        if path.startswith("/"):
            assert client.get(path).status_code == 200, path
        else:
            assert path.startswith("#")


def test_the_run_is_told_in_one_document(client: httpx.Client) -> None:
    run = client.get("/api/run").json()
    assert run["name"] == "top_n"
    assert run["ticks"] == 450
    assert run["control"]["bounds"] == {"mean": 5.0, "p95": 9.0}
    assert [box["name"] for box in run["drawing"]["boxes"]] == ["events", "read+count", "rank", "merge", "top"]
    assert run["decisions"][0]["number"] == run["decisions_made"]


def test_series_come_in_as_many_points_as_asked_for(client: httpx.Client) -> None:
    for points in (2, 60, 600):
        series = client.get("/api/series", params={"points": points}).json()
        assert len(series["at_s"]) <= points
        assert {len(values) for values in series["columns"].values()} == {len(series["at_s"])}


def test_a_stretch_of_time_holds_only_its_ticks(client: httpx.Client) -> None:
    asked = {"from": BEGAN_S + 100, "to": BEGAN_S + 200}
    at_s = client.get("/api/series", params=asked).json()["at_s"]
    assert (at_s[0], at_s[-1], len(at_s)) == (BEGAN_S + 100, BEGAN_S + 200, 51)


def test_one_operator_can_be_looked_at(client: httpx.Client) -> None:
    series = client.get("/api/series", params={"operator": "read+count"}).json()
    assert set(series["columns"]) == {"processors", "utilisation", "queue_rows"}
    assert max(series["columns"]["processors"]) > min(series["columns"]["processors"])
    assert client.get("/api/series", params={"operator": "nobody"}).status_code == 404


@pytest.mark.parametrize("query", ["points=0", "points=many", "from=yesterday", "points=999999"])
def test_a_question_that_makes_no_sense_is_refused(client: httpx.Client, query: str) -> None:
    assert client.get(f"/api/series?{query}").status_code == 422


def test_nothing_can_be_changed(client: httpx.Client) -> None:
    for path in ("/", "/api/run", "/api/series", "/api/events", "/metrics", "/static/icon.svg"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert client.request(method, path).status_code == 405, (method, path)


def test_no_pages_about_the_interface_that_load_scripts_from_elsewhere(client: httpx.Client) -> None:
    for path in ("/docs", "/redoc", "/openapi.json", "/static/../server.py", "/static/%2e%2e/server.py"):
        assert client.get(path).status_code == 404


def test_a_tick_that_is_added_is_heard_by_every_listener(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=5)
    with Dashboard(tmp_path) as beside, httpx.Client(base_url=beside.url, timeout=60) as client:
        with client.stream("GET", "/api/events") as one, client.stream("GET", "/api/events") as other:
            heard, also = events(one), events(other)
            assert next(heard)["event"] == next(also)["event"] == "refetch"
            tick = SampleRun().append(tmp_path, 5)
            first = next(heard)
            assert first["event"] == "tick"
            assert json.loads(first["data"])["at_s"] == tick["at_s"]
            assert next(also)["id"] == first["id"]
        SampleRun().append(tmp_path, 6)
        with client.stream("GET", "/api/events", headers={"Last-Event-ID": first["id"]}) as again:
            assert json.loads(next(events(again))["data"])["at_s"] == tick["at_s"] + 2.0


def test_files_that_come_later_are_told_too(tmp_path: Path) -> None:
    made = write_run(tmp_path / "made", ticks=5)
    folder = tmp_path / "young"
    folder.mkdir()
    shutil.copy(made / "pipeline.json", folder)
    with Dashboard(folder) as beside, httpx.stream("GET", f"{beside.url}api/events", timeout=60) as answer:
        heard = events(answer)
        assert next(heard)["event"] == "refetch"
        assert get(f"{beside.url}api/run").json()["tick"] is None
        for name, kind in (("control.json", "control"), ("what_if.json", "what_if"), ("fleet.jsonl", "fleet")):
            shutil.copy(made / name, folder)
            assert next(heard)["event"] == kind


def test_a_server_with_listeners_ends_at_once_when_asked(tmp_path: Path) -> None:
    write_run(tmp_path, ticks=5)
    with Dashboard(tmp_path) as beside, httpx.stream("GET", f"{beside.url}api/events", timeout=60) as answer:
        heard = events(answer)
        next(heard)
        beside.stop()
        assert list(heard) == []
