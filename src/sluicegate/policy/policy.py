"""The policy interface: a pure function from memory and situation to the next memory and a proposal."""

from __future__ import annotations

from typing import Protocol, TypeVar

from sluicegate.domain import Proposal, Situation

Memory = TypeVar("Memory")


class Policy(Protocol[Memory]):
    """A scaling policy.

    ``start`` returns the initial memory; ``propose`` does not modify the memory passed in, it returns the next one. A
    policy without memory uses ``None``. ``propose`` is deterministic: same memory and situation, same proposal.
    """

    @property
    def name(self) -> str: ...

    def start(self) -> Memory: ...

    def propose(self, memory: Memory, situation: Situation) -> tuple[Memory, Proposal]: ...
