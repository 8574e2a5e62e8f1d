"""Bargains at a stock exchange: offers below the recent average trade price of a share.

    trades   (stateless)  a line -> symbol, turn, price and size of a trade
    quotes   (stateless)  a line -> symbol, turn, asked price and size of an offer
    bargain  (stateful)   symbol -> its last ``WINDOW`` trades and their volume-weighted average price (VWAP); an
                          offer that asks for less is a bargain, worth (VWAP - asked) x size

Trades and offers of a symbol share one sequence number, as the messages of an exchange do: each offer is compared with
exactly the trades before it, in whatever order the two streams arrive (``lab.apps.turns``). Prices are whole cents and
the VWAP is kept as a fraction, so only the worth is rounded, down to a cent.

The bargain index of the paper on model-driven scheduling (its finance dataflow), which names the application and uses
stand-ins for its tasks: operators and numbers here are ours. Row i of either source is a formula of i; some symbols are
traded far more often than others.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import count, takewhile

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.lab.apps.turns import Event, Queue, Turns, zipf_round
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline

WINDOW = 20
_LISTED = 200
_ROUND = zipf_round([f"S{number:03d}" for number in range(_LISTED)], 2000)
_SYMBOLS = Turns(_ROUND[: len(_ROUND) // 2 * 2])
"""Event 2i is trade i, event 2i + 1 is offer i."""
_PRIME = 1_000_003
_BARGAIN = "symbol string, turn long, asked_cents long, size long, worth_cents long"
_STATE = "queue string, trades string"

Trade = list[int]
"""Cents and size."""
Bargain = tuple[str, int, int, int, int]


def trades(lines: DataFrame) -> DataFrame:
    return _events(lines, "T")


def quotes(lines: DataFrame) -> DataFrame:
    return _events(lines, "Q")


def _events(lines: DataFrame, kind: str) -> DataFrame:
    """A line such as ``T|S042|17|100.25|300|NYS|...``."""
    part = F.split("line", "[|]")
    return lines.where(part[0] == kind).select(
        part[1].alias("symbol"),
        part[2].cast("long").alias("turn"),
        (part[0] == "Q").alias("offer"),
        (part[3].cast("decimal(12,2)") * 100).cast("long").alias("cents"),
        part[4].cast("long").alias("size"),
    )


def bargain(events: DataFrame) -> DataFrame:
    return events.groupBy("symbol").applyInPandasWithState(
        found, _BARGAIN, _STATE, "update", GroupStateTimeout.NoTimeout
    )


def found(key: tuple[str], events: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """One batch of one symbol."""
    waiting, kept = state.getOption or (None, "[]")
    queue, last = Queue.of(waiting), json.loads(kept)
    arrived = [event for some in events for event in some[["turn", "offer", "cents", "size"]].values.tolist()]
    bargains = [(key[0], *one) for one in bargains_among(queue.take(arrived), last)]
    state.update((queue.text(), json.dumps(last)))
    if bargains:
        yield pd.DataFrame(bargains, columns=["symbol", "turn", "asked_cents", "size", "worth_cents"])


def bargains_among(events: Iterable[Event], last: list[Trade]) -> list[tuple[int, int, int, int]]:
    """Turn, price, size and worth of each offer below the VWAP of the ``last`` trades; updates ``last``.

    >>> bargains_among([[4, True, 900, 5], [5, False, 700, 10], [6, True, 900, 5]], [[1000, 10]])
    [(4, 900, 5, 500)]
    """
    bargains = []
    for turn, offer, cents, size in events:
        if not offer:
            last[:] = [*last, [cents, size]][-WINDOW:]
            continue
        volume = sum(traded for _, traded in last)
        below = sum(paid * traded for paid, traded in last) - cents * volume
        if below > 0:
            bargains.append((turn, cents, size, below * size // volume))
    return bargains


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("finance")
    traded = pipeline.operator("trades", trades, pipeline.source("trade_lines", "line string"))
    offered = pipeline.operator("quotes", quotes, pipeline.source("quote_lines", "line string"))
    bargains = pipeline.operator("bargain", bargain, traded | offered, stateful=True, key_groups=key_groups)
    pipeline.sink("bargains", bargains)
    return pipeline


def messages(source: str, first: int, count: int) -> list[tuple[str, Event]]:
    """Generate (symbol, event). Prices oscillate slowly around a level per symbol; offers are close to them."""
    offer = source == "quote_lines"
    at = np.arange(first, first + count, dtype=np.int64)
    owners = [_SYMBOLS.of(2 * number + offer) for number in at.tolist()]
    level = np.array([1000 + int(symbol[1:]) * 7919 % 20_000 for symbol, _ in owners], dtype=np.int64)
    mixed = (at * 2654435761 + (54_321 if offer else 12_345)) % _PRIME
    swing = np.abs(at % 6000 - 3000) * level // 300_000
    cents = level + swing + level * (mixed % 401 - 200) // 20_000 + offer * (1 + level // 200)
    sizes = 100 * (1 + mixed * mixed % _PRIME % 20)
    events = zip(owners, cents.tolist(), sizes.tolist(), strict=True)
    return [(symbol, [turn, offer, cent, size]) for (symbol, turn), cent, size in events]


def rows(source: str, first: int, count: int) -> pa.Table:
    lines = [
        f"{'Q' if offer else 'T'}|{symbol}|{turn}|{cents // 100}.{cents % 100:02d}|{size}|XNYS|{first + n:012d}"
        for n, (symbol, (turn, offer, cents, size)) in enumerate(messages(source, first, count))
    ]
    return pa.table({"line": pa.array(lines, pa.string())})


def bargains_of(fed: Mapping[str, int]) -> list[Bargain]:
    """The bargains among the first messages of both sources, computed with fractions and independently of the operator.

    The messages of a symbol end at the first one that is missing.
    """
    tapes: defaultdict[str, dict[int, Event]] = defaultdict(dict)
    for source, number in fed.items():
        for symbol, event in messages(source, 0, number):
            tapes[symbol][int(event[0])] = event
    return [bargain for symbol, tape in tapes.items() for bargain in _on_tape(symbol, tape)]


def _on_tape(symbol: str, tape: Mapping[int, Event]) -> Iterator[Bargain]:
    paid: deque[Fraction] = deque(maxlen=20)
    sizes: deque[int] = deque(maxlen=20)
    for turn in takewhile(tape.__contains__, count()):
        _, offer, cents, size = tape[turn]
        if not offer:
            paid.append(Fraction(cents) * size)
            sizes.append(size)
        elif sizes and (average := sum(paid, Fraction()) / sum(sizes)) > cents:
            yield symbol, turn, cents, size, math.floor((average - cents) * size)


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame]) -> Answer:
    bargains = sinks["bargains"].select("symbol", "turn", "asked_cents", "size", "worth_cents").collect()
    return judged(fed, [tuple(row) for row in bargains])


def judged(fed: Mapping[str, int], told: list[tuple[object, ...]]) -> Answer:
    """Check that each bargain is reported once, with its worth."""
    return compare(Counter[object](bargains_of(fed)), Counter[object](told), len(told))


APP = App(
    name="finance",
    about="offers below the volume-weighted average price of a share's last trades (two sources, stateful, in order)",
    paper="model-driven",
    build=build,
    rows=rows,
    check=check,
    calm_per_s=200.0,
    slo="mean=5s",
)
