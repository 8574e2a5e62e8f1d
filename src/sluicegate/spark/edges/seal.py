"""JSON texts that carry a checksum of themselves: whatever changes in them is noticed.

The checksum is the last entry, taken over all of the text before it. A text without one was written by a version that
had none: it is taken as it is.
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
    """The text as it was before it was sealed, if it was.

    >>> unsealed(sealed('{"number": 3}'))
    '{"number": 3}'
    """
    body, key, rest = text.rpartition(_KEY)
    return f"{body}}}" if key and rest == f'{seal_of(body)}"}}' else text


def opened(text: str) -> tuple[dict[str, Any], str]:
    """What a text says, and its seal; a ``ValueError`` tells what is wrong where it is not as it was written."""
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
