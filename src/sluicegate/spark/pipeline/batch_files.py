"""Writes the rows of a batch to files, with the sizes and checksums that the tasks report, and lists those files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.file_sums import sums_of
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.pipeline.elements import OUTPUT

_ROW_GROUP_BYTES = 16 * 2**20
_COMMITTER = ("spark.sql.parquet.output.committer.class", "sluicegate.EdgeCommitter")


def _save(batch: DataFrame, folder: Path, passing: bool, by_output: bool = False) -> None:
    # static, or a session in "dynamic" mode would first write elsewhere, and leave the sums of the files there
    writer = batch.write.mode("overwrite").option("partitionOverwriteMode", "static")
    writer = writer.option("parquet.block.size", _ROW_GROUP_BYTES).option(*_COMMITTER)
    if passing:  # read once, soon, and deleted: encoding saves disk space but costs time twice
        writer = writer.option("compression", "none").option("parquet.enable.dictionary", "false")
    (writer.partitionBy(OUTPUT) if by_output else writer).parquet(str(folder))


def saved(batch: DataFrame, draft: Path, passing: bool, by_output: bool = False) -> dict[str, tuple[int, str]]:
    """Write a batch to a folder; returns the sizes and checksums that its tasks report, by path."""
    _save(batch, draft, passing, by_output)
    draft.mkdir(parents=True, exist_ok=True)  # without any row Spark makes none
    _check_reported(draft)
    return _reported_sums(draft)


def _check_reported(folder: Path) -> None:
    """Raise unless a folder has the files that its tasks report, each task the same ones in all its attempts.

    An executor that is lost while a task of it commits leaves files of two attempts, or has deleted one that the other
    attempt wrote: of rows that a function draws anew, some would be there twice or not at all. The batch runs again.
    """
    by_task: dict[str, set[frozenset[str]]] = {}
    for report in folder.glob("_sums-*"):
        paths = frozenset(line.partition("\t")[0] for line in report.read_text(encoding="utf-8").splitlines())
        by_task.setdefault(report.name.rpartition("_")[0], set()).add(paths)
    named = {path for attempts in by_task.values() for paths in attempts for path in paths}
    files = (path.relative_to(folder) for path in folder.rglob("*.parquet"))
    there = {str(path) for path in files if path.parts[0] != "_temporary"}  # where tasks that are not over write
    if named != there or any(len(attempts) > 1 for attempts in by_task.values()):
        raise OSError(f"an executor was lost while its task wrote {folder.name}: the batch runs again")


def _reported_sums(folder: Path) -> dict[str, tuple[int, str]]:
    """Size and checksums of each file, by path, from the ``_sums-*`` files its writing task left; deletes those.

    By path, since a task gives its files of several outputs the same name. A path of which two attempts of a task
    report different sums is left out (an executor was lost after the first one): they are computed from the file.
    """
    found: dict[str, tuple[int, str]] = {}
    unsure: set[str] = set()
    for report in folder.glob("_sums-*"):
        for line in report.read_text(encoding="utf-8").splitlines():
            path, size, sums = line.split("\t")
            if found.setdefault(path, (int(size), sums)) != (int(size), sums):
                unsure.add(path)
        report.unlink()
    return {path: one for path, one in found.items() if path not in unsure}


def listed(edge: DurableEdge, home: str, sums: Mapping[str, tuple[int, str]], under: str = "") -> tuple[DataFile, ...]:
    """The files of a folder that have rows, by their Parquet footers; a folder without rows is deleted.

    ``sums`` is keyed by the path that a file had when it was written: ``under`` plus its name.
    """
    folder = edge.folder / home
    if not folder.exists():  # an output without rows
        return ()
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".parquet")
    files = [
        DataFile(
            f"{home}/{path.name}", pq.read_metadata(path).num_rows, *(sums.get(under + path.name) or sums_of(path))
        )
        for path in paths
    ]
    filled = tuple(file for file in files if file.rows)
    if not filled:
        shutil.rmtree(folder, ignore_errors=True)
    return filled
