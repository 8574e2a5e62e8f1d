from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.runlog.batch_log import Tail, append_line


def entry(number: int) -> str:
    return json.dumps({"number": number, "filling": "x" * (number % 7)})


def numbers(tail: Tail) -> list[int]:
    """Fails where a line is not whole."""
    return [int(json.loads(line)["number"]) for line in tail.lines()]


def test_a_reader_gets_every_line_once_across_a_file_put_aside(tmp_path: Path) -> None:
    path, seen = tmp_path / "batches.jsonl", list[int]()
    tail = Tail(path)
    for number in range(200):
        append_line(path, entry(number), most_bytes=400)
        if number % 5 == 0:
            seen += numbers(tail)
    assert seen + numbers(tail) == list(range(200))


def test_the_disk_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "batches.jsonl"
    for number in range(2000):
        append_line(path, entry(number), most_bytes=1000)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["batches.jsonl", "batches.jsonl.1"]
    assert all(file.stat().st_size < 1100 for file in tmp_path.iterdir())


def test_half_a_line_is_not_read_before_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "batches.jsonl"
    append_line(path, entry(1))
    tail = Tail(path)
    with path.open("a") as file:
        file.write('{"number": 2')
    assert numbers(tail) == [1]
    with path.open("a") as file:
        file.write("}\n")
    assert numbers(tail) == [2]


def test_a_log_that_is_not_there_yet_has_no_lines(tmp_path: Path) -> None:
    assert list(Tail(tmp_path / "none.jsonl").lines()) == []


@settings(max_examples=40)
@given(st.lists(st.integers(1, 40), max_size=12), st.integers(60, 600))
def test_a_reader_that_was_away_for_long_misses_old_lines_but_never_gets_half_a_line(
    bursts: list[int], most_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, seen, written = Path(folder) / "batches.jsonl", list[int](), 0
        tail = Tail(path)
        for burst in bursts:
            for _ in range(burst):
                append_line(path, entry(written), most_bytes)
                written += 1
            seen += numbers(tail)
            assert seen[-1] == written - 1
        assert seen == sorted(set(seen))


def test_a_line_cut_short_by_a_full_disk_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "batches.jsonl"
    append_line(path, entry(1))
    with path.open("a") as file:
        file.write('{"numb')
    append_line(path, entry(2))
    assert numbers(Tail(path)) == [1, 2]
