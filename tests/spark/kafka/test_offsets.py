from __future__ import annotations

from pathlib import Path

from sluicegate.spark.kafka.offsets import behind, planned, taken_by, told


def log(checkpoint: Path, batch: int, *lines: str) -> None:
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))


def begun(checkpoint: Path, text: str) -> None:
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_bytes(b"\0" + text.encode())


def test_the_first_batch_begins_where_the_query_did(tmp_path: Path) -> None:
    begun(tmp_path, 'v1\n{"t":{"0":40,"1":7}}')
    assert planned(tmp_path, -1) == {"0/t/0": 40, "0/t/1": 7}
    log(tmp_path, 0, '{"t":{"0":50,"1":7}}')
    assert taken_by(tmp_path, 0) == {"0/t/0": (40, 50), "0/t/1": (7, 7)}


def test_a_partition_that_was_added_begins_at_its_first_row(tmp_path: Path) -> None:
    log(tmp_path, 3, '{"t":{"0":50}}')
    log(tmp_path, 4, '{"t":{"0":60,"1":5}}')
    assert taken_by(tmp_path, 4) == {"0/t/0": (50, 60), "0/t/1": (0, 5)}


def test_lines_of_other_sources_are_left_alone(tmp_path: Path) -> None:
    log(tmp_path, 0, "17", '{"edge":"a","next":3}', '{"logOffset":4}', "-", '{"t":{"0":9}}')
    assert planned(tmp_path, 0) == {"4/t/0": 9}


def test_a_log_that_is_not_there_tells_nothing(tmp_path: Path) -> None:
    assert planned(tmp_path, 5) == planned(tmp_path, -1) == {}
    assert taken_by(tmp_path, 0) == {}


def test_lag_is_never_below_nothing() -> None:
    assert behind({"a": 10, "b": 5, "new": 3}, {"a": 4, "b": 6}) == {"a": 6, "b": 0, "new": 3}


def test_a_source_without_a_bound_leaves_the_query_without_one() -> None:
    assert told("0\tt\t0\t5\n2\tu\t0\t1\tu\t1\t1\n").tasks == 0
