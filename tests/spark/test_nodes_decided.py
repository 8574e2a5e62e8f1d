"""Policies ask for nodes on a real cluster: nodes come and go with the load, and no row is lost by it.

Each test is one claim about a run: of a policy that decides nodes, or of DRS, whose negotiator asks for those that its
processors need.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sluicegate.spark.cluster.standalone import Cluster

Seen = Mapping[str, Any]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return story("uncertainty-3", tmp_path_factory.mktemp("nodes"))


@pytest.fixture(scope="module")
def negotiated(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return story("drs", tmp_path_factory.mktemp("drs"))


def story(policy: str, folder: Path) -> Seen:
    cluster = Cluster(folder / "cluster", patience_s=300.0)
    try:
        cluster.up(workers=1, cores=2, memory="512m")
        command = [
            sys.executable,
            str(Path(__file__).with_name("nodes_story.py")),
            str(cluster.folder),
            str(folder),
            policy,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800.0)
    finally:
        cluster.down()
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


@pytest.mark.long
def test_nodes_come_with_the_load_and_go_with_it(seen: Seen) -> None:
    assert (seen["grown"], seen["shrunk"]) == (True, True)
    decided = [(c["have"], c["want"]) for d in seen["decisions"] for c in d["changes"] if c["what"] == "executors"]
    assert decided[0][1] == "3"
    assert decided[-1][1] == "1"


@pytest.mark.long
def test_every_row_comes_out_once_while_nodes_come_and_go(seen: Seen) -> None:
    answer = seen["answer"]
    assert answer["rows_out"] > 0
    assert (answer["lost"], answer["duplicated"], answer["exact"]) == (0, 0, True), answer["note"]
    assert seen["failed_tasks"] == 0


@pytest.mark.long
def test_processors_are_spread_over_the_slots_that_are_warm(seen: Seen) -> None:
    totals = [sum(decision["running"].values()) for decision in seen["decisions"]]
    assert seen["spread"] is True
    assert max(totals) == 6
    assert totals[-1] <= 2


@pytest.mark.long
def test_the_decision_says_which_samples_which_model_which_variance_and_which_times(seen: Seen) -> None:
    reasons = [why for decision in seen["decisions"] for why in decision["reasons"]]
    assert any("fitted to 9 samples of 1, 2, 3 machines" in why and "rows/s is counted" in why for why in reasons)
    assert any(why.startswith("cycle S 8 s, start-up U 15.0 s") for why in reasons)


@pytest.mark.long
def test_the_start_up_time_is_measured_and_used(seen: Seen) -> None:
    took = [line["startup_s"] for line in seen["fleet"] if "startup_s" in line]
    assert seen["warm"] is True
    assert all(0 < one < 300 for one in took)
    reasons = [why for decision in seen["decisions"] for why in decision["reasons"]]
    assert any("(measured, median of " in why for why in reasons)


def test_the_negotiator_of_drs_adds_nodes_and_gives_them_back(negotiated: Seen) -> None:
    assert (negotiated["grown"], negotiated["spread"], negotiated["shrunk"]) == (True, True, True)
    decided = [
        (int(c["have"]), int(c["want"])) for d in negotiated["decisions"] for c in d["changes"] if c["what"] == "nodes"
    ]
    assert decided[0][0] == 1
    assert max(want for _, want in decided) >= 2
    assert decided[-1][1] == 1
    done = [line["what"] for line in negotiated["fleet"] if line["what"].startswith("nodes ")]
    assert any(what.endswith(" started") for what in done)
    assert any(what.endswith(" stopped") for what in done)


def test_every_row_comes_out_once_while_the_negotiator_moves_nodes(negotiated: Seen) -> None:
    answer = negotiated["answer"]
    assert answer["rows_out"] > 0
    assert (answer["lost"], answer["duplicated"], answer["exact"]) == (0, 0, True), answer["note"]
    assert negotiated["failed_tasks"] == 0
