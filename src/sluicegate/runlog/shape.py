"""Predicates for the shape of parsed JSON, checked once where a file is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Fits = Callable[[object], bool]
_LARGEST = 1e15
"""Larger figures of a run count as damaged: rows, seconds and bytes stay far below."""


def number(value: object) -> bool:
    """
    >>> number(2.5), number(True), number(float("inf")), number("2")
    (True, False, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, int | float) and abs(value) <= _LARGEST


def whole(value: object) -> bool:
    return isinstance(value, int) and number(value)


def text(value: object) -> bool:
    return isinstance(value, str) and (value.isascii() or _writable(value))


def _writable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON may hold
        return False
    return True


def anything(value: object) -> bool:
    return True


def maybe(fits: Fits) -> Fits:
    return lambda value: value is None or fits(value)


def each(fits: Fits) -> Fits:
    return lambda value: isinstance(value, list | tuple) and all(map(fits, value))


def by_name(fits: Fits) -> Fits:
    return lambda value: isinstance(value, dict) and all(map(text, value)) and all(map(fits, value.values()))


def entry(needed: Mapping[str, Fits], known: Mapping[str, Fits] = {}) -> Fits:
    """A mapping that has all ``needed`` keys; ``known`` ones may be missing, and others are not checked.

    >>> one = entry({"at_s": number}, {"why": text})
    >>> one({"at_s": 1.0, "more": []}), one({"why": "late"}), one({"at_s": 1.0, "why": 3})
    (True, False, False)
    """

    def fits(value: object) -> bool:
        if not isinstance(value, dict) or not needed.keys() <= value.keys():
            return False
        return all(shape(value[key]) for key, shape in (*needed.items(), *known.items()) if key in value)

    return fits
