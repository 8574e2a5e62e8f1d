"""Where the processes of a cluster listen, and how they are started there."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.spark.cluster.daemons import own_address
from sluicegate.spark.cluster.java import LOOPBACK


@dataclass(frozen=True, slots=True)
class Hosts:
    """All on loopback. A subclass puts the master and each worker on an address of its own network."""

    master: str = LOOPBACK

    def of_worker(self, number: int) -> tuple[str, tuple[str, ...]]:
        """The address of the ``number``-th worker, and the words that go before its command."""
        return own_address(number), ()
