"""Removes secrets from texts that are logged, shown or stored: they may quote a user's options."""

from __future__ import annotations

import re

_KEYS = r"(?:access|api|account|keystore)[._-]?key"
_NAMES = rf"[\w.\-]*(?:secret|passw(?:or)?d|pwd|token|{_KEYS}|jaas[._-]?config|credential)[\w.\-]*"
_AFTER = re.compile(
    rf"({_NAMES}[\"']?\s*[=:]\s*)"  # password=, "token": , secret.key =
    r"(\\*\"[^\"]*\"|'[^']*'|(?:org|com)\.[\w.]+LoginModule[^;]*;?|[^\s,;&}\]\"']+)",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"(\w+://[^/\s:@]*:)[^/\s]+(@)")
_BEARER = re.compile(r"(\b(?:Bearer|Basic)\s+)[A-Za-z0-9+/=._~-]{8,}")
_HIDDEN = "***"


def redacted(text: str) -> str:
    """
    >>> redacted("cannot connect: jdbc:postgresql://db/x?user=me&password=s3cret&ssl=true")
    'cannot connect: jdbc:postgresql://db/x?user=me&password=***&ssl=true'
    >>> redacted("redis://me:s3cret@host:6379 refused"), redacted("Authorization: Bearer abcdefgh12")
    ('redis://me:***@host:6379 refused', 'Authorization: Bearer ***')
    >>> redacted("--conf spark.hadoop.fs.s3a.secret.key=s3cret"), redacted("batch 3 failed: KeyError: 'k'")
    ('--conf spark.hadoop.fs.s3a.secret.key=***', "batch 3 failed: KeyError: 'k'")
    """
    text = _AFTER.sub(rf"\1{_HIDDEN}", text)
    text = _IN_ADDRESS.sub(rf"\1{_HIDDEN}\2", text)
    return _BEARER.sub(rf"\1{_HIDDEN}", text)
