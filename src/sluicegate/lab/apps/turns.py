"""Processes events in order within their key: they are numbered, and early ones wait until gaps have closed.

Spark does not guarantee an order of rows. So an event carries its turn, 0, 1, 2, ... within its key, like the sequence
numbers of an exchange or a device. An operator that processes turns in order gives the same answer however the rows
were shuffled and split into batches.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)
Event = list[Any]
"""One event as a list of JSON values, its turn first."""


class Turns(Generic[K]):
    """Event i belongs to the key at i modulo the number of ``keys``.

    >>> turns = Turns(["a", "b", "a"])
    >>> [turns.of(event) for event in range(6)]
    [('a', 0), ('b', 0), ('a', 1), ('a', 2), ('b', 1), ('a', 3)]
    """

    def __init__(self, keys: Sequence[K]) -> None:
        self._keys, self._a_round, self._before = keys, dict[K, int](), list[int]()
        for key in keys:
            self._before.append(self._a_round.get(key, 0))
            self._a_round[key] = self._before[-1] + 1

    def of(self, event: int) -> tuple[K, int]:
        """The key of an event, and the number of earlier events of that key."""
        rounds, at = divmod(event, len(self._keys))
        key = self._keys[at]
        return key, rounds * self._a_round[key] + self._before[at]


@dataclass(slots=True)
class Queue:
    """The events of one key: ``next`` is the next turn to process, ``early`` are events that wait for it.

    >>> queue = Queue()
    >>> queue.take([[1, "b"], [3, "d"]]), queue.take([[0, "a"]]), queue.take([[2, "c"]])
    ([], [[0, 'a'], [1, 'b']], [[2, 'c'], [3, 'd']])
    """

    next: int = 0
    early: list[Event] = field(default_factory=list)

    def take(self, arrived: Iterable[Event]) -> list[Event]:
        """The events whose turn has come, in order. A duplicate is processed twice, so that the answer shows it."""
        waiting = sorted((*self.early, *arrived), key=lambda event: int(event[0]))
        ready = 0
        while ready < len(waiting) and waiting[ready][0] <= self.next:
            self.next = max(self.next, waiting[ready][0] + 1)
            ready += 1
        self.early = waiting[ready:]
        return waiting[:ready]

    def text(self) -> str:
        """Serialise to text, since this kind of operator state supports no lists."""
        return json.dumps([self.next, self.early])

    @staticmethod
    def of(text: str | None) -> Queue:
        """
        >>> Queue.of(Queue(2, [[4, "e"]]).text())
        Queue(next=2, early=[[4, 'e']])
        """
        return Queue(*json.loads(text)) if text else Queue()


def zipf_round(keys: Sequence[K], length: int) -> list[K]:
    """A shuffled round of about ``length`` events, in which key n occurs about 1/n as often as the first.

    >>> "".join(zipf_round("abc", 11))
    'bcaabaacaba'
    """
    share = length / sum(1 / (n + 1) for n in range(len(keys)))
    sorted_out = [key for n, key in enumerate(keys) for _ in range(max(round(share / (n + 1)), 1))]
    return [sorted_out[at] for at in np.random.default_rng(len(sorted_out)).permutation(len(sorted_out))]
