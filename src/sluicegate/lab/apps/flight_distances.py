"""Computes from ADS-B messages how far each aircraft has flown, and which ones come near each other.

    decode  (stateless)  an ADS-B message -> latitude and longitude within a zone, if it is intact and has them
    fly     (stateful)   aircraft -> its position from an even and an odd message within ten seconds of each other, and
                         the distance flown; processes messages in order of turn (``sluicegate.lab.apps.turns``)
    near    (stateful)   each ``EVERY_S`` seconds -> the pairs of aircraft less than ``NEAR_M`` apart, by the last
                         position of each in that time

The output of ``fly`` depends only on the order of an aircraft's messages. The output of ``near`` is a log for each
interval; the number of positions only grows, so the row with the most is the last. Positions are whole millionths of a
degree and distances whole metres.

After Rolling Flight Distances of the paper on uncertain VMs, which reports every five seconds the pairs below a
threshold in a window of a minute, by predicted positions; here by past positions, and the window is the five seconds.
The distance flown is ours. Generated messages come from ``lab.apps.inputs.flights``; with ``--input`` a CSV file with
columns ``unix_ts``, ``adsb_hex`` and ``icao24``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.lab.apps.flight_answer import Fix, all_fixes, all_pairs
from sluicegate.lab.apps.inputs import flights
from sluicegate.lab.apps.inputs.flights import Heard, Position, fix, position
from sluicegate.lab.apps.judging import Grown, judged_results
from sluicegate.lab.apps.turns import Event, Queue
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.lab.running.given import Records
from sluicegate.spark.pipeline.declaration import Pipeline

PAIR_S = 10
"""Longest time between an even and an odd message that are combined; later ones may be of different zones."""
GONE_S = 300
"""After this long without messages a track restarts, since the distance flown meanwhile is unknown."""
_EARTH_M = 6_371_008.8

Place = tuple[int, int]
"""Millionths of a degree of latitude and longitude."""


def metres_between(one: Place, other: Place) -> float:
    """Great-circle distance.

    >>> round(metres_between((52_000_000, 4_000_000), (53_000_000, 4_000_000)))
    111195
    """
    lat, lon, to_lat, to_lon = (math.radians(micro / 1e6) for micro in (*one, *other))
    half = math.sin((to_lat - lat) / 2) ** 2 + math.cos(lat) * math.cos(to_lat) * math.sin((to_lon - lon) / 2) ** 2
    return 2 * _EARTH_M * math.asin(math.sqrt(half))


@dataclass(slots=True)
class Track:
    """``heard`` holds the last even and the last odd message as time, latitude, longitude; ``at`` the last position."""

    heard: dict[str, tuple[int, int, int]]
    at: tuple[int, int, int] | None = None
    flown_m: int = 0

    def moved(self, at_s: int, told: Position) -> Place | None:
        """Process one more message; return the position if it can be determined."""
        self.heard["odd" if told.odd else "even"] = at_s, told.lat, told.lon
        place = self._place(told.odd)
        if place is None:
            return None
        if self.at is not None and at_s - self.at[0] <= GONE_S:
            self.flown_m += round(metres_between((self.at[1], self.at[2]), place))
        self.at = (at_s, *place)
        return place

    def _place(self, odd_is_later: bool) -> Place | None:
        if len(self.heard) < 2:
            return None
        (even_s, *even), (odd_s, *odd) = self.heard["even"], self.heard["odd"]
        found = (
            fix(Position(False, *even), Position(True, *odd), odd_is_later) if abs(even_s - odd_s) <= PAIR_S else None
        )
        return (round(found[0] * 1e6), round(found[1] * 1e6)) if found else None

    def text(self) -> str:
        """Serialise to text, since this kind of operator state supports no lists."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(text: str | None) -> Track:
        return Track(**json.loads(text)) if text else Track({})


EVERY_S = 5
NEAR_M = 10_000
_HEARD = "at_s long, message string, icao24 string, turn long"
_DECODED = "icao24 string, turn long, at_s long, odd int, lat int, lon int"
_NO_POSITION = (-1, -1, -1)
_FIX = ("icao24", "turn", "at_s", "micro_lat", "micro_lon", "flown_m")
_FIXES = "icao24 string, turn long, at_s long, micro_lat long, micro_lon long, flown_m long"
_PAIRS = "since_s long, positions long, pairs string"

Last = dict[str, list[int]]
"""Aircraft -> number of its positions in the interval, the turn of the last one, and that position."""


def decode(heard: DataFrame) -> DataFrame:
    return heard.mapInArrow(_decoded, _DECODED)


def _decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode messages; those without a position are kept, since ``fly`` must see every turn."""
    for batch in batches:
        told = [within_zone(str(message)) for message in batch.column("message").to_pylist()]
        parts = [pa.array(part, pa.int32()) for part in zip(*told, strict=True)]
        known = [batch.column(name) for name in ("icao24", "turn", "at_s")]
        yield pa.RecordBatch.from_arrays([*known, *parts], names=["icao24", "turn", "at_s", "odd", "lat", "lon"])


def within_zone(message: str) -> tuple[int, int, int]:
    found = position(message)
    return (int(found.odd), found.lat, found.lon) if found else _NO_POSITION


def fly(decoded: DataFrame) -> DataFrame:
    return decoded.groupBy("icao24").applyInPandasWithState(
        flown, _FIXES, "queue string, track string", "update", GroupStateTimeout.NoTimeout
    )


def flown(key: tuple[str], decoded: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Process one batch of one aircraft."""
    waiting, kept = state.getOption or (None, None)
    queue, track = Queue.of(waiting), Track.of(kept)
    arrived = [event for some in decoded for event in some[["turn", "at_s", "odd", "lat", "lon"]].to_numpy().tolist()]
    fixes = list(fixes_of(key[0], queue.take(arrived), track))
    state.update((queue.text(), track.text()))
    if fixes:
        yield pd.DataFrame(fixes, columns=list(_FIX))


def fixes_of(icao24: str, events: Iterable[Event], track: Track) -> Iterator[Fix]:
    for turn, at_s, odd, lat, lon in events:
        place = track.moved(at_s, Position(bool(odd), lat, lon)) if odd >= 0 else None
        if place is not None:
            yield (icao24, turn, at_s, *place, track.flown_m)


def near(fixes: DataFrame) -> DataFrame:
    timed = fixes.selectExpr(f"at_s div {EVERY_S} * {EVERY_S} as since_s", "icao24", "turn", "micro_lat", "micro_lon")
    return timed.groupBy("since_s").applyInPandasWithState(
        neared, _PAIRS, "last string", "update", GroupStateTimeout.NoTimeout
    )


def neared(key: tuple[int], fixes: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Process one batch of one interval."""
    last: Last = json.loads((state.getOption or ("{}",))[0])
    for some in fixes:
        for icao24, *told in some[["icao24", "turn", "micro_lat", "micro_lon"]].to_numpy().tolist():
            seen_at(last, icao24, told)
    state.update((json.dumps(last),))
    yield pd.DataFrame([(key[0], *pairs_of(last))], columns=["since_s", "positions", "pairs"])


def seen_at(last: Last, icao24: str, told: list[int]) -> None:
    """Record a position; ``told`` is its turn and place, and the place with the highest turn is kept."""
    count, *latest = last.get(icao24, [0, -1, 0, 0])
    last[icao24] = [count + 1, *max(latest, told)]


def pairs_of(last: Last) -> tuple[int, str]:
    """The number of positions so far, and the pairs of aircraft near each other.

    >>> pairs_of({"A": [2, 7, 52_000_000, 4_000_000], "B": [1, 3, 52_050_000, 4_000_000], "C": [1, 3, 55_000_000, 0]})
    (4, 'A-B')
    """
    places: dict[str, Place] = {icao24: (lat, lon) for icao24, (_, _, lat, lon) in sorted(last.items())}
    pairs = [f"{a}-{b}" for a, b in combinations(places, 2) if metres_between(places[a], places[b]) < NEAR_M]
    return sum(count for count, *_ in last.values()), " ".join(pairs)


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("flight_distances")
    decoded = pipeline.operator("decode", decode, pipeline.source("heard", _HEARD))
    fixes = pipeline.operator("fly", fly, decoded, stateful=True, key_groups=key_groups)
    pipeline.sink("flown", fixes)
    pipeline.sink("near", pipeline.operator("near", near, fixes, stateful=True, key_groups=key_groups))
    return pipeline


def rows(source: str, first: int, count: int, messages: Records[Heard] = flights.messages) -> pa.Table:
    heard = messages(first, count)
    numbers = {name: pa.array([getattr(one, name) for one in heard], pa.int64()) for name in ("at_s", "turn")}
    texts = {name: pa.array([getattr(one, name) for one in heard], pa.string()) for name in ("message", "icao24")}
    return pa.table({**numbers, **texts}).select(["at_s", "message", "icao24", "turn"])


def check(
    fed: Mapping[str, int], sinks: Mapping[str, DataFrame], messages: Records[Heard] = flights.messages
) -> Answer:
    fixes = [tuple(row) for row in sinks["flown"].select(*_FIX).collect()]
    pairs: list[Grown] = [(row["since_s"], row["positions"], row["pairs"]) for row in sinks["near"].collect()]
    return judged_both(messages(0, fed["heard"]), fixes, pairs)


def judged_both(messages: Iterable[Heard], fixes: list[tuple[object, ...]], pairs: list[Grown]) -> Answer:
    """Check each position once, with the distance flown until then, and the pairs of each interval."""
    wanted = all_fixes(messages)
    answer = compare(Counter[object](wanted), Counter[object](fixes), len(fixes))
    return answer if not answer.exact else judged_results(all_pairs(wanted, EVERY_S, NEAR_M), pairs)


def app_of(messages: Records[Heard]) -> App:
    return App(
        name="flight_distances",
        about="distance flown by each aircraft, and pairs that come near, from ADS-B messages (two stateful, in order)",
        paper="uncertainty-aware VMs",
        build=build,
        rows=partial(rows, messages=messages),
        check=partial(check, messages=messages),
        calm_per_s=150.0,
        slo="mean=6s",
        given=lambda path: app_of(flights.heard_in(path)),
    )


APP = app_of(flights.messages)
