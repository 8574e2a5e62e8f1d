"""Removes secrets from texts that are logged, shown or stored: they may quote a user's options.

An error may quote a whole row, so every pattern takes time in proportion to the text: a name is only tried at its first
letter, and taken whole (``++``). Otherwise one word of 20 KB takes 20 s.
"""

from __future__ import annotations

import re

_LETTER = r"[\w.\-]"
_KEYS = r"(?:access|account|api|encryption|keystore|private)[._-]?key"
_SECRET = rf"(?:secret|passw(?:or)?d|passphrase|pwd|token|{_KEYS}|jaas[._-]?config|credential|amz-signature|\bsig(?==))"
_NAME = rf"(?<!{_LETTER})(?={_LETTER}*{_SECRET}){_LETTER}++"
_VALUE = (
    r"(?:\\+\"[^\"]*\"|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|''|\\.)*'"  # in quotes, also escaped ones
    r"|(?:org|com)\.[\w.]+LoginModule[^;]*;?"
    r"|[\"']?[^\s,;&}\]\"']+)"
)
_AFTER = re.compile(rf"({_NAME}[\"']?\s*(?:[=:]>?|->)\s*){_VALUE}", re.IGNORECASE)  # password=, "token": , secret ->
_AFTER_FLAG = re.compile(rf"((?<!\S)(?=--){_NAME}\s+)(?!-){_VALUE}", re.IGNORECASE)  # --password x
_IN_PAIR = re.compile(rf"(\({_NAME},\s*)[^)]+", re.IGNORECASE)  # (password,x), as Spark prints options
_IN_ADDRESS = re.compile(r"((?<!\w)\w++://[^/\s:@]*:)[^/\s]+(@)")
_ORACLE = re.compile(r"(:thin:[^/\s@:]+/)[^\s@:]+(@)")
_BEARER = re.compile(r"(\b(?:Bearer|Basic)\s+)[A-Za-z0-9+/=._~-]{8,}")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
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
    text = _PRIVATE_KEY.sub(_HIDDEN, text)
    for before in (_AFTER, _AFTER_FLAG, _IN_PAIR):
        text = before.sub(rf"\1{_HIDDEN}", text)
    for around in (_IN_ADDRESS, _ORACLE):
        text = around.sub(rf"\1{_HIDDEN}\2", text)
    return _BEARER.sub(rf"\1{_HIDDEN}", text)
