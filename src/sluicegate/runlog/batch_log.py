"""The batch log: one line for every finished batch of an operator, from which the controller learns.

The driver appends, readers continue where they left off. A full file is renamed to ``.1`` and a new one begins, so
that the disk stays bounded; a reader that was away for longer than that misses old batches, never half a line.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sluicegate.domain.births import Births
from sluicegate.runlog.files import owner_only_file, owner_only_folder

MOST_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One finished batch. Times are seconds since the epoch.

    ``duration_s`` is the whole batch as Spark counts it, with planning and commit, without waiting for rows.
    ``entered_s`` is the mean time at which its rows came onto the edges it reads. A ``cold`` batch, such as the first
    ones after a start, includes compilation and warm-up, and does not predict the next. ``work_s`` is the run time of
    all its tasks added up; ``task_s`` are the run times of the single tasks, if they were looked up, ``task_on`` the
    executors they ran on, ``task_rows`` the rows of each, if the batch was cut into tasks by rows; ``group_s`` is the
    smoothed time of each key group; ``task_at`` are the places that the tasks were planned for, to compare with
    ``task_on``.
    """

    batch: int
    started_s: float
    published_s: float
    duration_s: float
    rows: int
    rows_out: int
    processors: int
    entered_s: float | None
    born: Births
    cold: bool = False
    work_s: float | None = None
    task_s: tuple[float, ...] = ()
    task_rows: tuple[int, ...] = ()
    group_s: tuple[float, ...] = ()
    task_on: tuple[str, ...] = ()
    task_at: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(
            {
                "batch": self.batch,
                "started_s": round(self.started_s, 4),
                "published_s": round(self.published_s, 4),
                "duration_s": round(self.duration_s, 4),
                "rows": self.rows,
                "rows_out": self.rows_out,
                "processors": self.processors,
                "entered_s": None if self.entered_s is None else round(self.entered_s, 4),
                "born": [[round(t, 3), w] for t, w in self.born.points],
                "cold": self.cold,
                "work_s": None if self.work_s is None else round(self.work_s, 4),
                "task_s": [round(t, 4) for t in self.task_s],
                "task_rows": self.task_rows,
                "group_s": self.group_s,
                "task_on": self.task_on,
                "task_at": self.task_at,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> BatchRecord:
        """
        >>> one = BatchRecord(1, 10.0, 11.0, 1.5, 7, 8, 2, 9.5, Births(((9.0, 7.0),)), True, 0.75, (0.5, 0.25), (4, 3))
        >>> BatchRecord.from_json(one.to_json()) == one
        True
        """
        read = json.loads(text)
        entered = read["entered_s"]
        return cls(
            batch=int(read["batch"]),
            started_s=float(read["started_s"]),
            published_s=float(read["published_s"]),
            duration_s=float(read["duration_s"]),
            rows=int(read["rows"]),
            rows_out=int(read["rows_out"]),
            processors=int(read["processors"]),
            entered_s=None if entered is None else float(entered),
            born=Births(tuple((float(t), float(w)) for t, w in read["born"])),
            cold=bool(read["cold"]),
            work_s=None if read["work_s"] is None else float(read["work_s"]),
            task_s=tuple(float(t) for t in read["task_s"]),
            task_rows=tuple(int(n) for n in read.get("task_rows", ())),
            group_s=tuple(float(s) for s in read.get("group_s", ())),
            task_on=tuple(str(name) for name in read.get("task_on", ())),
            task_at=tuple(str(place) for place in read.get("task_at", ())),
        )


DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a damaged line or document raises."""


def records_of(lines: Iterable[str]) -> Iterator[BatchRecord]:
    """The batches in lines of a log; a damaged line is skipped.

    >>> [record.batch for record in records_of(["{", "[1]", "1e999"])]
    []
    """
    for line in lines:
        # a damaged line must not stop the controller: later batches carry the same figures
        with contextlib.suppress(*DAMAGE):
            yield BatchRecord.from_json(line)


def mapped_share(records: Iterable[BatchRecord]) -> float | None:
    """Of the tasks that were mapped to one executor each, the share that ran there; ``None`` if none was mapped.

    >>> from dataclasses import replace
    >>> one = BatchRecord(1, 0.0, 1.0, 1.0, 4, 4, 2, None, Births(()), task_on=("3", "5"))
    >>> mapped_share([replace(one, task_at=("executor_h1_3", "executor_h1_4"))]), mapped_share([one])
    (0.5, None)
    """
    pairs = [
        (at.rpartition("_")[2], on)
        for record in records
        if len(record.task_at) == len(record.task_on)
        for at, on in zip(record.task_at, record.task_on, strict=True)
        if at.startswith("executor_")
    ]
    return sum(at == on for at, on in pairs) / len(pairs) if pairs else None


def append_line(path: Path, line: str, most_bytes: int = MOST_BYTES) -> None:
    """Append one line; a full file is renamed first, half a line that a full disk left is dropped."""
    owner_only_folder(path.parent)
    if path.exists() and path.stat().st_size > most_bytes:
        path.replace(path.with_name(path.name + ".1"))
    with owner_only_file(path).open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end and not _ends_a_line(file, end):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        file.write(f"{line}\n".encode())


class Tail:
    """Reads the whole lines added to a file since the last call, also after a full file was renamed.

    A file is identified by its first line: inode numbers are reused as soon as a file is deleted.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first = b""
        self._at = 0

    def lines(self) -> Iterator[str]:
        now = _opened(self._path)
        if now is None:
            return
        with now:
            first = now.readline()
            if not first.endswith(b"\n"):
                return
            if self._first and first != self._first:
                yield from self._put_aside(first)
                self._at = 0
            self._first = first
            yield from self._rest(now)

    def _put_aside(self, now: bytes) -> Iterator[str]:
        """The unread lines of the file that was renamed; if two were since, all of the later one."""
        before = _opened(self._path.with_name(self._path.name + ".1"))
        if before is None:
            return
        with before:
            first = before.readline()
            if first != self._first:
                self._at = 0
            if first != now:
                yield from self._rest(before)

    def _rest(self, file: BinaryIO) -> Iterator[str]:
        """Read line by line, so that a long file is never in memory as a whole."""
        file.seek(self._at)
        for line in file:
            if not line.endswith(b"\n"):
                return
            self._at += len(line)
            if line.strip():
                yield line[:-1].decode("utf-8", errors="replace")


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _ends_a_line(file: BinaryIO, at: int) -> bool:
    file.seek(at - 1)
    return file.read(1) == b"\n"
