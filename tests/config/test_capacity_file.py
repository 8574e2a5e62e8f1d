from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.config.capacity_file import (
    CapacityFile,
    CapacityPoint,
    capacity_text,
    read_capacity,
    read_capacity_file,
)
from sluicegate.errors import BadInput


def capacity_of(folder: Path, text: str) -> tuple[tuple[int, float, float], ...]:
    path = folder / "capacity.toml"
    path.write_text(text, encoding="utf-8")
    return read_capacity(path)


def point(machines: object, rate: object, sd: object = None) -> str:
    spread = "" if sd is None else f"sd_per_s = {sd}\n"
    return f"[[points]]\nmachines = {machines}\nrate_per_s = {rate}\n{spread}"


def test_points_come_by_rising_size(tmp_path: Path) -> None:
    found = capacity_of(tmp_path, point(8, 9000.0, 400.0) + point(3, 5200.0, 260.0))
    assert found == ((3, 5200.0, 260.0), (8, 9000.0, 400.0))


def test_a_deviation_not_given_is_five_percent(tmp_path: Path) -> None:
    assert capacity_of(tmp_path, point(3, 1000.0)) == ((3, 1000.0, 50.0),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "points is missing"),
        ("points = []", "points is empty"),
        (point(0, 10.0), "machines is 0"),
        (point(2.5, 10.0), "machines is 2.5: give a whole number"),
        (point(2, 0.0), "rate_per_s is 0: it must be above 0"),
        (point(2, "nan"), "rate_per_s is nan"),
        (point(2, 10.0, -1.0), "sd_per_s is -1"),
        (point(2, 10.0) + point(2, 11.0), "2 machines are there twice"),
        (point(2, 10.0) + "rat = 3", "unknown key 'rat'"),
        (point(2, 10.0) + "use = 'both'", "use is 'both': give training or validation"),
        (point(2, 10.0) + "samples_per_s = ['a']", "samples_per_s is .*: give a list of numbers"),
        (point(2, 10.0) + "samples_per_s = [0.0]", "a sample is 0"),
        ("slots_per_node = 0\n" + point(2, 10.0), "slots_per_node is 0: give at least 1"),
        ("machine = 3\n" + point(2, 10.0), "machine must be a table"),
        ("assumed = 'x'\n" + point(2, 10.0), "assumed is 'x': give a list of texts"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as found:
        capacity_of(tmp_path, text)
    assert "capacity.toml" in str(found.value)


def test_a_profile_of_an_operator_is_capacity_a_machine_being_a_slot(tmp_path: Path) -> None:
    path = tmp_path / "parse.toml"
    path.write_text(
        'task = "parse"\n[[points]]\nthreads = 1\nrate_per_s = 80.0\n'
        "[[points]]\nthreads = 2\nrate_per_s = 120.0\nunstable_per_s = 130.0\n"
    )
    assert read_capacity(path)[:2] == ((1, 120.0, 5.0), (2, 240.0, 5.0 * 2**0.5))


def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    points = (CapacityPoint(1, 95.5, 4.0, (91.0, 100.0)), CapacityPoint(3, 210.0, 9.0, (210.0,), "validation"))
    file = CapacityFile(
        points,
        app='a "quoted" name',
        measured="2026-01-31T12:00:00Z",
        slots_per_node=4,
        startup_s=14.5,
        model=1,
        assumed=("one thing", "another \\ thing"),
        machine={"cores": "2", "processor": "any"},
        versions={"spark": "4.3.0"},
    )
    path = tmp_path / "a.mst.toml"
    path.write_text(capacity_text(file), encoding="utf-8")
    assert read_capacity_file(path) == file
    assert file.samples("training") == ((1, 91.0), (1, 100.0))
    assert file.samples("validation") == ((3, 210.0),)


def test_a_point_without_samples_counts_by_its_mean(tmp_path: Path) -> None:
    path = tmp_path / "capacity.toml"
    path.write_text(point(3, 1000.0), encoding="utf-8")
    assert read_capacity_file(path).samples("training") == ((3, 1000.0),)
