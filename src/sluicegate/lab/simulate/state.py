"""State of stateful operators: how long it takes to move when they are rescaled, and to restore when they fail.

Es-Stream Eq 25 and 26, as ``model.state_move`` reads them. While state moves or is restored its operator does
not serve; rows wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.domain.topology import require_number
from sluicegate.model.state_move import Holder, Replay, repair_s, repartition_s


@dataclass(frozen=True, slots=True)
class OperatorState:
    """The whole state of an operator and the speeds at which it moves. ``kept_rows`` bounds the rows kept for replay.

    The defaults are those of the paper's cluster: links of 100 Mbit/s, a backup every 2 seconds.
    """

    size_bytes: float
    compute_bytes_per_s: float = 1e9
    bandwidth_bytes_per_s: float = 12.5e6
    backup_interval_s: float = 2.0
    receive_per_s: float = 1e5
    kept_rows: float = 1e6

    def __post_init__(self) -> None:
        require_number(self.size_bytes, "state size in bytes")
        require_number(self.receive_per_s, "receive_per_s", above=True)

    def move_s(self, have: int, want: int) -> float:
        """Eq 25: the pause when ``have`` instances become ``want``; none where the number stays.

        >>> round(OperatorState(42e6).move_s(10, 15), 3), OperatorState(42e6).move_s(4, 4)
        (0.227, 0.0)
        """
        if have == want:
            return 0.0
        holder = Holder(self.compute_bytes_per_s, self.bandwidth_bytes_per_s)
        return repartition_s(self.size_bytes, want, [holder] * have)

    def repair_s(self, instance_arrivals_per_s: float, service_per_s: float) -> float:
        """Eq 26: how long a failed instance takes to be sent and to work off what it had since the last backup.

        >>> OperatorState(42e6).repair_s(35.0, 100.0)
        0.7
        """
        replay = Replay(instance_arrivals_per_s, self.receive_per_s, service_per_s)
        return repair_s(self.backup_interval_s, [replay], self.kept_rows)
