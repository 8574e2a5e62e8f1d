"""Faults of nodes on a real cluster: one that is killed comes back as it was, one that is frozen thaws."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluicegate.lab.chaos import harm
from sluicegate.lab.chaos.processes import below
from sluicegate.lab.chaos.run import Victim
from sluicegate.runlog.layout import Layout
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder, nobody = tmp_path_factory.mktemp("nodes"), cast(Any, SimpleNamespace())
    cluster = Cluster(folder / "cluster", patience_s=300.0)
    try:
        cluster.up(1, cores=3, memory="700m")
        yield Victim(nobody, Layout(folder / "run"), nobody, nobody, cluster)
    finally:
        cluster.down()


def alive(victim: Victim) -> list[tuple[str, int, int]]:
    """Name, cores and memory of the nodes that take work."""
    status = victim.cluster.status() if victim.cluster is not None else None
    workers = status.workers if status is not None else ()
    return [(worker.name, worker.cores, worker.memory_mb) for worker in workers if worker.state == "alive"]


def test_a_node_that_is_killed_is_replaced_by_one_of_its_size(victim: Victim) -> None:
    assert harm.kill_node(victim, random.Random(0)) == "node worker-1"
    assert alive(victim) == [("worker-2", 3, 700)]


def states(root: int) -> str:
    """The state of every process of a node."""
    return "".join(line.rpartition(")")[2].split()[0] for line in map(_stat, [root, *(p.pid for p in below(root))]))


def _stat(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text()


def test_all_that_runs_on_a_frozen_node_stands_still_and_then_goes_on(
    victim: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("_STOPPED_S", "_LOST_S"):
        monkeypatch.setattr(harm, pause, (2.0, 2.0))
    (node,) = victim.nodes()
    freezing = threading.Thread(target=harm.freeze_node, args=(victim, random.Random(0)))
    freezing.start()
    assert wait_until(lambda: set(states(node.pid)) == {"T"}, 60.0, 0.02)
    freezing.join()
    assert wait_until(lambda: "T" not in states(node.pid), 60.0, 0.02)
    assert wait_until(lambda: len(alive(victim)) == 1, 60.0, 0.2)
