from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.config.trace_columns import find_columns, seconds_of
from sluicegate.config.trace_file import Trace, read_trace
from sluicegate.config.trace_minutes import to_minutes
from sluicegate.errors import BadInput


def trace_of(folder: Path, text: str, column: str | None = None) -> Trace:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return read_trace(path, column)


def minutes(rows: int, start: int = 0) -> str:
    return "".join(f"2020-01-01T{(i // 60):02d}:{i % 60:02d}:00Z,{i + 5}\n" for i in range(start, start + rows))


def test_a_clean_minute_trace_passes_unchanged(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "time,load\n" + minutes(30))
    assert trace.values.tolist() == [i + 5.0 for i in range(30)]
    assert (trace.repairs, trace.column, trace.time_column, trace.rows) == ((), "load", "time", 30)


def test_the_largest_number_column_that_is_no_time_is_the_load(tmp_path: Path) -> None:
    rows = "".join(f"{i},{10 + i % 7},{i % 2}\n" for i in range(100))
    trace = trace_of(tmp_path, "minute,tweets_per_min,interpolated\n" + rows)
    assert (trace.column, trace.time_column, trace.step_s) == ("tweets_per_min", "minute", 60.0)


def test_a_date_is_preferred_to_an_index_for_the_time(tmp_path: Path) -> None:
    rows = "".join(f"{i},2020-01-01 00:{i:02d}:00,{50 - i}\n" for i in range(40))
    assert trace_of(tmp_path, "minute,timestamp_local,n\n" + rows).time_column == "timestamp_local"


def test_a_column_can_be_named_or_numbered(tmp_path: Path) -> None:
    text = "minute,a,b\n" + "".join(f"{i},{i % 3},{100 + i}\n" for i in range(30))
    assert trace_of(tmp_path, text, "a").column == "a"
    assert trace_of(tmp_path, text, "2").column == "a"


def test_an_unknown_column_is_an_error_that_lists_the_columns(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'load'"):
        trace_of(tmp_path, "time,load\n" + minutes(30), "laod")


@pytest.mark.parametrize(
    "date", ["03/{day:02d}/2024 00:00", "{day:02d}.03.2024", "2024/03/{day:02d}", "{day:02d}/Mar/2024:00:00:00"]
)
def test_dates_that_are_not_iso_are_refused_instead_of_taken_as_one_row_a_minute(tmp_path: Path, date: str) -> None:
    rows = "".join(f"{date.format(day=day)},{day}.5\n" for day in range(1, 30))
    with pytest.raises(BadInput, match=r"column .when. holds times like .* not ISO dates"):
        trace_of(tmp_path, "when,rate\n" + rows)


def test_a_column_of_other_text_is_no_time(tmp_path: Path) -> None:
    assert trace_of(tmp_path, "host,rate\n" + "".join(f"10.0.0.{i},{i}.5\n" for i in range(30))).time_column is None


def test_a_file_without_a_header_or_times_is_one_row_a_minute(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "".join(f"{i % 5}\n" for i in range(30)))
    assert len(trace.values) == 30
    assert "taken as one a minute" in trace.repairs[0]


def test_a_column_that_rises_like_a_clock_is_the_time_without_a_header(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "".join(f"{300 * i},{40 + i % 5}\n" for i in range(30)))
    assert (trace.column, trace.time_column, trace.step_s) == ("2", "1", 300.0)
    assert "column '1' rises like a clock" in trace.repairs[0]


def test_milliseconds_since_1970_are_told_by_their_size_and_may_be_irregular(tmp_path: Path) -> None:
    rows = "".join(f"{40 + i % 5},{1_700_000_000_000 + 60_000 * i + i * i % 7}\n" for i in range(30))
    trace = trace_of(tmp_path, "alpha,beta\n" + rows)
    assert (trace.column, trace.time_column, round(trace.step_s)) == ("alpha", "beta", 60)


def test_a_ramp_beside_a_count_of_the_rows_is_the_load(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "".join(f"{i},{10 * i}\n" for i in range(30)))
    assert (trace.column, trace.time_column, trace.values[-1]) == ("2", None, 290.0)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_other_delimiters_are_told(tmp_path: Path, delimiter: str) -> None:
    assert trace_of(tmp_path, ("time,load\n" + minutes(5)).replace(",", delimiter)).values.tolist() == [5, 6, 7, 8, 9]


def test_comments_and_empty_lines_are_skipped(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "# a trace\n\ntime,load\n" + minutes(3) + "\n# middle\n" + minutes(3, 3))
    assert trace.values.tolist() == [5, 6, 7, 8, 9, 10]


def test_offsets_and_z_are_the_same_clock() -> None:
    assert seconds_of("2020-01-01T01:00:00+01:00") == seconds_of("2020-01-01T00:00:00Z")
    assert seconds_of("2020-01-01 00:00:00") == seconds_of("2020-01-01T00:00:00Z")


def test_a_gap_is_reported_and_interpolated(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "time,load\n" + minutes(10) + minutes(10, 13))
    assert trace.values.tolist() == [i + 5.0 for i in range(23)]
    assert trace.repairs == ("1 gap, 3 values missing, the longest 4 min: filled by interpolation",)


def test_a_trace_that_is_mostly_gaps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="make up 9"):
        trace_of(tmp_path, "time,load\n" + minutes(5) + minutes(5, 200))


def test_unsorted_rows_are_sorted_and_said(tmp_path: Path) -> None:
    lines = minutes(10).splitlines(keepends=True)
    trace = trace_of(tmp_path, "time,load\n" + "".join(lines[5:] + lines[:5]))
    assert trace.values.tolist() == [i + 5.0 for i in range(10)]
    assert trace.repairs == ("1 row earlier than the one before: sorted by time",)


def test_rows_of_the_same_time_are_averaged_and_said(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "time,load\n" + minutes(5) + "2020-01-01T00:04:00Z,19\n")
    assert trace.values.tolist() == [5, 6, 7, 8, 14]
    assert trace.repairs == ("1 row with the time of another: averaged with it",)


def test_seconds_are_averaged_to_minutes_and_said() -> None:
    found = to_minutes(np.arange(180.0), np.repeat([1.0, 2.0, 6.0], 60))
    assert found.values.tolist() == [1, 2, 6]
    assert found.repairs == ("step 1 s: averaged to minutes",)


def test_coarser_steps_are_interpolated_to_minutes_and_said() -> None:
    found = to_minutes(np.array([0.0, 1800.0, 3600.0]), np.array([0.0, 30.0, 0.0]))
    assert len(found.values) == 61
    assert found.values[15] == 15.0
    assert found.repairs == ("step 1800 s: interpolated to minutes",)


@pytest.mark.parametrize("unit_s", [1.0, 1e-3, 1e-6, 1e-9])
def test_units_of_times_since_1970_are_told_by_their_size(unit_s: float) -> None:
    rows = [[str((1_600_000_000 + 60 * i) * round(1 / unit_s)), "5"] for i in range(3)]
    assert find_columns(("ts", "n"), rows).time_unit_s == unit_s


def test_a_packed_trace_is_read_like_one_that_is_not(tmp_path: Path) -> None:
    packed = tmp_path / "load.csv.gz"
    packed.write_bytes(gzip.compress(("\ufefftime,load\n" + minutes(20)).encode()))
    assert read_trace(packed).values.tolist() == list(range(5, 25))


def test_a_packed_trace_that_was_cut_off_is_named_as_damaged(tmp_path: Path) -> None:
    packed = tmp_path / "load.csv.gz"
    packed.write_bytes(gzip.compress(("time,load\n" + minutes(20)).encode())[:-12])
    with pytest.raises(BadInput, match=r"is a damaged gzip file .*; copy it again"):
        read_trace(packed)


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("-3", "line 12: load is -3; a load cannot be negative"),
        ("many", "line 12: load is 'many', not a number"),
        ("nan", "line 12: load is nan; remove the line"),
        ("inf", "line 12: load is inf; remove the line"),
        ("", "line 12: load is empty; fill it in"),
    ],
)
def test_a_bad_value_is_an_error_that_names_its_line_and_remedy(tmp_path: Path, cell: str, problem: str) -> None:
    lines = ("time,load\n" + minutes(20)).splitlines()
    lines[11] = f"{lines[11].split(',')[0]},{cell}"
    with pytest.raises(BadInput, match=problem):
        trace_of(tmp_path, "\n".join(lines))


def test_a_bad_time_is_an_error_that_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="line 22: time is 'yesterday', not a time"):
        trace_of(tmp_path, "time,load\n" + minutes(20) + "yesterday,4\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("time,load\n", "has 0 row"),
        ("time,load\n" + minutes(1), "has 1 row"),
        ("time,load\n" + minutes(3) + "2020-01-01T00:03:00Z\n", "line 5 has 1 cells where 2 are expected"),
        ("a,b\nx,y\nz,w\n", "no column of numbers"),
    ],
)
def test_files_that_hold_no_trace_are_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as found:
        trace_of(tmp_path, text)
    assert "\n" not in str(found.value)
    assert "trace.csv" in str(found.value)


def test_missing_files_folders_and_binaries_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    for path, problem in ((tmp_path / "no", "no such file"), (tmp_path, "is a folder"), (tmp_path / "binary", "UTF-8")):
        with pytest.raises(BadInput, match=problem):
            read_trace(path)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=60), st.permutations(range(60)))
def test_the_order_of_rows_does_not_matter(values: list[float], order: list[int]) -> None:
    times = np.arange(len(values), dtype=np.float64) * 60.0
    shuffled = [i for i in order if i < len(values)]
    straight = to_minutes(times, np.array(values))
    mixed = to_minutes(times[shuffled], np.array(values)[shuffled])
    assert straight.values.tolist() == mixed.values.tolist()
