from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.config.capacity_file import read_capacity
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
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as found:
        capacity_of(tmp_path, text)
    assert "capacity.toml" in str(found.value)
