"""What every planner is: a pure step from what it remembers and sees to what it proposes."""

from __future__ import annotations

from typing import Protocol, TypeVar

from sluicegate.domain import Proposal, Situation

Memory = TypeVar("Memory")


class Policy(Protocol[Memory]):
    """A planner.

    ``start`` gives the memory before the first step; ``propose`` never changes the memory it is handed, it returns
    the next one. A policy that needs none uses ``None``. Given the same memory and situation it proposes the same.
    """

    @property
    def name(self) -> str: ...

    def start(self) -> Memory: ...

    def propose(self, memory: Memory, situation: Situation) -> tuple[Memory, Proposal]: ...
