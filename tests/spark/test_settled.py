from __future__ import annotations

from pathlib import Path

from sluicegate.spark.pipeline.settled import between_batches, only_timers


def checkpoint(folder: Path, ends: list[int], committed: int) -> Path:
    """Batches that end at these manifests, of which the first ``committed`` are finished."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    for batch, end in enumerate(ends):
        text = f'v1\n{{"batchTimestampMs":{batch}}}\n{{"edge": "lines", "next": {end}}}'
        (folder / "offsets" / str(batch)).write_text(text)
    for batch in range(committed):
        (folder / "commits" / str(batch)).write_text("v1\n{}")
    return folder


def test_a_batch_without_input_after_one_with_input_may_be_a_watermarks(tmp_path: Path) -> None:
    assert not only_timers(checkpoint(tmp_path, [1, 2, 2], committed=2))


def test_two_batches_without_input_in_a_row_are_timers(tmp_path: Path) -> None:
    waiting = checkpoint(tmp_path, [1, 2, 2, 2], committed=3)
    assert only_timers(waiting)
    assert not between_batches(waiting)


def test_input_ends_the_waiting(tmp_path: Path) -> None:
    assert not only_timers(checkpoint(tmp_path, [1, 2, 2, 2, 3], committed=4))


def test_a_query_that_has_planned_nothing_waits_for_no_timer(tmp_path: Path) -> None:
    assert not only_timers(checkpoint(tmp_path / "none", [], committed=0))
    assert not only_timers(checkpoint(tmp_path / "one", [0], committed=0))
