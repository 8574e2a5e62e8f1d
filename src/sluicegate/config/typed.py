"""Parses what users type: goals, durations, rates, allocations, bounds of executors, options of a policy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from sluicegate.domain import Goal
from sluicegate.domain.topology import LARGEST
from sluicegate.errors import BadInput

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "": 1.0}
_DURATION = re.compile(r"\s*((?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([a-z]*)\s*")
_LATENCIES = {"mean": "mean_s", "p50": "p50_s", "p95": "p95_s", "p99": "p99_s", "relaxed": "relaxed_s"}
_FIELDS = {**_LATENCIES, "on_time": "on_time", "cost": "cost_per_hour"}


def duration_s(text: str) -> float:
    """Seconds in a text.

    >>> duration_s("2s"), duration_s("500ms"), duration_s("1.5min")
    (2.0, 0.5, 90.0)
    """
    match = _DURATION.fullmatch(text)
    if match is None or match[2] not in _UNITS_S or not math.isfinite(float(match[1])):
        raise BadInput(f"{text!r} is not a duration: write for example 500ms, 2s or 1.5min")
    return float(match[1]) * _UNITS_S[match[2]]


def goal_from(texts: Iterable[str]) -> Goal:
    """A goal from ``mean=2s``, ``p95=5s``, ``relaxed=1s``, ``on_time=0.995``, ``cost=1.20`` (an hour), or several.

    >>> goal_from(["mean=2s,p95=5s"]).latency_bounds
    {'mean': 2.0, 'p95': 5.0}
    """
    found: dict[str, float] = {}
    for part in (part for text in texts for part in re.split(r"[,;|]", text.strip().rstrip(",;|"))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise BadInput(f"goal {part.strip()!r}: write NAME=VALUE, for example mean=2s or p95=5s")
        if key not in _FIELDS:
            raise BadInput(f"goal {key!r} is not known: use mean, p50, p95, p99, relaxed, on_time or cost")
        if _FIELDS[key] in found:
            raise BadInput(f"goal {key!r} is there twice: keep one")
        found[_FIELDS[key]] = duration_s(value) if key in _LATENCIES else number_from(value, key)
    return Goal(**found)


def number_from(text: str, what: str) -> float:
    """A finite number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{what} {text!r} is not a number") from None
    if not math.isfinite(value) or value < 0:
        raise BadInput(f"{what} is {text.strip()}: give a finite number, 0 or more")
    return value


def pairs_from(text: str, what: str) -> dict[str, float]:
    """``a=3,b=4`` as a mapping.

    >>> pairs_from("parse=3, pi=4", "allocation")
    {'parse': 3.0, 'pi': 4.0}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise BadInput(f"{what} {part.strip()!r}: write NAME=NUMBER, several with commas between")
        if key in found:
            raise BadInput(f"{what}: {key!r} is there twice: keep one")
        found[key] = number_from(value, f"{what} of {key}")
    return found


_MOST_EXECUTORS = 100_000


def executors_from(text: str) -> tuple[int, int]:
    """The least and the most executors; what Spark is asked for must be a number it can hold.

    >>> executors_from("1:4"), executors_from("3")
    ((1, 4), (3, 3))
    """
    parts = text.strip().split(":")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise BadInput(f"executors is {text[:40]!r}: give LEAST:MOST, such as 1:4")
    if any(len(part) > len(str(_MOST_EXECUTORS)) or int(part) > _MOST_EXECUTORS for part in parts):
        raise BadInput(f"executors is {text[:40]!r}: give at most {_MOST_EXECUTORS}")
    return int(parts[0]), int(parts[-1])


def policy_options(texts: Iterable[str]) -> dict[str, object]:
    """
    >>> policy_options(["t_ra_s=30", "alpha=0.5,w=6", "general=true"])
    {'t_ra_s': 30, 'alpha': 0.5, 'w': 6, 'general': True}
    """
    found: dict[str, object] = {}
    for text in (part for one in texts for part in one.split(",")):
        name, equals, value = text.strip().partition("=")
        if not name or not equals or not value:
            raise BadInput(f"policy option {text!r}: give NAME=VALUE, such as t_ra_s=30 (see `sluicegate policies`)")
        given = _value(value.strip())
        # inf in letters means never (DRS's t_ra_s=inf); NaN is refused with what is too large
        if isinstance(given, int | float) and value.strip() != "inf" and not abs(given) <= LARGEST:
            raise BadInput(f"policy option {text.strip()[:60]!r}: give a finite number, at most {LARGEST:g}")
        found[name.strip()] = given
    return found


def _value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
