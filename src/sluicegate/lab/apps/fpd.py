"""Frequent pattern detection: the maximal frequent itemsets in a sliding window of transactions, with a loop.

    generate  (stateless)  a transaction that enters (+1) or leaves (-1) the window -> its subsets, each +1 or -1
    detect    (stateful)   pattern -> how often it occurs, how many patterns of one item more are frequent; a pattern
                           that becomes frequent, or ceases to be, notifies its parts of one item less: the loop
    report    (stateless)  which patterns became maximal, and which no longer are

A pattern is frequent if at least ``THRESHOLD`` transactions of the window contain it, and maximal if no larger pattern
that contains it is frequent. Checking one item more is enough, as every part of a frequent pattern is frequent. The
state of ``detect`` consists of sums, so batch boundaries and the order of rows change how often a pattern flips in
between, but never its final state.

The FPD application of DRS (two sources, one for each end of the window), with transactions of up to four words in
place of tweets. Transaction i is a formula of i. ``fpd_50000`` has the paper's window; the share of it that makes a
pattern frequent is the same. At the paper's 320 rows a second its window is full after 156 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.lab.apps.waits import later
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import OUTPUT

WINDOW = 500
THRESHOLD = 20
_ITEMS = 20
_LONGEST = 4
_FASHION = 250
"""Transactions after which the next item is the most frequent one."""
_PRIME = 1_000_003

# One schema for all streams around the detector: differences on input, current values on output.
_PATTERN = "pattern string, occurrences long, larger long, flips long"
_STATE = "occurrences long, larger long, flips long"


def generate(transactions: DataFrame) -> DataFrame:
    """Emit every subset of a transaction; a subset is a bit mask of its items."""
    split = transactions.where("items <> ''").select(F.split("items", " ").alias("items"), "change")
    subsets = F.sequence(F.lit(1), F.expr("shiftleft(1, size(items)) - 1"))
    each = split.select("items", "change", F.explode(subsets).alias("subset"))
    chosen = F.filter("items", lambda item, place: F.getbit("subset", place) == 1)
    nothing = F.lit(0).cast("long")
    return each.select(
        F.array_join(chosen, " ").alias("pattern"),
        F.col("change").alias("occurrences"),
        nothing.alias("larger"),
        nothing.alias("flips"),
    )


def detect(changes: DataFrame, threshold: int = THRESHOLD) -> DataFrame:
    return changes.groupBy("pattern").applyInPandasWithState(
        _Detector(threshold), f"{OUTPUT} string, {_PATTERN}", _STATE, "update", GroupStateTimeout.NoTimeout
    )


def report(flipped: DataFrame) -> DataFrame:
    """Report flips; patterns start as not maximal, so an odd number of flips means maximal."""
    return flipped.select("pattern", "occurrences", "flips", (F.col("flips") % 2 == 1).alias("maximal"))


@dataclass(frozen=True, slots=True)
class _Detector:
    threshold: int

    def __call__(self, key: tuple[str], changes: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return detected(key, changes, state, self.threshold)


def detected(
    key: tuple[str], changes: Iterator[pd.DataFrame], state: GroupState, threshold: int = THRESHOLD
) -> Iterator[pd.DataFrame]:
    """Process one batch of one pattern: add up, then emit a flip to the reporter and frequency changes to its parts."""
    (pattern,) = key
    occurrences, larger, flips = state.getOption or (0, 0, 0)
    was_frequent = occurrences >= threshold
    for some in changes:
        occurrences += int(some["occurrences"].sum())
        larger += int(some["larger"].sum())
    frequent = occurrences >= threshold
    told: list[tuple[str, str, int, int, int]] = []
    if frequent != was_frequent:
        told += [("back", part, 0, 1 if frequent else -1, 0) for part in parts_of(pattern)]
    if (frequent and larger == 0) != (flips % 2 == 1):
        flips += 1
        told.append(("flipped", pattern, occurrences, larger, flips))
    if (occurrences, larger, flips) == (0, 0, 0):
        state.remove()
    else:
        state.update((occurrences, larger, flips))
    if told:
        yield pd.DataFrame(told, columns=[OUTPUT, "pattern", "occurrences", "larger", "flips"])


def parts_of(pattern: str) -> list[str]:
    """The patterns with one item less.

    >>> parts_of("a b c"), parts_of("a")
    (['a b', 'a c', 'b c'], [])
    """
    items = pattern.split(" ")
    return [" ".join(part) for part in combinations(items, len(items) - 1)] if len(items) > 1 else []


def build(
    key_groups: int = 4,
    fetch_ms: float = 0.0,
    look_up_ms: float = 0.0,
    threshold: int = THRESHOLD,
    name: str | None = None,
) -> Pipeline:
    """The pipeline; with ``fetch_ms`` it sleeps per transaction, with ``look_up_ms`` per pattern."""
    pipeline = Pipeline(name or ("fpd_waiting" if fetch_ms or look_up_ms else "fpd"))
    entering = pipeline.source("entering", "items string, change long")
    leaving = pipeline.source("leaving", "items string, change long")
    back = pipeline.loop("back", _PATTERN)
    candidates = pipeline.operator("generate", later(generate, fetch_ms), entering | leaving)
    found = pipeline.splitter(
        "detect",
        later(partial(detect, threshold=threshold), look_up_ms),
        candidates | back,
        outputs=("flipped", "back"),
        stateful=True,
        key_groups=key_groups,
    )
    pipeline.close(back, found["back"])
    pipeline.sink("patterns", pipeline.operator("report", report, found["flipped"]))
    return pipeline


def transactions_of(first: int, count: int) -> list[str]:
    """The items of the transactions numbered ``first`` on; none before number 0.

    Some items are far more frequent than others, and which ones changes over time.
    """
    at = np.arange(first, first + count, dtype=np.int64)[:, None] * _LONGEST + np.arange(_LONGEST)
    mixed = (at * 2654435761 + 12345) % _PRIME
    rare = mixed * mixed // _PRIME * mixed // _PRIME * _ITEMS // _PRIME
    drawn = ((rare + at // (_LONGEST * _FASHION)) % _ITEMS).tolist()
    lengths = (2 + at[:, 0] * 7919 % _PRIME % (_LONGEST - 1)).tolist()
    return [
        " ".join(sorted({f"t{item}" for item in line[:length]})) if number >= 0 else ""
        for number, line, length in zip(range(first, first + count), drawn, lengths, strict=True)
    ]


def rows(source: str, first: int, count: int, window: int = WINDOW) -> pa.Table:
    """Row i of ``entering`` is transaction i, row i of ``leaving`` the one that it pushes out of the window."""
    behind, change = (0, 1) if source == "entering" else (window, -1)
    changes = pa.array(np.full(count, change, dtype=np.int64))
    return pa.table({"items": transactions_of(first - behind, count), "change": changes})


def maximal_in(transactions: Iterable[str], threshold: int = THRESHOLD) -> set[str]:
    """The maximal frequent patterns of a window, by definition: count all, drop those within a larger one."""
    occurrences = Counter(
        subset
        for transaction in transactions
        for size in range(1, _LONGEST + 1)
        for subset in combinations(transaction.split(), size)
    )
    frequent = [frozenset(subset) for subset, n in occurrences.items() if n >= threshold]
    return {" ".join(sorted(one)) for one in frequent if not any(one < other for other in frequent)}


def check(
    fed: Mapping[str, int], sinks: Mapping[str, DataFrame], window: int = WINDOW, threshold: int = THRESHOLD
) -> Answer:
    """Check that each pattern's flips are numbered from 1 without gaps, and that the last state is right."""
    first = max(fed["leaving"] - window, 0)
    wanted = maximal_in(transactions_of(first, fed["entering"] - first), threshold)
    told: dict[str, list[int]] = {}
    for row in sinks["patterns"].collect():
        told.setdefault(row["pattern"], []).append(int(row["flips"]))
    found = {pattern for pattern, flips in told.items() if max(flips) % 2 == 1}
    rows_out = sum(len(flips) for flips in told.values())
    answer = compare(dict.fromkeys(wanted, 1), dict.fromkeys(found, 1), rows_out)
    gaps = [pattern for pattern, flips in told.items() if sorted(flips) != list(range(1, len(flips) + 1))]
    return replace(answer, exact=False, note=f"the flips of {gaps[0]!r} have a gap, or one twice") if gaps else answer


APP = App(
    name="fpd",
    about="maximal frequent patterns in a sliding window: generate, detect (stateful, with a loop to itself), report",
    paper="DRS",
    build=build,
    rows=rows,
    check=check,
    calm_per_s=50.0,
    slo="mean=8s",
)


def app_of(window: int, name: str) -> App:
    """The application with another window, and the threshold as the same share of it."""
    threshold = THRESHOLD * window // WINDOW
    return replace(
        APP,
        name=name,
        about=f"fpd with a window of {window:,} transactions, as in the paper",
        build=partial(build, threshold=threshold, name=name),
        rows=partial(rows, window=window),
        check=partial(check, window=window, threshold=threshold),
    )


LARGE = app_of(50_000, "fpd_50000")
FETCH_MS, LOOK_UP_MS = 5.0, 0.6
WAITING = replace(
    APP,
    name="fpd_waiting",
    about=f"fpd whose transactions are fetched ({FETCH_MS:g} ms) and patterns looked up ({LOOK_UP_MS:g} ms), so that k "
    "matters where cores are few",
    build=partial(build, fetch_ms=FETCH_MS, look_up_ms=LOOK_UP_MS),
)
