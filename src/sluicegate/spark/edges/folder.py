"""An edge as a folder: Parquet files, and one manifest per committed batch.

    edge.json                    the schema, as Spark writes it
    manifests/000000000042.json  what batch 42 put on the edge
    data/42-1f2e/part-*.parquet  its rows (a batch that failed leaves a folder that no manifest names)
    newest, oldest               the newest published and the oldest undeleted manifest (``chain``)

The position of each reader is in its checkpoint, and nowhere else.
Exactly once: only what a manifest names is on the edge, a manifest appears by one rename, and its number is the
writer's batch number; a rerun batch finds its manifest there and publishes nothing.
No silent loss: a manifest that is missing or was changed is refused with ``EdgeSpoiled``, never skipped.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.runlog.files import numbered, owner_only_folder, read_if_there, write_whole
from sluicegate.spark.edges.chain import read_mark, write_mark
from sluicegate.spark.edges.manifest import DataFile, Manifest
from sluicegate.spark.edges.seal import opened, sealed, unsealed
from sluicegate.spark.edges.spoiled import EdgeSpoiled, file_spoiled, manifest_spoiled
from sluicegate.spark.edges.topic import KafkaTopic, in_topic

_INSIDE = re.compile(r"data(/(?!\.{1,2}(/|$))[^/\0]+)+")
"""The path of a data file. Any other is refused: what readers have taken is deleted by its path."""


def is_inside(path: str) -> bool:
    """
    >>> is_inside("data/3-1f2e/part-0.parquet"), is_inside("data/../../other"), is_inside("/data/3/a")
    (True, False, False)
    """
    return _INSIDE.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class FolderEdge:
    """One edge. One process writes; any number may read."""

    folder: Path

    @property
    def topic(self) -> KafkaTopic | None:
        """The topic that holds its rows; ``None``: they are in files."""
        return None

    def create(self, schema_json: str) -> None:
        """Create the folder, or check that an existing one has the same columns."""
        known = self._schema()
        if self.topic is None and (self.folder / "kafka.json").exists():
            raise BadInput(
                f"edge {self.folder.name!r} has its rows in Kafka: declare it with pipeline.edge(..., kafka=...), or "
                "start in a new folder"
            )
        if known is None:
            for name in ("manifests", "data"):
                owner_only_folder(self.folder / name)
            if not self._oldest.exists() and not self.numbers():
                write_mark(self._oldest, 0)
            write_whole(self.folder / "edge.json", sealed(schema_json))
        elif _columns(known) != _columns(schema_json):
            raise BadInput(
                f"edge {self.folder.name!r} holds {_columns(known)}, but is now to carry {_columns(schema_json)}: "
                "keep the columns, or start in a new folder"
            )
        else:
            self._loosen(json.loads(known), json.loads(schema_json))

    def _loosen(self, known: dict[str, Any], declared: dict[str, Any]) -> None:
        """Record that columns may hold nulls from now on; those that once may stay so, as their rows may be here."""
        pairs = zip(known["fields"], declared["fields"], strict=True)
        fields = [{**old, "nullable": old["nullable"] or new["nullable"]} for old, new in pairs]
        if fields != known["fields"]:
            write_whole(self.folder / "edge.json", sealed(json.dumps({**known, "fields": fields})))

    @property
    def schema_json(self) -> str:
        text = self._schema()
        if text is None:
            raise BadInput(f"no edge in {self.folder}: start its pipeline first")
        return text

    def _schema(self) -> str | None:
        path = self.folder / "edge.json"
        try:
            text = read_if_there(path)
            if text is None:
                return None
            read, _ = opened(text)
            _columns(json.dumps(read))
            if read.keys() - {"type", "fields", "sum"}:
                raise ValueError("was changed after it was written")
        except IsADirectoryError as problem:
            raise file_spoiled(f"edge {self.folder.name!r}", path, "is a folder") from problem
        except (ValueError, KeyError, TypeError) as problem:
            told = "is no text" if isinstance(problem, UnicodeError) else problem.args[0]
            what = told if isinstance(problem, ValueError) else "holds no columns"
            raise file_spoiled(f"edge {self.folder.name!r}", path, what) from problem
        return unsealed(text)

    @property
    def _newest(self) -> Path:
        return self.folder / "newest"

    @property
    def _oldest(self) -> Path:
        return self.folder / "oldest"

    def manifest_path(self, number: int) -> Path:
        return self.folder / "manifests" / f"{number:012d}.json"

    def has(self, number: int) -> bool:
        return self.manifest_path(number).exists()

    def manifest(self, number: int) -> Manifest | None:
        """The manifest; ``None`` if it does not exist."""
        try:
            text = read_if_there(self.manifest_path(number))
            found = None if text is None else Manifest.from_json(text)
        except IsADirectoryError as problem:
            raise manifest_spoiled(self.folder, number, "is a folder") from problem
        except ValueError as problem:
            what = "is no text" if isinstance(problem, UnicodeError) else str(problem)
            raise manifest_spoiled(self.folder, number, what) from problem
        if found is not None and found.number != number:
            raise manifest_spoiled(self.folder, number, f"is a copy of manifest {found.number}")
        if found is not None and not all(in_topic(f.path) or is_inside(f.path) for f in found.files):
            raise manifest_spoiled(self.folder, number, "names a file outside its edge")
        return found

    def need(self, number: int) -> Manifest:
        """The manifest, which must exist because a reader's offset names it."""
        found = self.manifest(number)
        if found is None:
            raise manifest_spoiled(self.folder, number, "is missing, and its reader's checkpoint asks for it")
        return found

    def between(self, first: int, end: int) -> list[Manifest]:
        """The manifests from ``first`` up to, not including, ``end``, which must all be there and follow each other."""
        before = self.manifest(first - 1) if first else None
        found = [self.need(number) for number in range(first, end)]
        for one, after in pairwise([before, *found]):
            self._check_link(one, after)
        return found

    def publish(
        self, number: int, files: Iterable[DataFile], born: Births, at_s: float, watermark_ms: int | None = None
    ) -> Manifest:
        """Put a batch on the edge by one rename; one that is already published stays unchanged.

        The watermark never goes back: if the batch has an older one or none, that of the manifest before is kept.
        """
        known = self.manifest(number)
        if known is not None:
            return known
        before = self.manifest(number - 1) if number else None
        if number and before is None:
            raise manifest_spoiled(self.folder, number - 1, f"is missing, and manifest {number} would follow it")
        filled = tuple(file for file in files if file.rows)
        counted, seal = (before.rows_after, before.seal) if before else (0, "")
        known_ms = before.watermark_ms if before else None
        advances = watermark_ms is not None and (known_ms is None or watermark_ms > known_ms)
        manifest = Manifest(
            number, filled, counted, born, at_s, watermark_ms if advances else known_ms, advances, before=seal
        )
        write_whole(self.manifest_path(number), manifest.to_json())
        with contextlib.suppress(OSError):  # the batch is published even if the record cannot be written
            write_mark(self._newest, number)
        return manifest

    def begin_after(self, number: int, at_s: float) -> None:
        """Start an edge that its writer did not have before: its first batch is the one after ``number``.

        A start that was given up may have begun it after an earlier batch.
        """
        begun = self.numbers()
        if begun and begun[-1] >= number:
            return
        write_mark(self._oldest, number)
        write_whole(self.manifest_path(number), Manifest(number, (), 0, Births(), at_s).to_json())
        for earlier in begun:
            self.manifest_path(earlier).unlink()

    def numbers(self) -> list[int]:
        """Numbers of all manifests, in order. Lists the folder: for start-up and cleaning, never for a batch."""
        return numbered(self.folder / "manifests")

    def newest(self) -> Manifest | None:
        numbers = self.numbers()
        return self.manifest(numbers[-1]) if numbers else None

    def present(self, number: int) -> Iterator[Manifest]:
        """The manifests from ``number`` up to the first one missing: costs what is new, not all there is."""
        before = None
        while (found := self.manifest(number)) is not None:
            self._check_link(before, found)
            yield found
            before, number = found, number + 1

    def since(self, number: int) -> Iterator[Manifest]:
        """Like ``present``, for a reader that needs them all: raises if a published one is missing."""
        for found in self.present(number):
            yield found
            number = found.number + 1
        self.check_end(number)

    def check_end(self, number: int) -> None:
        """Raise if manifest ``number`` was published and is missing. Usually checks only two small files."""
        newest = read_mark(self._newest)
        if (newest is None or newest < number) and not self.has(number + 1):
            return
        # Listed, since a shared file system may show the record before it shows the manifest.
        numbers = self.numbers()
        if number in numbers or number < self.oldest(numbers):
            return
        newest = max(newest if newest is not None else number, *numbers, number)
        raise manifest_spoiled(self.folder, number, f"is missing, and {newest + 1} were published")

    def oldest(self, numbers: Sequence[int]) -> int:
        """The first manifest that ``clean`` has not deleted; ``numbers`` are those that exist."""
        known = read_mark(self._oldest)
        return known if known is not None else min(numbers, default=0)

    def has_more(self, number: int) -> bool:
        """Whether manifests from ``number`` on may have been published; ``False`` is certain."""
        newest = read_mark(self._newest)
        return newest is None or newest >= number or self.has(number)

    def whole(self) -> list[Manifest]:
        """All manifests, in order; raises if one is missing or was changed. Reads them all: for start-up."""
        numbers = self.numbers()
        oldest, newest = self.oldest(numbers), read_mark(self._newest)
        end = max(numbers[-1] if numbers else -1, newest if newest is not None else -1) + 1
        found: list[Manifest] = []
        for number in range(min(oldest, end), end):
            manifest = self.manifest(number)
            if manifest is not None:
                self._check_link(found[-1] if found else None, manifest)
                found.append(manifest)
            elif number >= self.oldest(numbers):  # read again: it may be deleted meanwhile
                raise manifest_spoiled(self.folder, number, f"is missing, and {end} were published")
        return found

    def _check_link(self, before: Manifest | None, found: Manifest | None) -> None:
        """Raise if ``found`` does not follow ``before``; older versions wrote no chain."""
        if before is None or found is None or not found.before:
            return
        if found.before != before.seal or found.rows_before != before.rows_after:
            raise manifest_spoiled(
                self.folder, found.number, f"does not follow manifest {before.number}, one of them is of another run"
            )

    def withdraw(self, number: int) -> None:
        """Undo the record that ``number`` was published if it is missing: its batch is not committed, and reruns."""
        if read_mark(self._newest) == number and not self.has(number):
            write_mark(self._newest, number - 1) if number else self._newest.unlink(missing_ok=True)

    def serves(self, first: int) -> bool:
        """Whether a reader that has taken everything before manifest ``first`` can continue here without loss."""
        numbers = self.numbers()
        return numbers[0] <= first <= numbers[-1] + 1 if numbers else first == 0

    def clean(self, until: int) -> int:
        """Delete the manifests before ``until``, which every reader has committed; returns how many.

        The newest one stays: it carries the row count. A manifest is deleted before its files: a crash between the two
        leaves files that no manifest names, which the next start removes.
        """
        numbers = self.numbers()
        gone = [number for number in numbers[:-1] if number < until]
        if gone:
            self._mark_oldest(min(until, numbers[-1]))
        for number in gone:
            homes = self._homes(number)
            self.manifest_path(number).unlink(missing_ok=True)
            for home in homes:
                shutil.rmtree(home, ignore_errors=True)
        return len(gone)

    def _mark_oldest(self, number: int) -> None:
        try:
            write_mark(self._oldest, number)
        except OSError:  # a full disk must not prevent deletion: without a record the manifests themselves count
            self._oldest.unlink(missing_ok=True)

    def _homes(self, number: int) -> list[Path]:
        """The folders with the files of a manifest; if it cannot be read, all folders with its number."""
        try:
            manifest = self.manifest(number)
        except EdgeSpoiled:
            return list((self.folder / "data").glob(f"{number}-*"))
        named = {Path(file.path).parts[1] for file in manifest.files} if manifest else set()
        return [self.folder / "data" / name for name in named]

    def sweep(self, needed: Container[str] = ()) -> int:
        """Delete data that no manifest names, except folders still ``needed``; only while nobody writes.

        Nothing is deleted from an edge that lacks a manifest: its data may still be restored.
        """
        kept = {Path(file.path).parts[1] for manifest in self.whole() for file in manifest.files}
        homes = (path for path in (self.folder / "data").iterdir() if path.name not in kept)
        orphans = [path for path in homes if path.name not in needed]
        for path in orphans:
            shutil.rmtree(path, ignore_errors=True)
        for draft in (self.folder / "manifests").glob(".*"):
            draft.unlink(missing_ok=True)
        return len(orphans)


def _columns(schema_json: str) -> str:
    """Column names and types, without nullability and metadata, which Spark may change."""
    fields = json.loads(schema_json)["fields"]
    return ", ".join(f"{field['name']} {json.dumps(field['type']).strip(chr(34))}" for field in fields)
