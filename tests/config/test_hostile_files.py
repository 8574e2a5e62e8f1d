"""Files with numbers that no machine can hold, odd digits and marks: refused in one line that names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.config.capacity_file import read_capacity_file
from sluicegate.config.profile_file import read_profile_file
from sluicegate.config.topology_file import read_topology
from sluicegate.config.trace_file import read_trace
from sluicegate.errors import BadInput

HUGE = "1" + "0" * 400
CAPACITY = "[[points]]\nmachines = 3\nrate_per_s = 5200.0\n"
PROFILE = 'task = "parse"\n[[points]]\nthreads = 1\nrate_per_s = 310.0\n'
TOPOLOGY = '[[operators]]\nname = "a"\nservice_rate_per_s = 3.0\n[[edges]]\nfrom = "source"\nto = "a"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "given"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        f"{CAPACITY}samples_per_s = [{HUGE}]",
        f"startup_s = nan\n{CAPACITY}",
        f"startup_s = -5\n{CAPACITY}",
        f"startup_s = {HUGE}\n{CAPACITY}",
        f"model = {HUGE}\n{CAPACITY}",
        CAPACITY.replace("3", HUGE, 1),
    ],
)
def test_a_capacity_file_with_an_impossible_number_is_refused(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadInput, match="give") as problem:
        read_capacity_file(path)
    assert str(problem.value).startswith(f"{path}: ")
    assert len(str(problem.value)) < len(str(path)) + 120


@pytest.mark.parametrize(
    "end", [f"[cpu]\nper_row = {HUGE}", "[cpu]\nper_row = nan", "unstable_per_s = nan", "unstable_per_s = -3"]
)
def test_a_profile_with_an_impossible_number_is_refused(end: str, tmp_path: Path) -> None:
    path = written(tmp_path, PROFILE + end)
    with pytest.raises(BadInput, match="give a"):
        read_profile_file(path)


def test_the_mark_at_the_start_of_some_editors_files_is_skipped(tmp_path: Path) -> None:
    assert read_topology(written(tmp_path, "\ufeff" + TOPOLOGY)).names == ("a",)


@pytest.mark.parametrize("wanted", ["²", "٣"])
def test_a_column_of_odd_digits_is_no_number(wanted: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no column"):
        read_trace(written(tmp_path, "minute,load,x\n0,5,1\n1,6,1\n2,7,1\n"), wanted)


def test_a_load_that_sums_to_infinity_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"{second},1.7e308\n" for second in range(300))
    with pytest.raises(BadInput, match=r"line 2: load is 1\.7e308; a load is at most"):
        read_trace(written(tmp_path, f"second,load\n{rows}"))


def test_a_load_too_small_to_compute_with_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"{minute},1e-320\n" for minute in range(50))
    with pytest.raises(BadInput, match="smaller unit"):
        read_trace(written(tmp_path, f"minute,load\n{rows}"))
