"""Nexmark's queries as pipelines of sluicegate: operators in queries of their own, with edges between them.

What queries.py has in one Structured Streaming query is taken apart where state ends: a join, and an aggregation of its
rows, are two queries, and the watermark passes over the edge between them. Columns and rules are those of queries.py,
so answers.py holds for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark.queries import DELAY, SCHEMAS
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream

KEY_GROUPS = 4
OUT = "out"
"""The operator, and the stream, that every query ends with."""
_STATE: dict[str, Any] = {"stateful": True, "mode": "append", "key_groups": KEY_GROUPS}


def timed(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("ts", DELAY)


def _window() -> Any:
    return F.window("ts", "10 seconds").alias("window")


def q0(made: Pipeline) -> Stream:
    return made.operator(OUT, lambda bids: bids, bid(made))


def q1(made: Pipeline) -> Stream:
    return made.operator(OUT, lambda bids: bids.withColumn("price", F.col("price") * 0.908), bid(made))


def q2(made: Pipeline) -> Stream:
    return made.operator(OUT, lambda bids: bids.where("auction % 123 = 0").select("auction", "price"), bid(made))


def q3(made: Pipeline) -> Stream:
    """A join of two filtered streams, without a watermark."""

    def in_category(auctions: DataFrame) -> DataFrame:
        return auctions.where("category = 10").select(F.col("id").alias("auction"), "seller")

    def in_states(people: DataFrame) -> DataFrame:
        return people.where("state in ('OR', 'ID', 'CA')").select("id", "name", "city", "state")

    def sellers(people: DataFrame, auctions: DataFrame) -> DataFrame:
        return people.join(auctions, F.col("id") == F.col("seller")).select("name", "city", "state", "auction")

    auctions = made.operator("in_category", in_category, auction(made))
    people = made.operator("in_states", in_states, person(made))
    return made.operator(OUT, sellers, people, auctions, **_STATE)


def q4(made: Pipeline) -> Stream:
    """A join, the highest bid of each auction, the average of these by category: three queries with state."""

    def highest(bids: DataFrame) -> DataFrame:
        return bids.groupBy("auction", "category", "opened").agg(F.max("bid.price").alias("price"))

    def averages(highest: DataFrame) -> DataFrame:
        found = highest.groupBy("category", F.window("opened", "10 seconds")).agg(F.avg("price").alias("price"))
        return found.select("category", F.col("window.start").alias("start"), "price")

    return made.operator(OUT, averages, made.operator("highest", highest, in_time(made), **_STATE), **_STATE)


def q5(made: Pipeline) -> Stream:
    """Bids by auction and sliding window, then the most of each window."""

    def counts(bids: DataFrame) -> DataFrame:
        window = F.window("ts", "10 seconds", "2 seconds")
        return timed(bids).groupBy("auction", window).agg(F.count("*").alias("bids"))

    def hottest(counts: DataFrame) -> DataFrame:
        windows = counts.groupBy("window").agg(
            F.max("bids").alias("most"), F.collect_list(F.struct("auction", "bids")).alias("auctions")
        )
        hot = F.explode(F.filter("auctions", lambda one: one["bids"] == F.col("most"))).alias("hot")
        return windows.select("window", hot).select(F.col("window.start").alias("start"), "hot.auction", "hot.bids")

    return made.operator(OUT, hottest, made.operator("counts", counts, bid(made), **_STATE), **_STATE)


def q7(made: Pipeline) -> Stream:
    """The highest price of each window, joined with the bids of that window."""

    def highest(bids: DataFrame) -> DataFrame:
        return timed(bids).groupBy(_window()).agg(F.max("price").alias("price"))

    def by_window(bids: DataFrame) -> DataFrame:
        return timed(bids).select(_window(), "price", F.struct("auction", "bidder", "ts").alias("bid"))

    def winners(bids: DataFrame, highest: DataFrame) -> DataFrame:
        return bids.join(highest, ["window", "price"]).select("bid.auction", "bid.bidder", "price", "bid.ts")

    bids = bid(made)
    prices = made.operator("highest", highest, bids, **_STATE)
    return made.operator(OUT, winners, made.operator("by_window", by_window, bids), prices, **_STATE)


def q8(made: Pipeline) -> Stream:
    """New people joined with the sellers of the same window, each once."""

    def people_by_window(people: DataFrame) -> DataFrame:
        return timed(people).select("id", "name", _window())

    def sellers_by_window(auctions: DataFrame) -> DataFrame:
        sellers = timed(auctions).select(F.col("seller").alias("id"), _window())
        return sellers.dropDuplicates(["id", "window"])

    def new_sellers(people: DataFrame, sellers: DataFrame) -> DataFrame:
        found = people.join(sellers, ["id", "window"])
        return found.select("id", "name", F.col("window.start").alias("start"))

    people = made.operator("people_by_window", people_by_window, person(made))
    sellers = made.operator("sellers_by_window", sellers_by_window, auction(made), **_STATE)
    return made.operator(OUT, new_sellers, people, sellers, **_STATE)


def q9(made: Pipeline) -> Stream:
    """A join, then the best bid of each auction."""

    def winners(bids: DataFrame) -> DataFrame:
        price, earliest = F.col("bid.price"), -F.unix_millis("bid.ts")
        best = F.max_by("bid", F.struct(price, earliest, -F.col("bid.bidder"))).alias("bid")
        found = bids.groupBy("auction", "category", "seller", "opened").agg(best)
        return found.select("auction", "category", "seller", "opened", "bid.bidder", "bid.price", "bid.ts")

    return made.operator(OUT, winners, in_time(made), **_STATE)


def q11(made: Pipeline) -> Stream:
    def sessions(bids: DataFrame) -> DataFrame:
        found = timed(bids).groupBy("bidder", F.session_window("ts", "10 seconds")).agg(F.count("*").alias("bids"))
        session = F.col("session_window")
        return found.select("bidder", session["start"].alias("start"), session["end"].alias("end"), "bids")

    return made.operator(OUT, sessions, bid(made), **_STATE)


def person(made: Pipeline) -> Stream:
    return made.source("person", SCHEMAS["person"])


def auction(made: Pipeline) -> Stream:
    return made.source("auction", SCHEMAS["auction"])


def bid(made: Pipeline) -> Stream:
    return made.source("bid", SCHEMAS["bid"])


def in_time(made: Pipeline) -> Stream:
    """Bids beside their auction, made while it was open: a join of two streams."""

    def opened(auctions: DataFrame) -> DataFrame:
        return timed(auctions).select("id", "category", "seller", F.col("ts").alias("opened"), "expires")

    def placed(bids: DataFrame) -> DataFrame:
        return timed(bids).select("auction", "bidder", "price", "ts")

    def while_open(auctions: DataFrame, bids: DataFrame) -> DataFrame:
        rule = "id = auction and ts between opened and expires and ts <= opened + interval 20 seconds"
        bid = F.struct("price", "bidder", "ts").alias("bid")
        return auctions.join(bids, F.expr(rule)).select("auction", "category", "seller", "opened", bid)

    auctions = made.operator("opened", opened, auction(made))
    bids = made.operator("placed", placed, bid(made))
    return made.operator("while_open", while_open, auctions, bids, **_STATE)


PIPELINES: dict[str, Callable[[Pipeline], Stream]] = {
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


def pipeline_of(query: str) -> Pipeline:
    """A query of Nexmark as a pipeline, with the sources that it reads and one sink."""
    made = Pipeline(f"nexmark-{query}")
    made.sink("rows", PIPELINES[query](made))
    return made
