"""The commit records of an operator with several outputs: each names all files of one batch.

A record is written before any edge shows the batch, so that a crash between two edges cannot leave them inconsistent:
the batch, run again, publishes those very files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sluicegate.runlog.files import numbered, read_if_there, write_whole
from sluicegate.spark.edges.folder import is_inside
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.offsets import last_committed
from sluicegate.spark.edges.seal import opened, sealed
from sluicegate.spark.edges.spoiled import file_spoiled


@dataclass(frozen=True, slots=True)
class CommitRecords:
    """The records beside the ``checkpoint`` of one operator."""

    operator: str
    checkpoint: Path

    def path(self, number: int) -> Path:
        return self.checkpoint.parent / "commits" / f"{number}.json"

    def numbers(self) -> list[int]:
        """The batches that have a record."""
        return numbered(self.path(0).parent)

    def write(self, number: int, files: Mapping[str, tuple[DataFile, ...]]) -> None:
        named = {output: [file.as_list() for file in files[output]] for output in files}
        write_whole(self.path(number), sealed(json.dumps({"outputs": named})))

    def read(self, number: int, outputs: Iterable[str]) -> dict[str, tuple[DataFile, ...]] | None:
        """The files of a batch, if it has a record. A damaged one is an error only while its batch may run again."""
        try:
            text = read_if_there(self.path(number))
            if text is None:
                return None
            read, _ = opened(text)
            named = read["outputs"] if isinstance(read.get("outputs"), dict) else read  # older versions: outputs only
            found = {output: tuple(DataFile.from_list(f) for f in named.get(output, [])) for output in outputs}
            if not all(is_inside(file.path) for files in found.values() for file in files):
                raise ValueError("names a file outside its edge")
            return found
        except (ValueError, TypeError) as problem:
            finished = last_committed(self.checkpoint)
            if finished is not None and finished >= number:
                return None
            what = "is no text" if isinstance(problem, UnicodeError) else str(problem)
            raise file_spoiled(f"operator {self.operator!r}", self.path(number), what) from problem

    def drop_before(self, number: int) -> None:
        """Delete the records of batches that are committed.

        All of them, not only that of the batch before: a change of key groups adds a batch that has none.
        """
        for known in self.numbers():
            if known < number:
                self.path(known).unlink(missing_ok=True)

    def drop_after(self, number: int) -> None:
        """Delete the records of batches that a restored checkpoint plans anew, with other rows."""
        for known in self.numbers():
            if known > number:
                self.path(known).unlink(missing_ok=True)
