"""Changes the number of state partitions of a stopped query with Spark's own repartitioning, verified and undoable.

The number of state partitions is fixed when a query first starts: the ``spark.sql.shuffle.partitions`` of that time,
200 by default. Spark 4.2 and later can repartition a checkpoint offline, by a batch of its own. Around that call the
checkpoint is copied, and the rows of every store are counted and checksummed before and after; if anything differs, the
copy is put back. The checksum adds up a hash of each row, so it does not depend on the partition of a row.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sluicegate.errors import BadInput, EnvironmentLacks, SluicegateError
from sluicegate.spark.edges.offsets import last_batch, last_committed

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS = "spark.sql.shuffle.partitions"
_UNDO = "sluicegate-repartition.json"
Progress = Callable[[str], None]


class StateDiffers(SluicegateError):
    """The state after a repartition differs from the state before it; the checkpoint is restored."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class StoreSum:
    """The row count of one store of one stateful operator, and a checksum independent of row order and partition."""

    operator: int
    name: str
    store: str
    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The checkpoint of a stopped query: its last batch, and the settings it was written with."""

    checkpoint: Path
    batch: int
    settings: dict[str, str]

    @property
    def partitions(self) -> int | None:
        text = self.settings.get(_PARTITIONS)
        return int(text) if text is not None and text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """The result: the stores, equal before and after except for their number of partitions, and the copy."""

    stores: tuple[StoreSum, ...]
    partitions_before: int | None
    partitions: int
    copy: Path

    @property
    def rows(self) -> int:
        return sum(store.rows for store in self.stores)


def stopped(checkpoint: Path) -> Stopped:
    """Read the checkpoint; refused unless its query stopped between two batches and keeps state in RocksDB."""
    if not (checkpoint / "offsets").is_dir() or not (checkpoint / "commits").is_dir():
        raise BadInput(f"{checkpoint} is no checkpoint of a streaming query: give its checkpointLocation")
    if not (checkpoint / "state").is_dir():
        raise BadInput(f"the query of {checkpoint} keeps no state: its tasks follow the plan at every batch anyway")
    planned, done = last_batch(checkpoint), last_committed(checkpoint)
    if planned is None or planned != done:
        raise BadInput(
            f"batch {planned} of {checkpoint} is not committed: start the query once more, stop it when it is idle, "
            "and repartition then"
        )
    settings = _settings(checkpoint, planned)
    store = settings.get(_PROVIDER, "")
    if "RocksDB" not in store:
        named = store.rpartition(".")[2] or "a store that it does not name"
        raise BadInput(
            f"the state of {checkpoint} is kept by {named}, and Spark repartitions RocksDB's state only: "
            "a new query on RocksDB with fewer partitions is the way"
        )
    return Stopped(checkpoint, planned, settings)


def _settings(checkpoint: Path, batch: int) -> dict[str, str]:
    """The settings that Spark wrote into the offsets of a batch."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
        return {str(key): str(value) for key, value in json.loads(lines[1])["conf"].items()}
    except (IndexError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"offsets/{batch} of {checkpoint} cannot be read: is the checkpoint whole?") from None


def settings_for(found: Stopped) -> dict[str, str]:
    """The state store settings that the checkpoint was written with; those it lacks stay at Spark's defaults."""
    return {key: value for key, value in found.settings.items() if key.startswith("spark.sql.streaming.stateStore.")}


def repartition(
    spark: SparkSession, checkpoint: Path, partitions: int, progress: Progress = lambda text: None
) -> Repartitioned:
    """Change the number of state partitions of a stopped query; on any failure the checkpoint is restored."""
    if partitions < 1:
        raise BadInput(f"{partitions} partitions: give at least 1")
    found = stopped(checkpoint)
    if found.partitions == partitions:
        raise BadInput(f"the state of {checkpoint} has {partitions} partitions already")
    copy = copied(checkpoint, found.batch, progress)
    # written before anything changes, so that a killed repartition can be undone too
    (copy / _UNDO).write_text(json.dumps({"batch": found.batch, "partitions": partitions}), encoding="utf-8")
    progress("counting the state before")
    try:
        before = _sums(spark, checkpoint)
    except (PySparkException, Py4JError) as problem:
        shutil.rmtree(copy)
        raise BadInput(f"the state of {checkpoint} cannot be read: {_line(problem)}") from problem
    progress(f"repartitioning {sum(one.rows for one in before):,} rows of state")
    try:
        manager: Any = spark._streamingCheckpointManager
        manager.repartition(str(checkpoint), partitions, False)
        progress("checking the state after")
        _check(before, _sums(spark, checkpoint))
        now = stopped(checkpoint).partitions  # of the batch that Spark added for it
        if now != partitions:
            raise StateDiffers(f"the state of {checkpoint} still has {now} partitions: put back as it was")
    except BaseException as problem:
        put_back(checkpoint, copy)
        if isinstance(problem, PySparkException | Py4JError):
            raise BadInput(f"Spark refuses: {_line(problem)}; {checkpoint} is as it was") from problem
        raise
    return Repartitioned(before, found.partitions, partitions, copy)


def undo(checkpoint: Path) -> Path:
    """Restore the copy from before the last repartition; refused if the query has run since."""
    found = _last_copy(checkpoint)
    if found is None:
        raise BadInput(f"there is no copy of {checkpoint} from before a repartition: nothing to put back")
    copy, batch, partitions = found
    if not _only_repartitioned(checkpoint, batch, partitions):
        raise BadInput(
            f"the query of {checkpoint} has run since (batch {last_batch(checkpoint)}): going back would run batches "
            f"twice; the copy is in {copy}"
        )
    put_back(checkpoint, copy)
    return checkpoint


def undo_interrupted(checkpoint: Path) -> bool:
    """Restore the checkpoint if the last repartition of it was killed half-way; whether it was."""
    if (checkpoint / _UNDO).exists():  # the copy is the checkpoint again, and what it replaced may still be there
        _clear_after_put_back(checkpoint)
        return True
    found = _last_copy(checkpoint)
    if found is None:
        return False
    copy, batch, partitions = found
    finished = checkpoint.exists() and last_committed(checkpoint) != batch
    if finished or not _only_repartitioned(checkpoint, batch, partitions):
        return False
    put_back(checkpoint, copy)
    return True


def _last_copy(checkpoint: Path) -> tuple[Path, int, int] | None:
    """The newest copy of a checkpoint, the batch it was made after, and the partitions that were wanted."""
    notes = checkpoint.parent.glob(f"{checkpoint.name}.before-*/{_UNDO}")
    note = max(notes, key=lambda path: path.stat().st_mtime, default=None)
    if note is None:
        return None
    try:
        told = json.loads(note.read_text(encoding="utf-8"))
        return note.parent, int(told["batch"]), int(told["partitions"])
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{note} cannot be read: the copy of {checkpoint} lies beside it") from None


def _only_repartitioned(checkpoint: Path, batch: int, partitions: int) -> bool:
    """Whether no batch of the query came after ``batch``, only Spark's batch that repartitions, whole or in part."""
    if not checkpoint.exists() or last_batch(checkpoint) == batch:
        return True
    return last_batch(checkpoint) == batch + 1 and _settings(checkpoint, batch + 1).get(_PARTITIONS) == str(partitions)


def copy_of(checkpoint: Path, batch: int) -> Path:
    """Where the checkpoint is copied to before a repartition that follows ``batch``."""
    return checkpoint.with_name(f"{checkpoint.name}.before-{batch}")


def copied(checkpoint: Path, batch: int, progress: Progress) -> Path:
    """Copy the checkpoint, through a draft and a rename, so that a partial copy is never used."""
    copy = copy_of(checkpoint, batch)
    draft = copy.with_name(f"{copy.name}.draft")
    size = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    free = shutil.disk_usage(checkpoint.parent).free
    if size * 2 > free:  # the copy, and the rewritten state
        raise EnvironmentLacks(
            f"{checkpoint} holds {size / 1e9:.2f} GB, and a copy with the new state needs twice that; "
            f"{free / 1e9:.2f} GB are free: make room"
        )
    progress(f"copying {size / 1e6:,.0f} MB to {copy}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.rmtree(draft, ignore_errors=True)
    try:
        shutil.copytree(checkpoint, draft, symlinks=True, copy_function=_linked)
        draft.rename(copy)
    except OSError as problem:
        shutil.rmtree(draft, ignore_errors=True)
        raise EnvironmentLacks(f"{checkpoint} cannot be copied: {problem.strerror or problem}") from problem
    return copy


def _linked(origin: str, target: str) -> str:
    """Hard-link a file, or copy it; a link is enough because Spark never modifies a checkpoint file in place."""
    try:
        os.link(origin, target)
        return target
    except OSError:
        return shutil.copy2(origin, target)


def put_back(checkpoint: Path, copy: Path) -> None:
    """Make the copy the checkpoint again; it can be called again after any interruption, and once it is done."""
    if copy.exists():
        aside = _aside(checkpoint)
        shutil.rmtree(aside, ignore_errors=True)
        if checkpoint.exists():
            checkpoint.rename(aside)
        copy.rename(checkpoint)
    _clear_after_put_back(checkpoint)


def _aside(checkpoint: Path) -> Path:
    """Where a checkpoint goes that its copy replaces."""
    return checkpoint.with_name(f"{checkpoint.name}.aside")


def _clear_after_put_back(checkpoint: Path) -> None:
    shutil.rmtree(_aside(checkpoint), ignore_errors=True)
    (checkpoint / _UNDO).unlink(missing_ok=True)  # last: it says that there is something to clear


def _sums(spark: SparkSession, checkpoint: Path) -> tuple[StoreSum, ...]:
    stores = spark.read.format("state-metadata").load(str(checkpoint)).collect()
    return tuple(_sum(spark, checkpoint, store) for store in stores)


def _sum(spark: SparkSession, checkpoint: Path, store: Any) -> StoreSum:
    rows = (
        spark.read.format("statestore")
        .option("operatorId", store.operatorId)
        .option("storeName", store.stateStoreName)
        .option("_readAllColumnFamilies", "true")
        .load(str(checkpoint))
    )
    hashed = F.xxhash64("column_family_name", "key_bytes", "value_bytes").cast("decimal(38,0)")
    count, checksum = rows.agg(F.count("*"), F.sum(hashed)).first() or (0, None)
    return StoreSum(
        operator=int(store.operatorId),
        name=str(store.operatorName),
        store=str(store.stateStoreName),
        rows=int(count),
        checksum=str(checksum or 0),
    )


def _check(before: tuple[StoreSum, ...], after: tuple[StoreSum, ...]) -> None:
    told = {(one.operator, one.store): one for one in after}
    for one in before:
        then = told.get((one.operator, one.store))
        if then is None or (then.rows, then.checksum) != (one.rows, one.checksum):
            rows = "no" if then is None else f"{then.rows:,}"
            raise StateDiffers(
                f"operator {one.operator} ({one.name}, store {one.store}) had {one.rows:,} rows of state, now {rows} "
                "or other ones: the checkpoint is as it was before"
            )


def _line(problem: BaseException) -> str:
    """The message of Spark's exception in one line; in a Java trace it is not the first line."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    telling = [line.partition("Exception: ")[2] for line in lines if "Exception: " in line]
    return (telling or lines or ["no reason given"])[0][:300]
