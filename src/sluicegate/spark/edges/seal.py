"""JSON texts that carry their own checksum, so that any change is detected.

The checksum is the last entry, computed over all of the text before it. A text without one comes from a version that
wrote none, and is accepted.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_KEY = ', "sum": "'
_DIGITS = 16


def seal_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()


def sealed(text: str) -> str:
    """The text of a JSON object with its checksum.

    >>> sealed('{"number": 3}')
    '{"number": 3, "sum": "bd63d8a8bb8e952b"}'
    """
    body = text.removesuffix("}")
    return f'{body}{_KEY}{seal_of(body)}"}}'


def unsealed(text: str) -> str:
    """The text without its checksum, if it has a valid one.

    >>> unsealed(sealed('{"number": 3}'))
    '{"number": 3}'
    """
    body, key, rest = text.rpartition(_KEY)
    return f"{body}}}" if key and rest == f'{seal_of(body)}"}}' else text


def opened(text: str) -> tuple[dict[str, Any], str]:
    """Parse a sealed text; returns its content and checksum, ``ValueError`` says what is wrong if it is damaged."""
    if not text.strip("\0 \n"):
        raise ValueError("is empty")
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ValueError("is torn or overwritten") from problem
    if not isinstance(read, dict):
        raise ValueError("is overwritten")
    body, key, rest = text.rpartition(_KEY)
    if key and rest == f'{seal_of(body)}"}}':
        return read, rest[:_DIGITS]
    if "sum" in read or "before" in read:
        raise ValueError("was changed after it was written (its checksum does not match)")
    return read, seal_of(text)
