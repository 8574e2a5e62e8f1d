"""Executors and a node come and go under a running pipeline, executors are killed, k moves: on a real cluster.

Each test is one claim about that run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sluicegate.spark.cluster.standalone import Cluster

Seen = Mapping[str, Any]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("story") / "cluster", patience_s=300.0)
    try:
        cluster.up(workers=2, memory="512m")
        yield cluster
    finally:
        cluster.down()


def told_by(story: str, cluster: Cluster, *more: str) -> Seen:
    """What a story told that ran as a program of its own."""
    command = [sys.executable, str(Path(__file__).with_name(story)), str(cluster.folder), str(cluster.folder.parent)]
    command += more
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800.0)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert isinstance(seen, dict)
    return seen


@pytest.fixture(scope="module")
def seen(cluster: Cluster) -> Seen:
    return told_by("resize_story.py", cluster)


@pytest.fixture(scope="module")
def followed(cluster: Cluster) -> Seen:
    return told_by("follow_story.py", cluster)


def test_every_row_comes_out_once_and_right_while_executors_come_go_and_are_killed(seen: Seen) -> None:
    rows = seen["rows"]
    assert rows > 0
    assert (seen["wrong"], seen["words_missing"]) == (0, 0)


def test_k_moved_and_executors_died_in_the_middle_of_tasks(seen: Seen) -> None:
    killed = seen["killed"]
    assert len(set(killed)) == 2
    assert seen["processors"] == [1, 2, 3, 4]


def test_the_log_is_whole_after_executors_were_killed(seen: Seen) -> None:
    assert seen["log_whole"] is True


def test_a_killed_executor_costs_no_query_its_life(seen: Seen) -> None:
    assert seen["restarts"] == []


def test_no_task_fails_by_a_resize_or_by_a_node_that_leaves(seen: Seen) -> None:
    assert seen["failed_tasks"] == 0


def test_an_operator_runs_where_it_is_placed_by_spark_s_own_task_metrics(seen: Seen) -> None:
    placed = seen["placed"]
    told, ran, told_swapped, ran_swapped = placed
    assert told != told_swapped
    assert (ran, ran_swapped) == (told, told_swapped)


def test_state_that_one_executor_holds_alone_is_spread_over_all(seen: Seen) -> None:
    assert len(seen["spread"]) == 2


def test_no_task_waits_for_an_executor_that_is_gone(seen: Seen) -> None:
    assert len(seen["beside_a_gone_one"]) == 2


def test_more_executors_are_asked_for_and_come_on_all_nodes(seen: Seen) -> None:
    grown = seen["grown"]
    assert (grown["have"], grown["want"], grown["drained"], grown["refusal"]) == (1, 3, [], None)
    assert grown["reached"] is True
    hosts = seen["hosts"]
    assert len(hosts) == 3


def test_the_surplus_is_drained_and_none_comes_back(seen: Seen) -> None:
    for name, have in (("shrunk", 2), ("back", 2)):
        answer = seen[name]
        drained = answer["drained"]
        assert (answer["have"], len(drained), answer["refusal"], answer["reached"]) == (have, have - 1, None, True)


def test_a_node_joins_and_leaves_under_load(seen: Seen) -> None:
    assert seen["nodes"] == ["worker-1", "worker-2", "worker-3"]
    assert seen["nodes_after"] == ["worker-1", "worker-2"]
    assert seen["after_the_node"] == 2


def test_the_host_of_the_last_executors_is_not_drained(seen: Seen) -> None:
    assert "all 1 executors run there" in str(seen["last_host"])


def test_executors_that_do_not_come_are_told_with_the_reason(seen: Seen) -> None:
    answer = seen["too_many"]
    assert answer["reached"] is False
    assert "9 wanted: the master has no free cores or memory" in str(answer["why"])


def test_local_mode_answers_that_there_is_nothing_to_resize(seen: Seen) -> None:
    answer = seen["local"]
    assert answer["count"] == 0
    assert answer["refusal"] == {"rule": "no-executors", "why": "master local[1] has no executors to resize"}
    assert answer["why"] == "master local[1] has no executors to resize"


def test_executors_and_workers_follow_the_plan_of_the_live_loop_up_and_down(followed: Seen) -> None:
    assert (followed["grown"], followed["shrunk"]) == (True, True), followed["fleet"]
    processors = [sum(running.values()) for running in followed["decisions"]]
    assert max(processors) == 3
    assert processors[-1] == 1


def test_every_change_of_the_fleet_is_in_the_decision_log_with_its_reason(followed: Seen) -> None:
    told = followed["changes"]
    assert any("3 processors need 3 executors of 1 slots" in text for text in told)
    assert any("no room for" in text for text in told)
    assert any(text.startswith("nodes") and "1 executors do not need" in text for text in told)
    assert any("placed by sam" in text for text in told)


def test_what_the_fleet_does_carries_the_number_of_the_decision(followed: Seen) -> None:
    moved = [n for n, text in zip(followed["numbered"], followed["fleet"], strict=True) if text.startswith("nodes ")]
    assert moved
    assert all(number is not None for number in moved)


def test_a_new_executor_is_made_warm_before_it_takes_part(followed: Seen) -> None:
    """Cold ones are seen before warm ones; tasks are placed on those that are warm (``control.capacity``)."""
    told = [text for text in followed["fleet"] if text.endswith("of them warm")]
    assert "3 executors are there, 3 of them warm" in told
    assert any(
        text in told for text in ("2 executors are there, 1 of them warm", "3 executors are there, 1 of them warm")
    )


def test_nothing_is_lost_or_doubled_while_the_fleet_follows_the_plan(followed: Seen) -> None:
    answer = followed["answer"]
    assert (answer["lost"], answer["duplicated"], answer["exact"]) == (0, 0, True), answer["note"]
    assert (followed["failed_tasks"], followed["restarts"]) == (0, [])


def test_the_loop_sees_the_load_of_every_node_that_came(followed: Seen) -> None:
    assert followed["nodes_seen"] == 3


LONG_WAIT_S = ("redeploy_s=4",)
EVEN_SHRINK = ("zeta=0.97", "phi=0.99", "chi=-2", "most_load=1", "changing_s=2", "stable_s=3", "repair_s=1")
"""On a machine that others keep busy, disks and memory count as load too."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "options", "why"),
    [
        ("es-stream", EVEN_SHRINK, "the rate falls"),
        ("mc-stream", LONG_WAIT_S, "without an instance: released"),
        ("drs", ("t_ra_s=4", "t_max_s=3", "k_max=3"), "1 executors do not need"),
    ],
)
def test_nodes_come_and_go_by_the_papers_own_rules_and_nothing_is_lost(
    cluster: Cluster, policy: str, options: tuple[str, ...], why: str
) -> None:
    told = told_by("follow_story.py", cluster, policy, *options)
    assert (told["grown"], told["shrunk"]) == (True, True), (told["fleet"], told["changes"])
    answer = told["answer"]
    assert (answer["lost"], answer["duplicated"], answer["exact"]) == (0, 0, True), answer["note"]
    assert (told["failed_tasks"], told["restarts"]) == (0, [])
    assert any(why in text for text in told["changes"]), told["changes"]
    assert any(text.startswith("places") for text in told["changes"])
