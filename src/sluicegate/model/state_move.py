"""Time to repartition an operator's state (RT) and to repair a failed instance (SR): Es-Stream Eq 25, 26.

    RT = max over old instances j of  S/(k* compute_j) + S/(k* bandwidth_j)
    SR = CI max over failed instances j of max(IR_j / receive_j, IR_j / mu_j)

Our reading: S is the operator's whole state, j runs over the old instances, compute and bandwidth are those of the
upstream that holds j's backup. IR is the rate of the rows to replay to one instance. With an infinite backup interval
CI the kept output, and with it SR, would be unbounded: ``kept_for_s`` bounds it, as a backup is forced when the kept
rows reach their limit.

Figures: the paper gives no speeds and no loads, so these are interpretations, not verifications. 42 MB over its
100 Mbit/s links take 0.227 s at 15 instances (its floor is 0.225 s, at a parallelism it does not print). Its 0.7 s of
repair at CI = 2 s follows if the failed instance was 35% busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.domain.topology import require, require_number


@dataclass(frozen=True, slots=True)
class Holder:
    """The upstream that holds the backup of one old instance: how fast it splits and sends state."""

    compute_bytes_per_s: float
    bandwidth_bytes_per_s: float

    def __post_init__(self) -> None:
        require_number(self.compute_bytes_per_s, "compute_bytes_per_s", above=True)
        require_number(self.bandwidth_bytes_per_s, "bandwidth_bytes_per_s", above=True)


@dataclass(frozen=True, slots=True)
class Replay:
    """One failed instance: its rows per second, and the rates at which it receives and processes replayed rows."""

    replayed_per_s: float
    receive_per_s: float
    service_per_s: float

    def __post_init__(self) -> None:
        require_number(self.replayed_per_s, "replayed_per_s")
        require_number(self.receive_per_s, "receive_per_s", above=True)
        require_number(self.service_per_s, "service_per_s", above=True)


def repartition_s(state_bytes: float, new_instances: int, holders: Sequence[Holder]) -> float:
    """RT, Eq 25, in seconds; 0 if no old instance holds state.

    >>> link = Holder(compute_bytes_per_s=1e9, bandwidth_bytes_per_s=12.5e6)
    >>> [round(repartition_s(42e6, k, [link] * 3), 3) for k in (3, 6, 15)]
    [1.134, 0.567, 0.227]
    """
    require_number(state_bytes, "state_bytes")
    require(new_instances >= 1, f"{new_instances} new instances: state needs at least 1 to go to")
    part = state_bytes / new_instances
    return max((part / h.compute_bytes_per_s + part / h.bandwidth_bytes_per_s for h in holders), default=0.0)


def kept_for_s(interval_s: float, rows_per_s: float, most_rows: float) -> float:
    """The most seconds of output kept: the interval, or less if ``most_rows`` are reached before its end.

    >>> kept_for_s(2.0, 100.0, most_rows=1000), kept_for_s(float("inf"), 100.0, most_rows=1000)
    (2.0, 10.0)
    """
    require(interval_s > 0, f"backup interval is {interval_s} s: it must be above 0 (inf for none)")
    require_number(rows_per_s, "rows_per_s")
    require_number(most_rows, "most_rows", above=True)
    return min(interval_s, most_rows / rows_per_s) if rows_per_s > 0 else interval_s


def repair_s(interval_s: float, failed: Sequence[Replay], most_rows: float) -> float:
    """SR, Eq 26, in seconds, with each instance's kept output bounded by ``most_rows``; 0 if nothing is replayed.

    >>> repair_s(2.0, [Replay(35.0, 1000.0, 100.0)], most_rows=1e6)
    0.7
    """
    return max((_one_repair_s(interval_s, one, most_rows) for one in failed), default=0.0)


def _one_repair_s(interval_s: float, one: Replay, most_rows: float) -> float:
    if one.replayed_per_s == 0:
        return 0.0
    kept_s = kept_for_s(interval_s, one.replayed_per_s, most_rows)
    return kept_s * max(one.replayed_per_s / one.receive_per_s, one.replayed_per_s / one.service_per_s)
