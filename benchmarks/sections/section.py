"""A section of docs/benchmarks.md: what was measured, what bounds it, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Line = Mapping[str, Any]


def percent(value: float) -> str:
    return f"{value:.1%}"


def ratio(value: float) -> str:
    return f"{value:.2f}"


def close(value: float) -> str:
    """A ratio whose third digit matters."""
    return f"{value:.3f}"


def seconds(value: float) -> str:
    return f"{value:.2f} s"


def millis(value: float) -> str:
    return f"{value:.2f} ms"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def times(value: float) -> str:
    return f"{value:,.0f}x"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key of a line, or a function of it, and how a number is written."""

    title: str
    of: str | Callable[[Line], Any]
    show: Callable[[float], str] = whole

    def value(self, line: Line) -> Any:
        return line.get(self.of) if isinstance(self.of, str) else self.of(line)


@dataclass(frozen=True, slots=True)
class Section:
    part: str
    title: str
    words: str
    command: str
    by: tuple[Column, ...]
    columns: tuple[Column, ...]
    verdict: Callable[[Sequence[Line]], str] | None = None
    """A sentence on what the lines show, worked out from them."""
