"""Kinds of streaming queries, each with its answer worked out in plain Python from the rows that were fed."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

BATCHES, ROWS, KEYS = 5, 180, 30
SCHEMA = "k string, v long, d long, ts timestamp"
_T0 = dt.datetime(2026, 1, 1)


@dataclass(frozen=True, slots=True)
class Fed:
    """One row as it was fed; ``ts`` in milliseconds since the start of 2026."""

    k: str
    v: int
    d: int
    ts: int


def fed(seed: int) -> list[Fed]:
    """Rows of all batches: time goes on by ten seconds a batch, a third of them come late."""
    rng = random.Random(seed)
    return [
        Fed(
            f"k{rng.randrange(KEYS)}",
            batch * ROWS + row,
            rng.randrange(20),
            batch * 10_000 + rng.randrange(10_000) + 15_000 - (rng.randrange(5000) if rng.random() < 0.3 else 0),
        )
        for batch in range(BATCHES)
        for row in range(ROWS)
    ]


LEFT, RIGHT = fed(1), fed(2)
LATEST = max(row.ts for row in LEFT)


def write_input(folder: Path, rows: Sequence[Fed]) -> None:
    """One file a batch, in order of their times."""
    folder.mkdir(parents=True)
    for batch in range(BATCHES):
        part = rows[batch * ROWS : (batch + 1) * ROWS]
        times = pa.array([_T0 + dt.timedelta(milliseconds=r.ts) for r in part], pa.timestamp("us", tz="UTC"))
        columns: dict[str, Any] = {
            "k": [r.k for r in part],
            "v": [r.v for r in part],
            "d": [r.d for r in part],
            "ts": times,
        }
        path = folder / f"{batch:03d}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Kind:
    """A query over the folders ``left`` and ``right`` below ``base``, where it goes, and whether its rows are right."""

    name: str
    build: Callable[[Streams], DataFrame]
    mode: str
    sink: str
    exact: Callable[[Rows], bool]
    moves: bool = True
    ends: bool = True
    """By processing time Spark runs batches without rows for ever: such a query is stopped once it has all rows."""
    python_on_driver: bool = False
    """Spark starts a Python process on the driver and fails the query if that has not connected within ten seconds
    (PythonWorkerFactory.createSimpleWorker): such a kind does not run beside others on a busy machine."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Where a query reads."""

    spark: SparkSession
    base: Path

    def left(self, files: int = 1) -> DataFrame:
        return self._read("left", files)

    def right(self, files: int = 1) -> DataFrame:
        return self._read("right", files)

    def _read(self, name: str, files: int) -> DataFrame:
        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
        return stream.parquet(str(self.base / name))

    def joined(self, how: str) -> DataFrame:
        left = self.left().withWatermark("ts", "30 seconds").select("k", F.col("v").alias("a"), "ts")
        right = self.right().withWatermark("ts", "30 seconds")
        right = right.select(F.col("k").alias("k2"), F.col("v").alias("b"), F.col("ts").alias("ts2"))
        near = "k = k2 and ts2 between ts - interval 3 seconds and ts + interval 3 seconds"
        return left.join(right, F.expr(near), how)


COUNTS = Counter(row.k for row in LEFT)
SUMS: Counter[str] = Counter()
for _row in LEFT:
    SUMS[_row.k] += _row.v
IN_EACH_BATCH = sorted(
    pair for n in range(BATCHES) for pair in Counter(row.k for row in LEFT[n * ROWS : (n + 1) * ROWS]).items()
)
RUNG = sorted(Counter(row.k for row in LEFT[: 4 * ROWS]).items())
PAIRS = sorted({(row.k, row.d) for row in LEFT})
TOGETHER = sorted((a.v, b.v) for a in LEFT for b in LEFT if a.k == b.k and a.v < b.v and abs(a.ts - b.ts) <= 3000)
"""Pairs of rows of one key and about one time, of the left side alone."""
HOT = Counter("hot" if row.v % 10 else row.k for row in LEFT)
"""Nine of ten rows with one key."""
JOINED = sorted((a.v, b.v) for a in LEFT for b in RIGHT if a.k == b.k and abs(a.ts - b.ts) <= 3000)


def millis(time: dt.datetime) -> int:
    return round((time.replace(tzinfo=None) - _T0).total_seconds() * 1000)


def last(pairs: Iterator[tuple[str, int]]) -> dict[str, int]:
    """In update mode a key is told again and again: its counts and sums only grow."""
    found: dict[str, int] = {}
    for key, value in pairs:
        found[key] = max(found.get(key, -1), value)
    return found


def told(rows: Rows, column: str = "n") -> dict[str, int]:
    return last((row["k"], row[column]) for row in rows)


def windows(size: int, behind: int, of: Sequence[Fed] = LEFT, latest: int = LATEST) -> dict[tuple[str, int], int]:
    """Windows that a watermark ``behind`` the latest row has closed."""
    counts = Counter((row.k, row.ts // size * size) for row in of)
    return {(k, start): n for (k, start), n in counts.items() if start + size <= latest - behind}


def sessions(behind: int, gap_of: Callable[[Fed], int]) -> list[tuple[str, int, int, int]]:
    spans = defaultdict(list)
    for row in LEFT:
        spans[row.k].append((row.ts, row.ts + gap_of(row)))
    found = []
    for key, ones in spans.items():
        ordered = sorted(ones)
        (start, end), count = ordered[0], 1
        for since, until in ordered[1:]:
            if since < end:
                end, count = max(end, until), count + 1
            else:
                found.append((key, start, end, count))
                start, end, count = since, until, 1
        found.append((key, start, end, count))
    return sorted(one for one in found if one[2] <= LATEST - behind)


def sessions_of(rows: Rows) -> list[tuple[str, int, int, int]]:
    return sorted((row["k"], millis(row["a"]), millis(row["e"]), row["n"]) for row in rows)


def pairs_of(rows: Rows) -> list[tuple[str, int]]:
    return sorted((row["k"], row["d"]) for row in rows)


def matches(rows: Rows) -> list[tuple[int, int]]:
    return sorted((row["a"], row["b"]) for row in rows if row["b"] is not None)


def outer_is_exact(rows: Rows) -> bool:
    """All matches, and of the rows without one only such, each once."""
    alone = [row["a"] for row in rows if row["b"] is None]
    matched = {a for a, _ in JOINED}
    closed = {row.v for row in LEFT if row.v not in matched and row.ts + 3000 < LATEST - 45_000}
    return (
        matches(rows) == JOINED and len(set(alone)) == len(alone) and not set(alone) & matched and closed <= set(alone)
    )


def alone_is_exact(values: Sequence[int]) -> bool:
    """Of the right side: rows without a match, each once, and all that the watermark has closed."""
    matched = {b for _, b in JOINED}
    closed = {row.v for row in RIGHT if row.v not in matched and row.ts + 3000 < LATEST - 45_000}
    return len(set(values)) == len(values) and not set(values) & matched and closed <= set(values)


def windows_are_exact(rows: Rows) -> bool:
    return len(rows) == len(windows(10_000, 20_000)) and {
        (row["k"], millis(row["t"])): row["n"] for row in rows
    } == windows(10_000, 20_000)


def joined_windows_are_exact(rows: Rows) -> bool:
    by_value = {row.v: row for row in LEFT}
    counts = Counter((by_value[a].k, by_value[a].ts // 10_000 * 10_000) for a, _ in JOINED)
    got = {(row["k"], millis(row["t"])): row["n"] for row in rows}
    closed = {key for key in counts if key[1] <= max(start for _, start in got)} if got else set()
    return len(got) == len(rows) > 20 and got == {key: counts[key] for key in closed}


def both_windows_are_exact(rows: Rows) -> bool:
    """The windows of both sides that the earlier watermark of the two has closed, each once."""
    latest = min(LATEST, max(row.ts for row in RIGHT))
    wanted = {("l", *key): n for key, n in windows(10_000, 20_000, LEFT, latest).items()}
    wanted |= {("r", *key): n for key, n in windows(10_000, 20_000, RIGHT, latest).items()}
    got = {(row["side"], row["k"], millis(row["t"])): row["n"] for row in rows}
    return len(got) == len(rows) > 20 and got == wanted


def windows_together_are_exact(rows: Rows) -> bool:
    """Windows that both sides have: right, each once, and all but the last before the watermark."""
    latest = min(LATEST, max(row.ts for row in RIGHT))
    left, right = windows(10_000, 20_000, LEFT, latest), windows(10_000, 20_000, RIGHT, latest)
    both = {key: (left[key], right[key]) for key in left.keys() & right.keys()}
    got = {(row["k"], millis(row["t"])): (row["n"], row["m"]) for row in rows}
    closed = {key for key in both if key[1] + 20_000 <= latest - 20_000}
    return len(got) == len(rows) > 20 and closed <= got.keys() and all(both[key] == got[key] for key in got)


def totals_are_exact(rows: Rows) -> bool:
    counts = Counter(row.ts // 20_000 * 20_000 for row in LEFT)
    got = {millis(row["t"]): row["n"] for row in rows}
    return len(got) == len(rows) > 0 and all(counts[start] == n for start, n in got.items())


def counted(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    count = state.get[0] if state.exists else 0
    for frame in frames:
        count += len(frame)
    state.update((count,))
    yield pd.DataFrame({"k": [key[0]], "n": [count]})


class Counting(StatefulProcessor):
    """Counts rows by key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        before = self.count.get()
        count = before[0] if before else 0
        for frame in rows:
            count += len(frame)
        self.count.update((count,))
        yield pd.DataFrame({"k": [key[0]], "n": [count]})

    def close(self) -> None:
        pass


class Forgetting(Counting):
    """Counts rows by key, and forgets them when a batch is over."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long", 1)


class Remembering(Counting):
    """Counts rows by key, and would forget them after an hour."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long", 3_600_000)


class Ringing(Counting):
    """Counts rows by key silently, and tells once, when the watermark passes ``RINGS_MS``."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        if not self.count.exists():
            self.handle.registerTimer(round(_T0.replace(tzinfo=dt.UTC).timestamp() * 1000) + RINGS_MS)
        for _ in super().handleInputRows(key, rows, timerValues):
            pass
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        count = self.count.get()
        yield pd.DataFrame({"k": [key[0]], "n": [count[0] if count else 0]})


RINGS_MS = 24_000
"""A watermark 18 s behind passes it with the rows of the third batch: the fourth, with its own rows, tells."""


def _transformed(stream: DataFrame, processor: StatefulProcessor, time_mode: str) -> DataFrame:
    return stream.groupBy("k").transformWithStateInPandas(processor, "k string, n long", "Update", time_mode)


def _windowed(stream: DataFrame) -> DataFrame:
    grouped = stream.withWatermark("ts", "20 seconds").groupBy("k", F.window("ts", "10 seconds"))
    return grouped.agg(F.count("*").alias("n")).select("k", F.col("window.start").alias("t"), "n")


def _side(stream: DataFrame, side: str) -> DataFrame:
    return _windowed(stream).withColumn("side", F.lit(side))


def _windows_together(streams: Streams) -> DataFrame:
    def counted(stream: DataFrame, name: str) -> DataFrame:
        grouped = stream.withWatermark("ts", "20 seconds").groupBy("k", F.window("ts", "10 seconds").alias("w"))
        return grouped.agg(F.count("*").alias(name))

    both = counted(streams.left(), "n").join(counted(streams.right(), "m"), ["k", "w"])
    return both.select("k", F.col("w.start").alias("t"), "n", "m")


def _together(streams: Streams) -> DataFrame:
    first = streams.left().withWatermark("ts", "30 seconds").select("k", F.col("v").alias("a"), "ts")
    second = streams.left().withWatermark("ts", "30 seconds")
    second = second.select(F.col("k").alias("k2"), F.col("v").alias("b"), F.col("ts").alias("ts2"))
    near = "k = k2 and a < b and ts2 between ts - interval 3 seconds and ts + interval 3 seconds"
    return first.join(second, F.expr(near)).select("a", "b")


def _unlike_rates(streams: Streams) -> DataFrame:
    slow, faster, fast = streams.left(), streams.right(2), streams.left(5)
    return slow.select("k").union(faster.select("k")).union(fast.select("k"))


def _first_totals(stream: DataFrame) -> DataFrame:
    first = stream.withWatermark("ts", "10 seconds").dropDuplicatesWithinWatermark(["k", "v"])
    return _totals(first).dropDuplicates(["t"])


def _sessions(stream: DataFrame, gap: Any = "4 seconds") -> DataFrame:
    grouped = stream.withWatermark("ts", "30 seconds").groupBy("k", F.session_window("ts", gap).alias("w"))
    return grouped.count().select(
        "k", F.col("w.start").alias("a"), F.col("w.end").alias("e"), F.col("count").alias("n")
    )


def _totals(marked: DataFrame) -> DataFrame:
    inner = marked.groupBy("k", F.window("ts", "5 seconds")).count()
    outer = inner.groupBy(F.window(F.window_time("window"), "20 seconds")).agg(F.sum("count").alias("n"))
    return outer.select(F.col("window.start").alias("t"), "n")


def _joined_windows(streams: Streams) -> DataFrame:
    counted = streams.joined("inner").groupBy("k", F.window("ts", "10 seconds")).agg(F.count("*").alias("n"))
    return counted.select("k", F.col("window.start").alias("t"), "n")


def _joined_firsts(streams: Streams) -> DataFrame:
    """Four operators with state in one query: two that leave out duplicates, a join and windows."""
    left = streams.left().withWatermark("ts", "30 seconds").dropDuplicates(["v", "ts"])
    right = streams.right().withWatermark("ts", "30 seconds").dropDuplicates(["v", "ts"])
    right = right.select(F.col("k").alias("k2"), F.col("ts").alias("ts2"))
    near = "k = k2 and ts2 between ts - interval 3 seconds and ts + interval 3 seconds"
    counted = left.join(right, F.expr(near)).groupBy("k", F.window("ts", "10 seconds")).agg(F.count("*").alias("n"))
    return counted.select("k", F.col("window.start").alias("t"), "n")


def _shouted(stream: DataFrame) -> DataFrame:
    shout = F.udf(lambda text: text + "!", returnType="string")
    return stream.groupBy(shout("k").alias("k")).agg(F.count("*").alias("n")).select(shout("k").alias("k"), "n")


def _named(stream: DataFrame) -> DataFrame:
    """Counts, each with the partition that a Python function finds itself in: that of its key, at every batch."""

    def partition() -> int:
        task = TaskContext.get()
        assert task is not None
        return task.partitionId()

    # without types: Spark would take a function that has some for a pandas function
    return _counts(stream).select("k", "n", F.udf(lambda _: partition(), "long")("k").alias("p"))


def _counted_beside(streams: Streams) -> DataFrame:
    """A stage with state partitions and partitions of a file in one union."""
    return _counts(streams.left()).union(streams.right(2).select("k", F.lit(-1).cast("long").alias("n")))


def _looked_up(streams: Streams) -> DataFrame:
    table = streams.spark.createDataFrame([(f"k{i}", i) for i in range(KEYS)], "k string, j long")
    return streams.left().join(table.hint("shuffle_hash"), "k").select("v", "j")


def _counts(stream: DataFrame) -> DataFrame:
    return stream.groupBy("k").agg(F.count("*").alias("n"))


KINDS = (
    Kind("agg_update", lambda s: _counts(s.left()), "update", "memory", lambda r: told(r) == COUNTS),
    Kind(
        "agg_each_batch",
        lambda s: s.left().groupBy("k").agg(F.sum("v").alias("n")),
        "update",
        "foreachBatch",
        lambda r: told(r) == SUMS,
    ),
    Kind("agg_written", lambda s: _counts(s.left()), "update", "parquetEachBatch", lambda r: told(r) == COUNTS),
    Kind("agg_complete", lambda s: _counts(s.left()), "complete", "memory", lambda r: {x.k: x.n for x in r} == COUNTS),
    Kind(
        "agg_ordered",
        lambda s: _counts(s.left()).orderBy(F.desc("n"), "k"),
        "complete",
        "memory",
        lambda r: [(x.k, x.n) for x in r] == sorted(COUNTS.items(), key=lambda one: (-one[1], one[0])),
    ),
    Kind("windows_append", lambda s: _windowed(s.left()), "append", "parquet", windows_are_exact),
    Kind(
        "windows_by_folder",
        lambda s: _windowed(s.left()).withColumn("p", F.expr("int(substr(k, 2, 1))")),
        "append",
        "parquet/p",
        windows_are_exact,
    ),
    Kind("join", lambda s: s.joined("inner").select("a", "b"), "append", "parquet", lambda r: matches(r) == JOINED),
    Kind("join_left_outer", lambda s: s.joined("leftOuter").select("a", "b"), "append", "parquet", outer_is_exact),
    Kind(
        "dedup",
        lambda s: s.left().dropDuplicates(["k", "d"]).select("k", "d"),
        "append",
        "memory",
        lambda r: pairs_of(r) == PAIRS,
    ),
    Kind(
        "dedup_within_watermark",
        lambda s: s.left().withWatermark("ts", "10 minutes").dropDuplicatesWithinWatermark(["k", "d"]).select("k", "d"),
        "append",
        "parquet",
        lambda r: pairs_of(r) == PAIRS,
    ),
    Kind(
        "session_window",
        lambda s: _sessions(s.left()),
        "append",
        "parquet",
        lambda r: sessions_of(r) == sessions(30_000, lambda _: 4000),
    ),
    Kind(
        "session_gap_by_row",
        lambda s: _sessions(s.left(), F.expr("case when d < 10 then '2 seconds' else '6 seconds' end")),
        "append",
        "parquet",
        lambda r: sessions_of(r) == sessions(30_000, lambda row: 2000 if row.d < 10 else 6000),
    ),
    Kind("self_join", _together, "append", "parquet", lambda r: matches(r) == TOGETHER),
    Kind(
        "union_of_unlike_rates",
        lambda s: _counts(_unlike_rates(s)),
        "update",
        "memory",
        lambda r: told(r) == COUNTS + COUNTS + Counter(row.k for row in RIGHT),
    ),
    Kind(
        "union_of_windows",
        lambda s: _side(s.left(), "l").union(_side(s.right(), "r")),
        "append",
        "parquet",
        both_windows_are_exact,
    ),
    Kind("join_of_windows", _windows_together, "append", "parquet", windows_together_are_exact),
    Kind("dedup_agg_agg_dedup", lambda s: _first_totals(s.left()), "append", "parquet", totals_are_exact),
    Kind(
        "hot_key",
        lambda s: _counts(s.left().withColumn("k", F.expr("if(v % 10 = 0, k, 'hot')"))),
        "update",
        "memory",
        lambda r: told(r) == HOT,
    ),
    Kind("two_sinks_cached", lambda s: _counts(s.left()), "update", "twoSinksEachBatch", lambda r: told(r) == COUNTS),
    Kind(
        "pandas_state",
        lambda s: (
            s.left()
            .groupBy("k")
            .applyInPandasWithState(counted, "k string, n long", "n long", "update", GroupStateTimeout.NoTimeout)
        ),
        "update",
        "memory",
        lambda r: told(r) == COUNTS,
    ),
    Kind(
        "transform_with_state",
        lambda s: s.left().groupBy("k").transformWithStateInPandas(Counting(), "k string, n long", "Update", "None"),
        "update",
        "memory",
        lambda r: told(r) == COUNTS,
        python_on_driver=True,
    ),
    Kind(
        "state_that_expires",
        lambda s: _transformed(s.left(), Forgetting(), "ProcessingTime"),
        "update",
        "memory",
        lambda r: sorted((x.k, x.n) for x in r) == IN_EACH_BATCH,
        ends=False,
        python_on_driver=True,
    ),
    Kind(
        "state_that_expires_later",
        lambda s: _transformed(s.left(), Remembering(), "ProcessingTime"),
        "update",
        "memory",
        lambda r: told(r) == COUNTS,
        ends=False,
        python_on_driver=True,
    ),
    Kind(
        "timers",
        lambda s: _transformed(s.left().withWatermark("ts", "18 seconds"), Ringing(), "EventTime"),
        "update",
        "memory",
        lambda r: sorted((x.k, x.n) for x in r) == RUNG,
        python_on_driver=True,
    ),
    Kind(
        "join_full_outer",
        lambda s: s.joined("fullOuter").select("a", "b"),
        "append",
        "parquet",
        lambda r: outer_is_exact([x for x in r if x.a is not None]) and alone_is_exact([x.b for x in r if x.a is None]),
    ),
    Kind(
        "dedup_then_agg",
        lambda s: s.left().withWatermark("ts", "10 minutes").dropDuplicates(["k", "d"]).groupBy("k", "d").count(),
        "update",
        "memory",
        lambda r: pairs_of(r) == PAIRS and all(x["count"] == 1 for x in r),
    ),
    Kind("join_then_agg", _joined_windows, "append", "parquet", joined_windows_are_exact),
    Kind("dedup_join_agg", _joined_firsts, "append", "parquet", joined_windows_are_exact),
    Kind(
        "agg_then_agg",
        lambda s: _totals(s.left().withWatermark("ts", "10 seconds")),
        "append",
        "parquet",
        totals_are_exact,
    ),
    Kind(
        "limit",
        lambda s: s.left().limit(300).select("k", "v"),
        "append",
        "memory",
        lambda r: len(r) == 300 == len({x.v for x in r}),
        moves=False,
    ),
    Kind(
        "dedup_then_limit",
        lambda s: s.left().dropDuplicates(["k", "d"]).limit(100).select("k", "d"),
        "append",
        "memory",
        lambda r: len(r) == 100 == len(set(pairs_of(r))) and set(pairs_of(r)) <= set(PAIRS),
        moves=False,
    ),
    Kind(
        "python_function",
        lambda s: _shouted(s.left()),
        "update",
        "memory",
        lambda r: last((x.k[:-2], x.n) for x in r) == COUNTS,
    ),
    Kind(
        "partition_seen_by_python",
        lambda s: _named(s.left()),
        "update",
        "memory",
        lambda r: told(r) == COUNTS and len({(x.k, x.p) for x in r}) == len(COUNTS),
    ),
    Kind(
        "union_of_state_and_none",
        _counted_beside,
        "update",
        "memory",
        lambda r: (
            told([x for x in r if x.n > 0]) == COUNTS
            and sorted(x.k for x in r if x.n < 0) == sorted(x.k for x in RIGHT)
        ),
    ),
    Kind(
        "union_then_agg",
        lambda s: _counts(s.left().select("k").union(s.right().select("k"))),
        "update",
        "memory",
        lambda r: told(r) == COUNTS + Counter(row.k for row in RIGHT),
    ),
    Kind(
        "joined_to_a_table",
        _looked_up,
        "append",
        "parquet",
        lambda r: sorted((x.v, x.j) for x in r) == sorted((row.v, int(row.k[1:])) for row in LEFT),
        moves=False,
    ),
    Kind(
        "stateless_shuffle",
        lambda s: s.left().repartition("k").select("k", "v"),
        "append",
        "parquet",
        lambda r: sorted(x.v for x in r) == sorted(row.v for row in LEFT),
        moves=False,
    ),
    Kind(
        "stateless",
        lambda s: s.left().where("d < 10").select("v"),
        "append",
        "parquet",
        lambda r: sorted(x.v for x in r) == sorted(row.v for row in LEFT if row.d < 10),
        moves=False,
    ),
)
