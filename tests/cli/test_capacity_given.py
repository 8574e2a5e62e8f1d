"""`run --profiles`: which capacity file a policy that decides nodes takes, and which it refuses before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.cli.app import run
from sluicegate.cli.checked_options import the_capacity, the_cycle_s, whole_nodes
from sluicegate.cli.one_run import _measured_on
from sluicegate.cli.wanted import GroundAsked
from sluicegate.config.capacity_file import CapacityFile, CapacityPoint, capacity_text
from sluicegate.config.machine import machine_facts
from sluicegate.domain import Shape, Vm
from sluicegate.errors import BadInput
from sluicegate.lab.apps import chain
from sluicegate.spark.ground import Ground

POINTS = tuple(CapacityPoint(m, 100.0 * m, 5.0) for m in (1, 2, 4))


class Nodes:
    """A provider of nodes with four slots, of which nothing is asked but what runs."""

    def start(self, count: int) -> list[str]:
        return []

    def stop(self, names: object) -> None:
        pass

    def running(self) -> tuple[Vm, ...]:
        return (Vm("n1", 4),)

    def host(self, name: str) -> str | None:
        return None


def capacity(folder: Path, name: str = "chain.mst.toml", app: str = "chain", slots: int = 4, cores: str = "") -> Path:
    path = folder / name
    machine = {**machine_facts(), **({"cores": cores} if cores else {})}
    file = CapacityFile(POINTS, app, slots_per_node=slots, startup_s=12.0, machine=machine)
    path.write_text(capacity_text(file), encoding="utf-8")
    return path


def test_the_file_of_the_application_is_found_in_a_folder_or_named(tmp_path: Path) -> None:
    path = capacity(tmp_path)
    assert the_capacity(chain.APP, "uncertainty-5", tmp_path) == path
    assert the_capacity(chain.APP, "uncertainty-5", path) == path
    assert the_capacity(chain.APP, "sluicegate", tmp_path) is None


def test_a_folder_without_the_file_says_how_to_measure_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "chain", "--policy", "uncertainty-5", "--profiles", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "chain.mst.toml: no such file" in told
    assert "sluicegate profile chain --mst --nodes 1,2,4" in told


def test_a_file_of_another_application_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = capacity(tmp_path, "other.toml", app="grep")
    assert run(["run", "chain", "--policy", "uncertainty-5", "--profiles", str(path)]) == 2
    assert "was measured with 'grep', not with 'chain'" in capsys.readouterr().err


def test_a_file_of_other_nodes_is_refused_and_of_another_machine_is_said(tmp_path: Path) -> None:
    ground = Ground("spark://host:7077", {}, Shape(4, 1, 4), Nodes())
    assert ground.slots_per_node == 4
    with pytest.raises(BadInput, match="measured on nodes of 2 slots, those of the cluster have 4"):
        _measured_on(capacity(tmp_path, slots=2), ground, None)
    assert _measured_on(capacity(tmp_path), ground, None) == 12.0
    assert _measured_on(None, ground, None) is None


def test_a_policy_that_decides_nodes_has_executors_of_whole_nodes_as_far_as_was_measured(tmp_path: Path) -> None:
    asked = GroundAsked("cluster")
    found = whole_nodes(asked, "uncertainty-5", capacity(tmp_path))
    assert (found.executors, found.executor_cores) == ("1:4", 4)
    assert whole_nodes(asked, "uncertainty-5", None).executors == "1:4"
    assert whole_nodes(asked, "sluicegate", None) == asked
    given = GroundAsked("cluster", "1:2")
    assert whole_nodes(given, "uncertainty-5", capacity(tmp_path)) == given


def test_a_cycle_is_a_time_above_0() -> None:
    assert the_cycle_s("20s") == 20.0
    with pytest.raises(BadInput, match="--cycle is 0"):
        the_cycle_s("0")
