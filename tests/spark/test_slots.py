"""Executors are slots: what MBA allots and SAM maps is where Spark's tasks run, and no row is lost on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluicegate.spark.cluster.standalone import Cluster

pytestmark = pytest.mark.slow
Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What the story told, which ran as a program of its own."""
    home = tmp_path_factory.mktemp("slots")
    cluster = Cluster(home / "cluster", patience_s=300.0)
    try:
        cluster.up(workers=1, cores=4, memory="2g")
        command = [sys.executable, str(Path(__file__).with_name("slots_story.py")), str(cluster.folder), str(home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900.0)
    finally:
        cluster.down()
    assert done.returncode == 0, done.stderr[-2000:]
    told: Seen = json.loads(done.stdout)
    return told


def test_every_row_comes_out_once_while_slots_come_and_threads_are_mapped(seen: Seen) -> None:
    assert seen["mapped"]
    assert seen["exact"]


def test_mba_takes_a_full_bundle_and_a_rest_and_asks_for_executors_as_slots(seen: Seen) -> None:
    assert seen["processors"]["call"] > 2
    asked = [change for change in seen["changes"] if change["what"] == "executors"]
    assert any("slots by sam" in change["reason"] for change in asked)


def test_nearly_all_tasks_run_on_the_executor_they_are_mapped_to(seen: Seen) -> None:
    pairs = [
        (place, on)
        for name, places in seen["places"].items()
        for batch in seen["ran"][name]
        for place, on in zip(places, batch, strict=False)
    ]
    assert len(pairs) >= 20
    right = sum(place.rpartition("_")[2] == on for place, on in pairs)
    assert right >= 0.95 * len(pairs), seen["places"]


def test_threads_of_one_operator_stay_together_on_their_slot(seen: Seen) -> None:
    """A full bundle is two threads on a slot of its own, the rest goes to another."""
    counted = [seen["places"]["call"].count(place) for place in set(seen["places"]["call"])]
    assert len(counted) >= 2
    assert counted.count(2) >= len(counted) - 1


def test_rows_go_to_the_slots_in_proportion_to_what_the_threads_there_do(seen: Seen) -> None:
    """Slot-aware routing: a thread that has a slot alone does more than one of two, and gets more rows."""
    places, rates = seen["places"]["call"], {int(threads): rate for threads, rate in seen["rates"].items()}
    held = [places.count(place) for place in places]
    each = [rates[threads] / threads for threads in held]
    assert max(each) > 1.5 * min(each), places
    batches = [rows for rows in seen["rows"] if len(rows) == len(places) and sum(rows) >= 100]
    assert len(batches) >= 5
    total = sum(sum(rows) for rows in batches)
    for task, rate in enumerate(each):
        assert sum(rows[task] for rows in batches) / total == pytest.approx(rate / sum(each), rel=0.15)
