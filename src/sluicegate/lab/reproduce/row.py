"""One row of a reproduction: the paper's value, ours, whether the claim holds, and the assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One claim: ``paper`` and ``ours`` are display texts; ``holds`` is whether the claim is reproduced.

    ``note`` states assumptions where the paper is silent, and the reason if the claim is not reproduced.
    """

    what: str
    paper: str
    ours: str
    holds: bool | None
    note: str


Progress = Callable[[str], None]
"""Called with the current step."""

Reproduction = Callable[[Progress], Iterator[Row]]
"""Yields the rows of a paper's tables and figures, computed lazily."""
