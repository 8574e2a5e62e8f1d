"""A peer shown one situation after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluicegate.domain import Proposal, Situation
from sluicegate.policy.policy import Policy


def driven(policy: Policy[Any], situations: Iterable[Situation]) -> list[Proposal]:
    memory, proposals = policy.start(), []
    for situation in situations:
        memory, proposal = policy.propose(memory, situation)
        proposals.append(proposal)
    return proposals
