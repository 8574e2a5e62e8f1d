"""Nexmark's queries as ordinary Structured Streaming: nothing in this file knows sluicegate.

All append their rows. What Nexmark leaves open and Spark has to know (how late a row may be, how long a join waits) is
said in a comment at each query; answers.py follows the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

DELAY = "1 second"
SCHEMAS = {
    "person": "id long, name string, city string, state string, ts timestamp, extra string",
    "auction": (
        "id long, seller long, category long, initial_bid long, reserve long, ts timestamp, expires timestamp, "
        "extra string"
    ),
    "bid": "auction long, bidder long, price long, ts timestamp, extra string",
}


@dataclass(frozen=True, slots=True)
class Nexmark:
    """The three streams, read from a folder each; a micro-batch takes one file of each that a query reads."""

    spark: SparkSession
    folder: Path

    def person(self) -> DataFrame:
        return self._read("person")

    def auction(self) -> DataFrame:
        return self._read("auction")

    def bid(self) -> DataFrame:
        return self._read("bid")

    def _read(self, kind: str) -> DataFrame:
        reader = self.spark.readStream.schema(SCHEMAS[kind]).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder / kind))


def q0(nexmark: Nexmark) -> DataFrame:
    """Pass through: every bid as it is."""
    # No watermark: nothing is kept.
    return nexmark.bid()


def q1(nexmark: Nexmark) -> DataFrame:
    """Currency conversion: every bid, its price in euros."""
    # No watermark: nothing is kept.
    return nexmark.bid().withColumn("price", F.col("price") * 0.908)


def q2(nexmark: Nexmark) -> DataFrame:
    """Selection: bids on some auctions."""
    # No watermark: nothing is kept.
    return nexmark.bid().where("auction % 123 = 0").select("auction", "price")


def q3(nexmark: Nexmark) -> DataFrame:
    """Local item suggestion: who sells in Oregon, Idaho or California in category 10."""
    # No watermark, as in Nexmark: a person may open an auction at any time later, so both sides are kept for ever.
    auctions = nexmark.auction().where("category = 10").select(F.col("id").alias("auction"), "seller")
    people = nexmark.person().where("state in ('OR', 'ID', 'CA')").select("id", "name", "city", "state")
    return people.join(auctions, F.col("id") == F.col("seller")).select("name", "city", "state", "auction")


def q4(nexmark: Nexmark) -> DataFrame:
    """Average price for a category: of the highest bids of its auctions."""
    # Nexmark's average changes with every auction; in append mode it is one row for the auctions opened in each ten
    # seconds, once the last of them can have no more bids.
    highest = _bids_in_time(nexmark).groupBy("auction", "category", "opened").agg(F.max("bid.price").alias("price"))
    by_window = highest.groupBy("category", F.window("opened", "10 seconds"))
    averages = by_window.agg(F.avg("price").alias("price"))
    return averages.select("category", F.col("window.start").alias("start"), "price")


def q5(nexmark: Nexmark) -> DataFrame:
    """Hot items: the auctions with the most bids in the last ten seconds, every two seconds; all of them on a tie."""
    # A window is told once, when the watermark has passed its end.
    bids = nexmark.bid().withWatermark("ts", DELAY)
    counts = bids.groupBy("auction", F.window("ts", "10 seconds", "2 seconds")).agg(F.count("*").alias("bids"))
    windows = counts.groupBy("window").agg(
        F.max("bids").alias("most"), F.collect_list(F.struct("auction", "bids")).alias("auctions")
    )
    hot = windows.select(
        "window", F.explode(F.filter("auctions", lambda one: one["bids"] == F.col("most"))).alias("hot")
    )
    return hot.select(F.col("window.start").alias("start"), "hot.auction", "hot.bids")


def q7(nexmark: Nexmark) -> DataFrame:
    """Highest bid: the bids with the highest price of each ten seconds; all of them on a tie."""
    # A window's highest price is known when the watermark has passed its end; bids wait in the join until then.
    window = F.window("ts", "10 seconds").alias("window")
    highest = nexmark.bid().withWatermark("ts", DELAY).groupBy(window).agg(F.max("price").alias("price"))
    bid = F.struct("auction", "bidder", "ts").alias("bid")  # a row may have one column with a watermark: `window`
    bids = nexmark.bid().withWatermark("ts", DELAY).select(window, "price", bid)
    return bids.join(highest, ["window", "price"]).select("bid.auction", "bid.bidder", "price", "bid.ts")


def q8(nexmark: Nexmark) -> DataFrame:
    """Monitor new users: people who registered and opened an auction in the same ten seconds."""
    # Both sides are kept until the watermark has passed the end of their window; a match is told at once.
    window = F.window("ts", "10 seconds").alias("window")
    people = nexmark.person().withWatermark("ts", DELAY).select("id", "name", window)
    sellers = nexmark.auction().withWatermark("ts", DELAY).select(F.col("seller").alias("id"), window)
    found = people.join(sellers.dropDuplicates(["id", "window"]), ["id", "window"])
    return found.select("id", "name", F.col("window.start").alias("start"))


def q9(nexmark: Nexmark) -> DataFrame:
    """Winning bids: of every auction the highest bid, the earliest of equal ones."""
    # An auction is told once, when the watermark has passed the longest time that it can be open.
    price, earliest = F.col("bid.price"), -F.unix_millis("bid.ts")
    best = F.max_by("bid", F.struct(price, earliest, -F.col("bid.bidder"))).alias("bid")
    winners = _bids_in_time(nexmark).groupBy("auction", "category", "seller", "opened").agg(best)
    return winners.select("auction", "category", "seller", "opened", "bid.bidder", "bid.price", "bid.ts")


def q11(nexmark: Nexmark) -> DataFrame:
    """User sessions: how many bids a bidder makes until ten seconds pass without one."""
    # A session is told once, when the watermark has passed its end: ten seconds after its last bid.
    bids = nexmark.bid().withWatermark("ts", DELAY)
    sessions = bids.groupBy("bidder", F.session_window("ts", "10 seconds")).agg(F.count("*").alias("bids"))
    session = F.col("session_window")
    return sessions.select("bidder", session["start"].alias("start"), session["end"].alias("end"), "bids")


def _bids_in_time(nexmark: Nexmark) -> DataFrame:
    """Bids beside their auction, if made while it was open; the bound that Spark can use is that of all auctions."""
    auctions = nexmark.auction().withWatermark("ts", DELAY)
    auctions = auctions.select("id", "category", "seller", F.col("ts").alias("opened"), "expires")
    bids = nexmark.bid().withWatermark("ts", DELAY).select("auction", "bidder", "price", "ts")
    while_open = "id = auction and ts between opened and expires and ts <= opened + interval 20 seconds"
    bid = F.struct("price", "bidder", "ts").alias("bid")  # a row may have one column with a watermark: `opened`
    return auctions.join(bids, F.expr(while_open)).select("auction", "category", "seller", "opened", bid)


QUERIES: dict[str, Callable[[Nexmark], DataFrame]] = {
    "q0": q0,
    "q1": q1,
    "q2": q2,
    "q3": q3,
    "q4": q4,
    "q5": q5,
    "q7": q7,
    "q8": q8,
    "q9": q9,
    "q11": q11,
}
