"""State of stateful operators: time to move it on a rescale, and to restore it after a failure.

Es-Stream Eq 25 and 26, as interpreted in ``model.state_move``. While state is moved or restored its operator does not
serve; rows wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.domain.topology import require_number
from sluicegate.model.state_move import Holder, Replay, repair_s, repartition_s


@dataclass(frozen=True, slots=True)
class OperatorState:
    """Size of an operator's state, and the speeds of moving it. ``kept_rows`` caps the rows kept for replay.

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
        """Eq 25: the pause of a rescale from ``have`` to ``want`` instances; 0 if they are equal.

        >>> round(OperatorState(42e6).move_s(10, 15), 3), OperatorState(42e6).move_s(4, 4)
        (0.227, 0.0)
        """
        if have == want:
            return 0.0
        holder = Holder(self.compute_bytes_per_s, self.bandwidth_bytes_per_s)
        return repartition_s(self.size_bytes, want, [holder] * have)

    def repair_s(self, instance_arrivals_per_s: float, service_per_s: float) -> float:
        """Eq 26: how long a failed instance takes to receive and reprocess its rows since the last backup.

        >>> OperatorState(42e6).repair_s(35.0, 100.0)
        0.7
        """
        replay = Replay(instance_arrivals_per_s, self.receive_per_s, service_per_s)
        return repair_s(self.backup_interval_s, [replay], self.kept_rows)
