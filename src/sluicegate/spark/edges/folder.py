"""An edge as a folder: Parquet files, and one manifest per committed batch.

    edge.json                    the schema, as Spark writes it
    manifests/000000000042.json  what batch 42 put on the edge
    data/42-1f2e/part-*.parquet  its rows (a batch that failed leaves a folder that no manifest names)

How far each reader has come is written in its checkpoint, and nowhere else.
Exactly once: only what a manifest names is on the edge, a manifest appears by one rename, and its number is the
writer's batch number; a batch that is run again finds its manifest there and publishes nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.runlog.files import owner_only_folder, read_if_there, write_whole
from sluicegate.spark.edges.manifest import DataFile, Manifest


@dataclass(frozen=True, slots=True)
class FolderEdge:
    """One edge. Any number of processes may read; one writes."""

    folder: Path

    def create(self, schema_json: str) -> None:
        """Make the folder, or check that the one that is there carries the same columns."""
        known = read_if_there(self.folder / "edge.json")
        if known is None:
            for name in ("manifests", "data"):
                owner_only_folder(self.folder / name)
            write_whole(self.folder / "edge.json", schema_json)
        elif _columns(known) != _columns(schema_json):
            raise BadInput(
                f"edge {self.folder.name!r} holds {_columns(known)}, but is now to carry {_columns(schema_json)}: "
                "keep the columns, or start in a new folder"
            )

    @property
    def schema_json(self) -> str:
        text = read_if_there(self.folder / "edge.json")
        if text is None:
            raise BadInput(f"no edge in {self.folder}: start its pipeline first")
        return text

    def manifest_path(self, number: int) -> Path:
        return self.folder / "manifests" / f"{number:012d}.json"

    def has(self, number: int) -> bool:
        return self.manifest_path(number).exists()

    def manifest(self, number: int) -> Manifest | None:
        text = read_if_there(self.manifest_path(number))
        return None if text is None else Manifest.from_json(text)

    def need(self, number: int) -> Manifest:
        """The manifest, which a reader's offset says is there."""
        found = self.manifest(number)
        if found is None:
            raise BadInput(
                f"edge {self.folder.name!r} lacks manifest {number}, which its reader's checkpoint asks for: "
                "the checkpoint and the edge do not belong together; restore both, or start in a new folder"
            )
        return found

    def publish(self, number: int, files: Iterable[DataFile], born: Births, at_s: float) -> Manifest:
        """Put a batch on the edge: one rename. A batch that is there already stays as it was published first."""
        known = self.manifest(number)
        if known is not None:
            return known
        before = self.manifest(number - 1) if number else None
        filled = tuple(file for file in files if file.rows)
        manifest = Manifest(number, filled, before.rows_after if before else 0, born, at_s)
        write_whole(self.manifest_path(number), manifest.to_json())
        return manifest

    def numbers(self) -> list[int]:
        """All manifests there are, in order. Lists the folder: for start-up and cleaning, never for a batch."""
        found = (path.stem for path in (self.folder / "manifests").glob("*.json"))
        return sorted(int(stem) for stem in found if stem.isdigit())

    def newest(self) -> Manifest | None:
        numbers = self.numbers()
        return self.manifest(numbers[-1]) if numbers else None

    def since(self, number: int) -> Iterator[Manifest]:
        """The manifests from ``number`` on, as far as they reach: costs what is new, not what there is."""
        while (found := self.manifest(number)) is not None:
            yield found
            number += 1

    def serves(self, first: int) -> bool:
        """Whether a reader that has taken everything before manifest ``first`` can go on here and miss nothing."""
        numbers = self.numbers()
        return numbers[0] <= first <= numbers[-1] + 1 if numbers else first == 0

    def clean(self, until: int) -> int:
        """Delete the manifests before ``until``, which every reader has committed; how many those were.

        The newest one stays: it carries the count of rows on. The manifest goes before its files: a crash between the
        two leaves files without a name, which the next start removes.
        """
        gone = [number for number in self.numbers()[:-1] if number < until]
        for number in gone:
            manifest = self.manifest(number)
            self.manifest_path(number).unlink(missing_ok=True)
            for home in {Path(file.path).parts[1] for file in manifest.files} if manifest else ():
                shutil.rmtree(self.folder / "data" / home, ignore_errors=True)
        return len(gone)

    def sweep(self, needed: Container[str] = ()) -> int:
        """Remove data that no manifest names, but for the folders still ``needed``. Only while nobody writes."""
        kept: set[str] = set()
        for number in self.numbers():
            manifest = self.manifest(number)
            kept.update(Path(file.path).parts[1] for file in manifest.files) if manifest else None
        homes = (path for path in (self.folder / "data").iterdir() if path.name not in kept)
        orphans = [path for path in homes if path.name not in needed]
        for path in orphans:
            shutil.rmtree(path, ignore_errors=True)
        for draft in (self.folder / "manifests").glob(".*"):
            draft.unlink(missing_ok=True)
        return len(orphans)


def _columns(schema_json: str) -> str:
    """Names and types, without what Spark may change its mind about (nullability, metadata)."""
    fields = json.loads(schema_json)["fields"]
    return ", ".join(f"{field['name']} {json.dumps(field['type']).strip(chr(34))}" for field in fields)
