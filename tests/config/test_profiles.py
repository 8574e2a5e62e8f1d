"""Profiles of a folder for a topology: which fit, which do not, and what is said of those measured elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.cli.app import run
from sluicegate.config.profile_file import ProfileFile, here, read_profiles, strange, with_profiles, write_profile
from sluicegate.domain import BatchCosts, Edge, Operator, ProfilePoint, TaskProfile, Topology
from sluicegate.errors import BadInput
from sluicegate.model.task_profile import corrected

TWO = Topology("two", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b")))
FILE = """
name = "two"
[[operators]]
name = "a"
service_rate_per_s = 10.0
[[operators]]
name = "b"
service_rate_per_s = 5.0
[[edges]]
from = "source"
to = "a"
[[edges]]
from = "a"
to = "b"
"""


def written(folder: Path, *names: str, **measured: object) -> Path:
    for name in names:
        points = (ProfilePoint(1, 40.0, 0.2, 0.05), ProfilePoint(4, 90.0, 0.6, 0.2))
        one = ProfileFile(TaskProfile(name, points, 50.0), BatchCosts(0.2, 0.02), measured=measured)
        (folder / f"{name}.toml").write_text(write_profile(one))
    return folder


def test_operators_take_the_profiles_of_their_names(tmp_path: Path) -> None:
    found = with_profiles(TWO, read_profiles(written(tmp_path, "a")))
    assert found.operator("a").profile is not None
    assert found.operator("b") is TWO.operator("b")


def test_a_profile_whose_batches_cost_much_is_not_taken_for_one_that_no_longer_fits(tmp_path: Path) -> None:
    """One task sustains 40 rows/s of the 100 that it does within a batch: both were measured, neither is observed."""
    one = ProfileFile(TaskProfile("a", (ProfilePoint(1, 40.0, 0.2, 0.05),), 100.0), BatchCosts(1.0, 0.2))
    (tmp_path / "a.toml").write_text(write_profile(one))
    for batch in (None, BatchCosts(0.1, 0.0)):
        topology = TWO.with_operators((replace(TWO.operator("a"), batch=batch), TWO.operator("b")))
        assert corrected(with_profiles(topology, read_profiles(tmp_path)).operator("a"))[1] is None


def test_a_profile_of_another_operator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no such operator"):
        with_profiles(TWO, read_profiles(written(tmp_path, "parse")))


def test_where_profiles_are_needed_a_missing_one_is_named_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no profile of b: measure it with `sluicegate profile two b`"):
        with_profiles(TWO, read_profiles(written(tmp_path, "a")), needed=True)


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no profile"):
        read_profiles(tmp_path)
    with pytest.raises(BadInput, match="No such file"):
        read_profiles(tmp_path / "nowhere")


def test_a_profile_of_another_machine_or_version_is_used_and_said(tmp_path: Path) -> None:
    now = here()
    same = written(tmp_path, "a", **now)
    assert strange(read_profiles(same)) == ()
    written(tmp_path, "a", **{**now, "spark": "3.0"})
    (line,) = strange(read_profiles(same))
    assert "measured with spark 3.0" in line


def test_plan_packs_threads_by_the_profiles_of_a_folder_and_predicts_by_the_routing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = tmp_path / "two.toml"
    topology.write_text(FILE)
    (tmp_path / "p").mkdir()
    profiles = written(tmp_path / "p", "a", "b", **here())
    rates = {}
    for routing in ("even", "slot-aware"):
        words = ["plan", str(topology), "--rate", "100", "--policy", "mba", "--profiles", str(profiles), "--json"]
        run([*words, "--routing", routing])
        told = json.loads(capsys.readouterr().out)
        rates[routing] = told["predicted"]["rate_per_s"]
        assert told["routing"] == routing
        assert told["vm_loads"]
        assert all(load["cpu"] > 0 for load in told["vm_loads"].values())
    assert told["operators"]["a"]["processors"] == 5
    # a full slot of 4 threads at 90/s and one thread of 40/s: even routing gives each a fifth of the rows
    assert rates["even"] == pytest.approx(90 * 5 / 4)
    assert rates["slot-aware"] == pytest.approx(130.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profiles", "nowhere"), "give a folder of profile files"),
        (("--routing", "odd"), "--routing is 'odd'"),
    ],
)
def test_what_plan_cannot_use_is_one_line(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = tmp_path / "two.toml"
    topology.write_text(FILE)
    assert run(["plan", str(topology), "--rate", "10", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mapper", "sam", "--policy", "drs"), "policy 'drs' has none"),
        (("--mapper", "sam", "--policy", "mba"), "give --master cluster and --executors"),
        (("--mapper", "sam", "--policy", "mba", "--executors", "1:2"), "--mapper needs --profiles"),
        (("--mapper", "ham", "--policy", "mba"), "unknown"),
        (("--routing", "odd"), "--routing is 'odd'"),
    ],
)
def test_what_run_cannot_map_is_one_line_before_spark_starts(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "chain", *words]) == 2
    assert said in capsys.readouterr().err


def test_run_refuses_profiles_that_miss_an_operator_it_must_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--mapper", "sam", "--policy", "mba", "--executors", "1:2", "--profiles", str(written(tmp_path, "a"))]
    assert run(["run", "linear", *words]) == 2
    assert "none fits" in capsys.readouterr().err
