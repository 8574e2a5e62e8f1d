"""How many rescales a load is worth: a share of those that following its recent peak would take.

How often a load moves by a machine differs tenfold between loads, so one patience is too much for some and too little
for others. With ``followed`` how often the machines for 1.2 times the largest of the last 10 loads changed from one
decision to the next, and ``moves`` how often ours did, patience is multiplied by

    e^(GAIN (moves - a)/(a + SLACK)) within LEAST and MOST,    a = SHARE x followed

SHARE is below a half, since the peers that follow the peak most closely over a window of their own move less often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

# Geometric mean of the cost against hindsight over 25 weeks of eight traces (true curve, 2 runs), and on how many of
# the eight first weeks half of the rescales of a recent peak in hindsight are kept, at 99.5% / 99.9% in cycles of ten:
#     as below          1.423  8 / 1.935  6        SHARE 0.45          1.419  7 / 1.932  4
#     no allowance      1.429  6 / 1.940  4        GAIN 6, LEAST 0.1   1.421  7 / 1.927  1  (SHARE 0.45)
# With decisions every step it costs 1.3% and keeps half on 4 and 3 instead of 3 and 0: not used there.
SHARE = 0.4
GAIN = 4.0
SLACK = 10.0
LEAST, MOST = 0.2, 2.0
_WINDOW = 10
_MARGIN = 0.2


@dataclass(frozen=True, slots=True)
class RescaleAllowance:
    """The last loads, the machines that following their peak would run, how often those changed, and how often ours."""

    loads_per_s: tuple[float, ...] = ()
    following: int | None = None
    followed: int = 0
    moves: int = 0

    def saw(self, load_per_s: float) -> RescaleAllowance:
        """One more step's load."""
        return replace(self, loads_per_s=(*self.loads_per_s[1 - _WINDOW :], load_per_s))

    @property
    def demand_per_s(self) -> float:
        """What following the recent peak would run machines for."""
        return max(self.loads_per_s, default=0.0) * (1 + _MARGIN)

    def decided(self, following: int) -> RescaleAllowance:
        """A decision comes at which ``following`` machines would be run for the recent peak."""
        changed = self.following is not None and following != self.following
        return replace(self, following=following, followed=self.followed + changed)

    def moved(self) -> RescaleAllowance:
        return replace(self, moves=self.moves + 1)

    @property
    def patience(self) -> float:
        """What patience is multiplied by.

        >>> RescaleAllowance(followed=50, moves=20).patience, RescaleAllowance(followed=50, moves=40).patience
        (1.0, 2.0)
        """
        allowed = SHARE * self.followed
        over = GAIN * (self.moves - allowed) / (allowed + SLACK)
        return math.exp(min(max(over, math.log(LEAST)), math.log(MOST)))
