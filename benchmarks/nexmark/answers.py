"""What every query has to give, worked out in plain Python from the events; no Spark.

No event is later than the queries' delay, so none is dropped, and how the events were cut into batches does not matter.
What waits for a watermark is given as far as the watermark comes: the latest time seen, of two streams the lesser one,
minus the delay. Rows are tuples in the order of the query's columns, times in milliseconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from nexmark.events import MOST_LATE_MS, MOST_OPEN_MS, Auction, Bid, Event, Person, events

DELAY_MS = 1000
WINDOW_MS, SLIDE_MS, GAP_MS = 10_000, 2000, 10_000
assert MOST_LATE_MS < DELAY_MS

Row = tuple[object, ...]


class Answers:
    """The answers of the first ``count`` events."""

    def __init__(self, count: int) -> None:
        made: list[Event] = events(count)
        self.people = [one for one in made if isinstance(one, Person)]
        self.auctions = [one for one in made if isinstance(one, Auction)]
        self.bids = [one for one in made if isinstance(one, Bid)]

    def of(self, query: str) -> list[Row]:
        """All rows that a query has to give, sorted."""
        rows: Callable[[], Iterator[tuple[Any, ...]]] = getattr(self, query)
        return sorted(rows())

    def q0(self) -> Iterator[Row]:
        return ((bid.auction, bid.bidder, bid.price, bid.ts, bid.extra) for bid in self.bids)

    def q1(self) -> Iterator[Row]:
        return ((bid.auction, bid.bidder, bid.price * 0.908, bid.ts, bid.extra) for bid in self.bids)

    def q2(self) -> Iterator[Row]:
        return ((bid.auction, bid.price) for bid in self.bids if bid.auction % 123 == 0)

    def q3(self) -> Iterator[Row]:
        people = {one.id: one for one in self.people if one.state in ("OR", "ID", "CA")}
        for auction in self.auctions:
            if auction.category == 10 and (person := people.get(auction.seller)):
                yield person.name, person.city, person.state, auction.id

    def q4(self) -> Iterator[Row]:
        # A window of auctions is whole when the last that could be in it can have no more bids.
        prices = defaultdict(list)
        for auction, bids in self._bids_in_time():
            prices[auction.category, _window(auction.ts)].append(max(bid.price for bid in bids))
        for (category, start), found in prices.items():
            if start + WINDOW_MS <= self._auctions_done():
                yield category, start, sum(found) / len(found)

    def q5(self) -> Iterator[Row]:
        counts: dict[int, Counter[int]] = defaultdict(Counter)
        for bid in self.bids:
            newest = bid.ts // SLIDE_MS * SLIDE_MS
            for start in range(newest, newest - WINDOW_MS, -SLIDE_MS):
                counts[start][bid.auction] += 1
        for start in self._closed(counts, WINDOW_MS):
            most = max(counts[start].values())
            yield from ((start, auction, bids) for auction, bids in counts[start].items() if bids == most)

    def q7(self) -> Iterator[Row]:
        windows = defaultdict(list)
        for bid in self.bids:
            windows[_window(bid.ts)].append(bid)
        for start in self._closed(windows, WINDOW_MS):
            highest = max(bid.price for bid in windows[start])
            yield from ((b.auction, b.bidder, b.price, b.ts) for b in windows[start] if b.price == highest)

    def q8(self) -> Iterator[Row]:
        sellers = {(auction.seller, _window(auction.ts)) for auction in self.auctions}
        for person in self.people:
            if (person.id, _window(person.ts)) in sellers:
                yield person.id, person.name, _window(person.ts)

    def q9(self) -> Iterator[Row]:
        for auction, bids in self._bids_in_time():
            if auction.ts <= self._auctions_done():
                best = min(bids, key=lambda bid: (-bid.price, bid.ts, bid.bidder))
                yield auction.id, auction.category, auction.seller, auction.ts, best.bidder, best.price, best.ts

    def q11(self) -> Iterator[Row]:
        times = defaultdict(list)
        for bid in self.bids:
            times[bid.bidder].append(bid.ts)
        for bidder, stamps in times.items():
            for session in _sessions(sorted(stamps)):
                if session[-1] + GAP_MS <= self._watermark(self.bids):
                    yield bidder, session[0], session[-1] + GAP_MS, len(session)

    def _bids_in_time(self) -> Iterator[tuple[Auction, list[Bid]]]:
        """Auctions that had bids while they were open."""
        bids = defaultdict(list)
        for bid in self.bids:
            bids[bid.auction].append(bid)
        for auction in self.auctions:
            if found := [bid for bid in bids[auction.id] if auction.ts <= bid.ts <= auction.expires]:
                yield auction, found

    def _watermark(self, *streams: Sequence[Auction | Bid]) -> int:
        return min(max(one.ts for one in stream) for stream in streams) - DELAY_MS

    def _auctions_done(self) -> int:
        """Auctions opened until then can have no more bids."""
        return self._watermark(self.auctions, self.bids) - MOST_OPEN_MS - 1

    def _closed(self, starts: Iterable[int], size_ms: int) -> list[int]:
        return [start for start in starts if start + size_ms <= self._watermark(self.bids)]


def _window(ts: int) -> int:
    return ts // WINDOW_MS * WINDOW_MS


def _sessions(stamps: Sequence[int]) -> Iterator[Sequence[int]]:
    """Runs of times at most the gap apart: to Spark a bid at the very end of a session belongs to it."""
    breaks = [at for at, (before, after) in enumerate(pairwise(stamps), 1) if after - before > GAP_MS]
    for start, end in pairwise([0, *breaks, len(stamps)]):
        yield stamps[start:end]
