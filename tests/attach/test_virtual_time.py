"""What the controller of an attached application makes of loads, over minutes of virtual time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.attach.virtual_driver import VirtualApplication, VirtualQuery


@pytest.mark.parametrize("load", [330.0, 450.0, 600.0])
def test_a_load_that_only_varies_around_its_mean_hardly_moves_executors(tmp_path: Path, load: float) -> None:
    query = VirtualQuery(lambda _: load, noise=0.3)
    application = VirtualApplication(tmp_path / "a", {"q": query}, "p95=5s", "1:10")
    application.play(500)
    assert application.turns_since(200) <= 2
    assert query.kept(5.0, 60) >= 0.99


def test_three_times_the_load_and_back_is_followed_and_cheaper_than_the_peak(tmp_path: Path) -> None:
    query = VirtualQuery(lambda at_s: 600.0 if 150 < at_s < 250 else 200.0, noise=0.1)
    application = VirtualApplication(tmp_path / "a", {"q": query}, "p95=10s", "1:10")
    application.play(450)
    peak = max(number for _, number in application.moves)
    assert query.kept(10.0, 30) >= 0.95
    assert application.executor_s <= 0.6 * peak * 450


def test_executors_stay_where_bursts_come_back_and_go_when_they_do_not(tmp_path: Path) -> None:
    query = VirtualQuery(lambda at_s: 800.0 if at_s % 100 > 85 and at_s < 800 else 200.0, noise=0.1)
    application = VirtualApplication(tmp_path / "a", {"q": query}, "p95=10s", "1:10")
    application.play(800)
    assert query.kept(10.0, 500) >= 0.99
    application.play(600)
    assert application.executors <= 3


def test_executors_that_die_are_replaced_and_not_asked_for_twice(tmp_path: Path) -> None:
    query = VirtualQuery(lambda _: 450.0, noise=0.1)
    application = VirtualApplication(tmp_path / "a", {"q": query}, "p95=10s", "1:10")
    application.play(200)
    usual = application.executors

    def strike(at_s: float, hurt: VirtualApplication) -> None:
        if round(at_s * 10) % 600 == 0:
            hurt.lose(1)

    application.play(300, strike)
    assert query.kept(10.0, 60) >= 0.95
    assert all(number <= usual + 3 for at_s, number in application.moves if at_s > 200)


def test_two_queries_follow_their_own_loads(tmp_path: Path) -> None:
    first = VirtualQuery(lambda at_s: 400.0 if at_s < 200 else 100.0, noise=0.1)
    second = VirtualQuery(lambda at_s: 100.0 if at_s < 200 else 400.0, noise=0.1)
    application = VirtualApplication(tmp_path / "a", {"first": first, "second": second}, "p95=10s", "1:12")
    application.play(500)
    assert min(first.kept(10.0, 60), second.kept(10.0, 60)) >= 0.95


def test_a_query_whose_work_is_in_reading_gets_executors_though_its_shuffle_has_two_tasks(tmp_path: Path) -> None:
    query = VirtualQuery(lambda at_s: 900.0 if 100 < at_s < 300 else 200.0, noise=0.1, reading=12)
    application = VirtualApplication(tmp_path / "a", {"q": query}, "p95=20s", "1:10")
    application.play(450)
    assert max(number for at_s, number in application.moves if at_s < 300) >= 5
    assert query.kept(20.0, 30) >= 0.9
    assert application.executors <= 3
    assert application.turns_since(300) <= 1


def test_the_reason_for_executors_tells_those_that_only_stay_for_now(tmp_path: Path) -> None:
    query = VirtualQuery(lambda at_s: 1000.0 if 60 < at_s < 90 else 200.0, noise=0.1)
    application = VirtualApplication(tmp_path / "a", {"q": query}, "p95=10s", "1:12")
    application.play(160)
    log = (tmp_path / "a" / "decisions.jsonl").read_text().splitlines()
    moves = [one for line in log for one in json.loads(line)["changes"] if one["what"] == "executors"]
    assert any("stay for now" in one["reason"] for one in moves)
    for one in moves:
        needed = int(one["reason"].split(" need ")[1].split(" ")[0])
        assert needed == int(one["want"]) or "stay for now" in one["reason"]


def test_a_long_promise_does_not_pay_for_peaks_that_may_wait(tmp_path: Path) -> None:
    query = VirtualQuery(lambda at_s: 600.0 if 200 < at_s < 400 else 300.0, noise=0.3)
    application = VirtualApplication(tmp_path / "a", {"q": query}, "p95=60s", "1:12")
    application.play(600)
    assert query.kept(60.0) >= 0.99
    ideal = 200 * 4 + 400 * 2  # the fewest that carry the load
    assert application.executor_s <= 1.3 * ideal
