"""Sustainable throughput on a real cluster of 1 and 2 nodes. Each test is one claim about one run of the story."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

Seen = Mapping[str, Any]

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("mst")
    command = [sys.executable, str(Path(__file__).with_name("measured_story.py")), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800.0)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def test_two_nodes_sustain_more_than_one_where_operators_wait(seen: Seen) -> None:
    one, two = seen["file"]["points"]
    assert (one["machines"], two["machines"]) == (1, 2)
    assert two["rate_per_s"] > 1.2 * one["rate_per_s"] > 0
    assert (len(one["samples_per_s"]), len(two["samples_per_s"])) == (5, 5)


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing_running(seen: Seen) -> None:
    assert seen["ended"] == "by Ctrl-C"
    assert seen["left_running"] == []
    assert sorted(seen["left_there"]) == ["chain.mst.jsonl", "chain.mst.toml"]


def test_the_start_up_time_of_a_node_is_measured(seen: Seen) -> None:
    assert 0 < seen["file"]["startup_s"] < 300


def test_sizes_that_were_measured_are_taken_over(seen: Seen) -> None:
    assert seen["again"] == [point["rate_per_s"] for point in seen["file"]["points"]]
    assert any("measured before and kept" in text for text in seen["said"])


def test_an_operator_that_throws_ends_it_with_its_error_and_nothing_left_running(seen: Seen) -> None:
    assert "no such price" in seen["thrown"]
    assert "parse" in seen["thrown"]
    assert seen["left_running_then"] == []


def test_an_operator_that_keeps_all_memory_is_ended_before_it_takes_the_machines(seen: Seen) -> None:
    assert "application 'hoards' uses" in seen["hoarded"]
    assert "more than the 1,500 MB" in seen["hoarded"]


def test_a_throughput_that_never_settles_is_told_with_its_samples(seen: Seen) -> None:
    assert seen["unsettled"].startswith("1 node:") or "of 1 node did not settle" in seen["unsettled"]
    assert "--minutes" in seen["unsettled"]


def test_fewer_nodes_than_asked_for_are_told_and_what_was_measured_is_kept(seen: Seen) -> None:
    assert "3 nodes asked for, 1 came" in seen["too_few"]
    assert "the quota of nodes is used up" in seen["too_few"]
    assert seen["kept"] == [1, 2]
