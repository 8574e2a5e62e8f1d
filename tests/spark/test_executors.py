"""Executors and a node come and go under a running pipeline, executors are killed, k moves: on a real cluster.

Each test is one claim about that run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headgate.spark.cluster import Cluster

Seen = Mapping[str, object]
STORY = Path(__file__).with_name("resize_story.py")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("story")
    cluster = Cluster(folder / "cluster", patience_s=300.0)
    try:
        cluster.up(workers=2, memory="512m")
        command = [sys.executable, str(STORY), str(cluster.folder), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800.0)
        assert done.returncode == 0, done.stderr[-2000:]
        yield json.loads(done.stdout)
    finally:
        cluster.down()


def part(seen: Seen, name: str) -> dict[str, object]:
    found = seen[name]
    assert isinstance(found, dict)
    return found


def test_every_row_comes_out_once_and_right_while_executors_come_go_and_are_killed(seen: Seen) -> None:
    rows = seen["rows"]
    assert isinstance(rows, int)
    assert rows > 0
    assert (seen["wrong"], seen["words_missing"]) == (0, 0)


def test_k_moved_and_executors_died_in_the_middle_of_tasks(seen: Seen) -> None:
    killed = seen["killed"]
    assert isinstance(killed, list)
    assert len(set(killed)) == 2
    assert seen["processors"] == [1, 2, 3, 4]


def test_the_log_is_whole_after_executors_were_killed(seen: Seen) -> None:
    assert seen["log_whole"] is True


def test_a_killed_executor_costs_no_query_its_life(seen: Seen) -> None:
    assert seen["restarts"] == []


def test_no_task_fails_by_a_resize_or_by_a_node_that_leaves(seen: Seen) -> None:
    assert seen["failed_tasks"] == 0


def test_more_executors_are_asked_for_and_come_on_all_nodes(seen: Seen) -> None:
    grown = part(seen, "grown")
    assert (grown["have"], grown["want"], grown["drained"], grown["refusal"]) == (1, 3, [], None)
    assert grown["reached"] is True
    hosts = seen["hosts"]
    assert isinstance(hosts, list)
    assert len(hosts) == 3


def test_the_surplus_is_drained_and_none_comes_back(seen: Seen) -> None:
    for name, have in (("shrunk", 2), ("back", 2)):
        answer = part(seen, name)
        drained = answer["drained"]
        assert isinstance(drained, list)
        assert (answer["have"], len(drained), answer["refusal"], answer["reached"]) == (have, have - 1, None, True)


def test_a_node_joins_and_leaves_under_load(seen: Seen) -> None:
    assert seen["nodes"] == ["worker-1", "worker-2", "worker-3"]
    assert seen["nodes_after"] == ["worker-1", "worker-2"]
    assert seen["after_the_node"] == 2


def test_the_host_of_the_last_executors_is_not_drained(seen: Seen) -> None:
    assert "all 1 executors run there" in str(seen["last_host"])


def test_executors_that_do_not_come_are_told_with_the_reason(seen: Seen) -> None:
    answer = part(seen, "too_many")
    assert answer["reached"] is False
    assert "9 wanted: the master has no free cores or memory" in str(answer["why"])


def test_local_mode_answers_that_there_is_nothing_to_resize(seen: Seen) -> None:
    answer = part(seen, "local")
    assert answer["count"] == 0
    assert answer["refusal"] == {"rule": "no-executors", "why": "master local[1] has no executors to resize"}
    assert answer["why"] == "master local[1] has no executors to resize"
