"""One line of a reproduction: what the paper says, what ours gives, whether it holds, and what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """``paper`` and ``ours`` are as shown to a person; ``holds`` is whether what was claimed comes out.

    ``note`` tells what was assumed where the paper is silent, and where it does not come out, why.
    """

    what: str
    paper: str
    ours: str
    holds: bool | None
    note: str


Progress = Callable[[str], None]
"""Told what is being worked on."""

Reproduction = Callable[[Progress], Iterator[Row]]
"""A paper's tables and figures, one row after the other, each computed when it is asked for."""
