"""Another number of state partitions for a stopped query, by Spark's own means, checked, and with a way back.

The number of state partitions is frozen when a query first starts: ``spark.sql.shuffle.partitions`` of that day, 200 by
default. Spark 4.2 and later can repartition a checkpoint offline, by a batch of its own. Around that call stand a copy
of the checkpoint, a count and a checksum of every store's rows before and after, and the copy put back where anything
differs. The checksum adds up a hash of each row, so that it does not depend on where a row lies.
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
Told = Callable[[str], None]


class StateDiffers(SluicegateError):
    """The state after a repartition is not the state before it: what was there is put back."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class StoreSum:
    """The rows of one store of one stateful operator, and a checksum that does not depend on their order or place."""

    operator: int
    name: str
    store: str
    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A checkpoint of a stopped query: its last batch, and the settings it was written with."""

    checkpoint: Path
    batch: int
    settings: dict[str, str]

    @property
    def partitions(self) -> int | None:
        text = self.settings.get(_PARTITIONS)
        return int(text) if text is not None and text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """What was done: the stores are equal before and after, but for their number of partitions."""

    stores: tuple[StoreSum, ...]
    partitions_before: int | None
    partitions: int
    copy: Path

    @property
    def rows(self) -> int:
        return sum(store.rows for store in self.stores)


def stopped(checkpoint: Path) -> Stopped:
    """The checkpoint, if its query stopped between two batches; else refused."""
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
    lines = (checkpoint / "offsets" / str(planned)).read_text(encoding="utf-8").splitlines()
    try:
        settings = {str(key): str(value) for key, value in json.loads(lines[1])["conf"].items()}
    except (IndexError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"offsets/{planned} of {checkpoint} cannot be read: is the checkpoint whole?") from None
    store = settings.get(_PROVIDER, "")
    if "RocksDB" not in store:
        named = store.rpartition(".")[2] or "a store that it does not name"
        raise BadInput(
            f"the state of {checkpoint} is kept by {named}, and Spark repartitions RocksDB's state only: "
            "a new query on RocksDB with fewer partitions is the way"
        )
    return Stopped(checkpoint, planned, settings)


def settings_for(found: Stopped) -> dict[str, str]:
    """The state store that the checkpoint was written by; Spark's own default where it does not say."""
    return {key: value for key, value in found.settings.items() if key.startswith("spark.sql.streaming.stateStore.")}


def repartition(
    spark: SparkSession, checkpoint: Path, partitions: int, told: Told = lambda text: None
) -> Repartitioned:
    """Give the state of a stopped query another number of partitions, or leave all as it was."""
    if partitions < 1:
        raise BadInput(f"{partitions} partitions: give at least 1")
    found = stopped(checkpoint)
    if found.partitions == partitions:
        raise BadInput(f"the state of {checkpoint} has {partitions} partitions already")
    copy = copied(checkpoint, found.batch, told)
    told("counting the state before")
    try:
        before = _sums(spark, checkpoint)
    except (PySparkException, Py4JError) as problem:
        shutil.rmtree(copy)
        raise BadInput(f"the state of {checkpoint} cannot be read: {_line(problem)}") from problem
    told(f"repartitioning {sum(one.rows for one in before):,} rows of state")
    try:
        manager: Any = spark._streamingCheckpointManager
        manager.repartition(str(checkpoint), partitions, False)
        told("checking the state after")
        _check(before, _sums(spark, checkpoint))
        now = stopped(checkpoint).partitions  # of the batch that Spark added for it
        if now != partitions:
            raise StateDiffers(f"the state of {checkpoint} still has {now} partitions: put back as it was")
    except BaseException as problem:
        put_back(checkpoint, copy)
        if isinstance(problem, PySparkException | Py4JError):
            raise BadInput(f"Spark refuses: {_line(problem)}; {checkpoint} is as it was") from problem
        raise
    (copy / _UNDO).write_text(json.dumps({"batch": last_batch(checkpoint)}), encoding="utf-8")
    return Repartitioned(before, found.partitions, partitions, copy)


def undo(checkpoint: Path) -> Path:
    """Put the copy of before the last repartition back; refused once the query has run on."""
    copies = sorted(checkpoint.parent.glob(f"{checkpoint.name}.before-*"), key=lambda path: path.stat().st_mtime)
    copies = [copy for copy in copies if (copy / _UNDO).exists()]
    if not copies:
        raise BadInput(f"there is no copy of {checkpoint} from before a repartition: nothing to put back")
    batch = json.loads((copies[-1] / _UNDO).read_text(encoding="utf-8"))["batch"]
    if last_batch(checkpoint) != batch:
        raise BadInput(
            f"the query of {checkpoint} has run since (batch {last_batch(checkpoint)}): going back would run batches "
            f"twice; the copy is in {copies[-1]}"
        )
    (copies[-1] / _UNDO).unlink()
    put_back(checkpoint, copies[-1])
    return checkpoint


def copy_of(checkpoint: Path, batch: int) -> Path:
    """Where the checkpoint is copied to before a repartition that follows ``batch``."""
    return checkpoint.with_name(f"{checkpoint.name}.before-{batch}")


def copied(checkpoint: Path, batch: int, told: Told) -> Path:
    """A copy of the checkpoint; it appears whole, by a rename."""
    copy = copy_of(checkpoint, batch)
    draft = copy.with_name(f"{copy.name}.draft")
    size = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    free = shutil.disk_usage(checkpoint.parent).free
    if size * 2 > free:  # the copy, and the state written anew
        raise EnvironmentLacks(
            f"{checkpoint} holds {size / 1e9:.2f} GB, and a copy with the new state needs twice that; "
            f"{free / 1e9:.2f} GB are free: make room"
        )
    told(f"copying {size / 1e6:,.0f} MB to {copy}")
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
    """Spark writes the files of a checkpoint once and never into them again: a second name is as good as a copy."""
    try:
        os.link(origin, target)
        return target
    except OSError:
        return shutil.copy2(origin, target)


def put_back(checkpoint: Path, copy: Path) -> None:
    """The copy becomes the checkpoint again; interrupted half way, it may be called again."""
    aside = checkpoint.with_name(f"{checkpoint.name}.aside")
    shutil.rmtree(aside, ignore_errors=True)
    if checkpoint.exists():
        checkpoint.rename(aside)
    copy.rename(checkpoint)
    shutil.rmtree(aside, ignore_errors=True)


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
    """Spark's own words: where Java's trace stands, its first line is not the telling one."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    telling = [line.partition("Exception: ")[2] for line in lines if "Exception: " in line]
    return (telling or lines or ["no reason given"])[0][:300]
