"""Reads a query's checkpoint: which manifests a batch takes, which batches are committed, whether the query is idle.

Spark writes the offsets of a batch before it runs, and its commit after.
"""

from __future__ import annotations

import json
import uuid
import zlib
from pathlib import Path

from sluicegate.runlog.files import read_if_there
from sluicegate.spark.edges.spoiled import EdgeSpoiled, file_spoiled


def offset_of(edge: str, number: int, reader: str = "") -> str:
    """The offset that a planner returns to Spark: ``reader`` has taken everything of ``edge`` before ``number``.

    It names its reader, so that a checkpoint in the folder of another operator is refused.
    """
    named = {"reader": reader} if reader else {}
    return json.dumps({"edge": edge, "next": number, **named, "check": _check(edge, number, reader)})


def next_of(offset: str) -> int:
    """The number of the next manifest; ``ValueError`` if the offset was changed."""
    return _read(offset)[1]


def _read(offset: str) -> tuple[str, int, str]:
    """Edge, next manifest and reader; the reader is empty in offsets of older versions."""
    read = json.loads(offset)
    edge, number, reader = str(read["edge"]), int(read["next"]), str(read.get("reader", ""))
    check = _check(edge, number, reader)
    if read.get("check", check) != check:  # older versions wrote none
        raise ValueError("was changed after it was written")
    return edge, number, reader


def _check(edge: str, number: int, reader: str) -> str:
    return f"{zlib.crc32(' '.join((edge, str(number), *([reader] if reader else []))).encode()):08x}"


def batch_range(checkpoint: Path, batch: int) -> dict[str, tuple[int, int]]:
    """For every edge: the first manifest of the batch, and one past its last."""
    before = ends(checkpoint, batch - 1) if batch > 0 else {}
    return {edge: (before.get(edge, 0), end) for edge, end in ends(checkpoint, batch).items()}


def place_of(checkpoint: Path, batch: int) -> str:
    """Where the rows of a batch are, as text; empty if they come from elsewhere or the log cannot be read."""
    try:
        taken = {edge: span for edge, span in batch_range(checkpoint, batch).items() if span[0] < span[1]}
    except (EdgeSpoiled, OSError):
        return ""
    return ", ".join(
        f"edge {edge!r}, manifest {first}" if end == first + 1 else f"edge {edge!r}, manifests {first} to {end - 1}"
        for edge, (first, end) in taken.items()
    )


def ends(checkpoint: Path, batch: int) -> dict[str, int]:
    """One past the last manifest of each edge, as of ``batch``; lines of other sources are ignored.

    A query that reads an edge twice (a self-join) has two lines for it: the smaller one counts.
    """
    path = checkpoint / "offsets" / str(batch)
    found: dict[str, int] = {}
    try:
        for line in (read_if_there(path) or "").splitlines()[2:]:
            if line.startswith("{") and {"edge", "next"} <= json.loads(line).keys():
                edge, end, reader = _read(line)
                if reader not in ("", checkpoint.parent.name):
                    raise _spoiled(checkpoint, path, f"is of operator {reader!r}")
                found[edge] = min(end, found.get(edge, end))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise _spoiled(checkpoint, path, "was changed or overwritten") from problem
    return found


def strays(checkpoint: Path) -> list[Path]:
    """Offsets of batches that cannot come next: uncommitted, and the batch before is neither planned nor committed.

    Spark plans one batch at a time. A pipeline whose folder was replaced by another one plans its batch there before
    it notices; Spark would refuse to start from it.
    """
    there = _numbers(checkpoint / "offsets")
    finished = max(_numbers(checkpoint / "commits"), default=None)
    if finished is None:
        return []
    stray = [number for number in there if number > finished + 1 and number - 1 not in there]
    return [checkpoint / "offsets" / str(number) for number in sorted(there) if stray and number >= min(stray)]


def check_checkpoint_files(checkpoint: Path) -> None:
    """Refuse a Spark checkpoint whose last files are damaged; Spark itself would fail with a stack trace."""
    planned, finished = last_batch(checkpoint), last_committed(checkpoint)
    for folder, batch in (("offsets", planned), ("offsets", finished), ("commits", finished)):
        if batch is not None:
            path = checkpoint / folder / str(batch)
            if not path.exists():
                raise _spoiled(checkpoint, path, f"is missing, and batch {batch} was committed")
            _check_lines(checkpoint, path)
    if planned is not None:
        ends(checkpoint, planned)
        for batch in {number for number in (planned, finished) if number is not None}:
            _check_follows(checkpoint, batch)
        _check_lines(checkpoint, checkpoint / "metadata", header=False)
        _check_id(checkpoint)


def _check_lines(checkpoint: Path, path: Path, header: bool = True) -> None:
    """Check a log file: a version, then JSON or a dash for each source; ``metadata`` is one line of JSON."""
    try:
        lines = (read_if_there(path) or "").splitlines()
        if not lines:
            raise _spoiled(checkpoint, path, "is empty" if path.exists() else "is missing")
        if header and not lines.pop(0).removeprefix("v").isdigit():
            raise ValueError("no version")
        for line in lines:
            if line != "-":
                json.loads(line)
        if not lines:
            raise ValueError("only a version")
    except (ValueError, RecursionError) as problem:
        raise _spoiled(checkpoint, path, "is torn or overwritten") from problem


def is_torn(checkpoint: Path, batch: int) -> bool:
    """Whether the offsets of a batch cannot be read, or are not of this query; not whether they follow each other."""
    try:
        _check_lines(checkpoint, checkpoint / "offsets" / str(batch))
        ends(checkpoint, batch)
    except EdgeSpoiled:
        return True
    return False


def _check_follows(checkpoint: Path, batch: int) -> None:
    """Check the offsets of a batch against those of the one before: with files that were swapped or copied, rows of
    one batch would be read twice.

    All batches of a query have as many sources; none goes back; and even one without rows has a time of its own.
    """
    path = checkpoint / "offsets" / str(batch)
    text, before = (read_if_there(path.with_name(str(number)), "replace") for number in (batch, batch - 1))
    if text is None or before is None:
        return
    if text == before:
        raise _spoiled(checkpoint, path, f"is a copy of that of batch {batch - 1}")
    now, then = ends(checkpoint, batch), ends(checkpoint, batch - 1)
    if len(text.splitlines()) != len(before.splitlines()) or any(now.get(edge, 0) < end for edge, end in then.items()):
        raise _spoiled(checkpoint, path, f"does not follow that of batch {batch - 1}")


def _check_id(checkpoint: Path) -> None:
    """Check that ``metadata`` has the query's id, to give a clearer error than Spark's."""
    path = checkpoint / "metadata"
    try:
        uuid.UUID(str(json.loads(path.read_text(encoding="utf-8"))["id"]))
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise _spoiled(checkpoint, path, "was changed or overwritten") from problem


def _spoiled(checkpoint: Path, path: Path, what: str) -> EdgeSpoiled:
    return file_spoiled(f"operator {checkpoint.parent.name!r}, checkpoint", path, what)


def state_partitions(checkpoint: Path) -> int | None:
    """Number of state partitions of a query, its number of key groups; ``None`` before its first batch.

    Spark writes it into every entry of the offset log, and keeps to it.
    """
    batch = last_batch(checkpoint)
    text = read_if_there(checkpoint / "offsets" / str(batch), "replace") if batch is not None else None
    lines = (text or "").splitlines()
    try:
        return int(json.loads(lines[1])["conf"]["spark.sql.shuffle.partitions"])
    except (IndexError, ValueError, KeyError, TypeError):
        return None


def last_batch(checkpoint: Path) -> int | None:
    """The last batch Spark has planned, finished or not."""
    return _highest(checkpoint / "offsets")


def last_committed(checkpoint: Path) -> int | None:
    """The last batch that Spark has finished and will not run again."""
    return _highest(checkpoint / "commits")


def committed(checkpoint: Path) -> dict[str, int]:
    """For every edge: the first manifest that no committed batch has taken; empty before the first commit."""
    batch = last_committed(checkpoint)
    return {} if batch is None else ends(checkpoint, batch)


def between_batches(checkpoint: Path) -> bool:
    """Whether the last batch that was planned is committed."""
    return last_committed(checkpoint) == last_batch(checkpoint)


def only_timers(checkpoint: Path) -> bool:
    """Whether a query is idle but for its timers: the last two planned batches had no input.

    A query with processing-time timers runs batches without input back to back, forever, to check which timers are
    due. A watermark that moved causes only one such batch.
    """
    planned = last_batch(checkpoint)
    return planned is not None and _took_nothing(checkpoint, planned) and _took_nothing(checkpoint, planned - 1)


def _took_nothing(checkpoint: Path, batch: int) -> bool:
    now, before = (_lines(checkpoint, number) for number in (batch, batch - 1))
    return now is not None and now == before


def _lines(checkpoint: Path, batch: int) -> list[str] | None:
    """The offset lines of all sources; the first two lines of the file are the version and Spark's metadata."""
    text = read_if_there(checkpoint / "offsets" / str(batch), "replace")
    return None if text is None else text.splitlines()[2:]


def _highest(folder: Path) -> int | None:
    return max(_numbers(folder), default=None)


def _numbers(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.exists() else set()
