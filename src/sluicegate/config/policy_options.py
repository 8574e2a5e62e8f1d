"""Parses options of a policy as users type them: NAME=VALUE, a number where it looks like one."""

from __future__ import annotations

from collections.abc import Iterable

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
        found[name.strip()] = _value(value.strip())
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
