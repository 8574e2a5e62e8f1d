from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.spark.edges.offsets import (
    batch_range,
    between_batches,
    check_checkpoint_files,
    committed,
    ends,
    last_batch,
    last_committed,
    offset_of,
    only_timers,
    state_partitions,
    strays,
)
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.kafka.offsets import planned


def log(checkpoint: Path, batch: int, *sources: object) -> None:
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    lines = ["v1", '{"batchWatermarkMs":0}', *(s if isinstance(s, str) else json.dumps(s) for s in sources)]
    (checkpoint / "offsets" / str(batch)).write_text("\n".join(lines))


def commit(checkpoint: Path, batch: int) -> None:
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / "commits" / str(batch)).write_text("v1\n{}")


def at(edge: str, number: int) -> dict[str, object]:
    return {"edge": edge, "next": number}


def test_a_batch_takes_what_lies_between_the_batch_before_and_itself(tmp_path: Path) -> None:
    log(tmp_path, 0, at("a", 3), at("b", 1))
    log(tmp_path, 1, at("a", 5), at("b", 1))
    assert batch_range(tmp_path, 0) == {"a": (0, 3), "b": (0, 1)}
    assert batch_range(tmp_path, 1) == {"a": (3, 5), "b": (1, 1)}


def test_offsets_of_sparks_own_sources_are_left_alone(tmp_path: Path) -> None:
    log(tmp_path, 0, "17", '{"topic":{"0":5}}', "-", at("a", 2))
    assert ends(tmp_path, 0) == {"a": 2}


def test_an_edge_that_is_read_twice_is_taken_as_far_as_both_readers_are(tmp_path: Path) -> None:
    log(tmp_path, 0, at("a", 7), at("a", 5))
    log(tmp_path, 1, at("a", 8), at("a", 9))
    assert ends(tmp_path, 0) == {"a": 5}
    assert batch_range(tmp_path, 1) == {"a": (5, 8)}


def test_what_is_committed_is_not_what_is_planned(tmp_path: Path) -> None:
    log(tmp_path, 9, at("a", 3))
    log(tmp_path, 10, at("a", 5))
    assert (last_batch(tmp_path), last_committed(tmp_path), committed(tmp_path)) == (10, None, {})
    commit(tmp_path, 9)
    (tmp_path / "commits" / ".10.tmp").write_text("")
    assert (last_batch(tmp_path), last_committed(tmp_path), committed(tmp_path)) == (10, 9, {"a": 3})


def test_a_query_that_never_ran_has_taken_nothing(tmp_path: Path) -> None:
    assert (last_batch(tmp_path), ends(tmp_path, 0), committed(tmp_path)) == (None, {}, {})


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


def test_a_batch_with_input_is_not_one_of_timers_alone(tmp_path: Path) -> None:
    assert not only_timers(checkpoint(tmp_path, [1, 2, 2, 2, 3], committed=4))


def test_a_query_that_has_planned_nothing_waits_for_no_timer(tmp_path: Path) -> None:
    assert not only_timers(checkpoint(tmp_path / "none", [], committed=0))
    assert not only_timers(checkpoint(tmp_path / "one", [0], committed=0))


def test_offsets_that_are_no_text_say_nothing_here(tmp_path: Path) -> None:
    """The check at the start refuses them in one line; until it has run nothing else may fail on them."""
    log(tmp_path, 0, at("a", 1))
    log(tmp_path, 1, at("a", 1))
    (tmp_path / "offsets" / "1").write_bytes(b"v1\n\xfb\xff\x00\n\xfe")
    assert state_partitions(tmp_path) is None
    assert not only_timers(tmp_path)
    assert planned(tmp_path, 1) == {}
    with pytest.raises(EdgeSpoiled, match="changed or overwritten"):
        ends(tmp_path, 1)


def test_a_batch_planned_behind_a_gap_is_a_stray_and_one_that_comes_next_is_not(tmp_path: Path) -> None:
    assert strays(tmp_path) == []
    for batch in (0, 1, 5, 6):
        log(tmp_path, batch, at("a", batch))
    assert strays(tmp_path) == [], "nothing committed: which batches belong together is not known"
    commit(tmp_path, 0)
    assert strays(tmp_path) == [tmp_path / "offsets" / "5", tmp_path / "offsets" / "6"]
    commit(tmp_path, 5)
    assert strays(tmp_path) == []


def test_offsets_that_were_swapped_copied_or_hold_a_line_twice_are_refused(tmp_path: Path) -> None:
    """The batch of which they are would be read twice."""
    (tmp_path / "metadata").write_text('{"id":"7b0e1f3a-0c3b-4b61-9a55-1b5f6f0d8f10"}')
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    texts = [f'v1\n{{"batchTimestampMs":{batch}}}\n{offset_of("rows", batch + 1)}' for batch in range(4)]

    def told(*written: str) -> str:
        for batch, text in enumerate(written):
            (tmp_path / "offsets" / str(batch)).write_text(text)
        try:
            check_checkpoint_files(tmp_path)
        except EdgeSpoiled as problem:
            return str(problem)
        return ""

    for batch in range(3):
        (tmp_path / "commits" / str(batch)).write_text("v1\n{}")
    line = texts[3].splitlines()[-1]
    assert told(*texts) == ""
    assert "offsets/3 does not follow that of batch 2" in told(*texts[:3], f"{texts[3]}\n{line}")
    assert "offsets/3 is a copy of that of batch 2" in told(*texts[:3], texts[2])
    assert "offsets/2 does not follow that of batch 1" in told(texts[0], texts[2], texts[1], texts[3])
    assert told(*texts[:3], texts[3].replace(line, texts[2].splitlines()[-1])) == "", "a batch without rows"
