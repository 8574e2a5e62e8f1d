"""Reading a TOML table strictly: every error names the file, the place in it and the remedy."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from sluicegate.errors import BadInput

_LARGEST = 10**15


@dataclass(slots=True)
class Table:
    """A TOML table at a place in a file; remembers which keys were asked for, so that the rest can be refused."""

    values: Mapping[str, object]
    file: str
    place: str = ""
    asked: set[str] = field(default_factory=set)

    def fail(self, problem: str) -> NoReturn:
        raise BadInput(f"{self.file}: {self.place + ': ' if self.place else ''}{problem}")

    def missing(self, key: str, problem: str) -> NoReturn:
        """Raise for a key that is not there; if a key that is there looks like it, that one is most likely misspelt."""
        strange = [one for one in self.values if one not in self.asked]
        close = get_close_matches(key, strange, n=1)
        self.fail(f"unknown key {close[0]!r}: did you mean {key!r}?" if close else problem)

    def has(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or not value.strip():
            self.fail(f"{key} is {_shown(value)}: give a text in quotes")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(f"{key} is {_shown(value)}: give a number")
        try:
            return float(value)
        except OverflowError:
            self.fail(f"{key} is too large for a number: give a finite one")

    def count(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(f"{key} is {_shown(value)}: give a whole number")
        if abs(value) > _LARGEST:
            self.fail(f"{key} is too large: give at most {_LARGEST}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            self.fail(f"{key} is {_shown(value)}: give true or false")
        return value

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of numbers; empty where there is none."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in value
        ):
            self.fail(f"{key} is {_shown(value)}: give a list of numbers")
        try:
            return tuple(float(v) for v in value)
        except OverflowError:
            self.fail(f"{key} holds a number that is too large: give finite ones")

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where there is none."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            self.fail(f"{key} is {_shown(value)}: give a list of texts in quotes")
        return tuple(value)

    def facts(self, key: str) -> dict[str, str]:
        """A table of texts and numbers, whatever their names; empty where there is none."""
        value = self._get(key, {})
        if not isinstance(value, dict) or any(isinstance(v, dict | list) for v in value.values()):
            self.fail(f"{key} must be a table of texts and numbers: write [{key}] before them")
        return {str(name): str(v) for name, v in value.items()}

    def tables(self, key: str, *, needed: bool = True) -> Iterator[Table]:
        value = self._get(key, None if needed else [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self.fail(f"{key} must be a list of tables: write [[{key}]] before each")
        for i, entry in enumerate(value, start=1):
            name = entry.get("name")
            yield Table(entry, self.file, f"{key} {i}" + (f" ({name})" if isinstance(name, str) else ""))

    def refuse_unknown(self) -> None:
        """Raise if the table has a key that was not read: it is most likely misspelt."""
        for key in self.values:
            if key not in self.asked:
                close = get_close_matches(key, sorted(self.asked), n=1)
                remedy = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(sorted(self.asked))}"
                self.fail(f"unknown key {key!r}: {remedy}")

    def _get(self, key: str, default: object) -> object:
        self.asked.add(key)
        value = self.values.get(key, default)
        if value is None:
            self.missing(key, f"{key} is missing: add it")
        return value


def read_toml(path: Path) -> Table:
    """The file's top table."""
    shown = str(path)
    try:
        return Table(tomllib.loads(path.read_text(encoding="utf-8-sig")), shown)
    except FileNotFoundError:
        raise BadInput(f"{shown}: no such file; check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{shown}: is a folder; name a file in it") from None
    except (PermissionError, OSError) as problem:
        raise BadInput(
            f"{shown}: cannot be read ({problem.strerror or problem}); check the path and its rights"
        ) from None
    except UnicodeDecodeError:
        raise BadInput(f"{shown}: is not UTF-8 text; save it as a TOML text file") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as problem:
        raise BadInput(f"{shown}: not valid TOML: {_one_line(str(problem))}; mend that place") from None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _shown(value: object) -> str:
    return "missing" if value is None else _one_line(repr(value))[:60]
