"""Parses options of a policy as users type them: NAME=VALUE, a number where it looks like one."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.domain.topology import LARGEST
from sluicegate.errors import BadInput


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
