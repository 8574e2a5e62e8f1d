"""Tracks the position of one aircraft and the distance flown, from its messages in order."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from sluicegate.lab.apps.inputs.adsb import Position, fix

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
