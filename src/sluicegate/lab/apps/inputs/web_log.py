"""Generates lines of a web server's log, and parses page views from them.

Line i is a formula of i: visitors and pages by Zipf's law, twenty views a second, and now and then a truncated line or
a request for something other than a page. Files may have the fields as Apache writes them (``[17/May/2015:10:05:03
+0000] "GET /a?b HTTP/1.1" 200``) or without brackets and quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.errors import BadInput
from sluicegate.lab.apps.inputs.draws import ranked, uniform
from sluicegate.lab.running.given import lines_in

# address, two names, day and minute, method, path without query string; Java and Python match it alike
_LINE = r'^([^ ]+) [^ ]+ [^ ]+ \[?([^ :]+:[0-9]{2}:[0-9]{2}):[0-9]{2} [^ ]+ "?GET ([^ ?"]+)'
_NETWORK = r"^[^.:]+"
_PER_S = 20
_BEGAN_S = 1_431_857_100
_VISITORS, _PAGES = 4_000, 1_500
_SECTIONS = ("blog", "presentations", "projects", "images", "articles", "tags", "files", "about")
_VIEW, _LOOKED = re.compile(_LINE), re.compile(_NETWORK)


@dataclass(frozen=True, slots=True)
class View:
    """A view of ``page`` from ``address``; ``network`` is the first number of the address."""

    address: str
    minute: str
    page: str
    network: str


def views(lines: DataFrame) -> DataFrame:
    """The operator: maps ``line`` to the columns of ``View``; drops lines that are not views."""
    found = lines.where(F.col("line").rlike(_LINE))
    fields = (
        F.regexp_extract("line", _LINE, n + 1).alias(name) for n, name in enumerate(("address", "minute", "page"))
    )
    return found.select(*fields).withColumn("network", F.regexp_extract("address", _NETWORK, 0))


def view_in(line: str) -> View | None:
    """The same in plain Python.

    >>> view_in('10.1.2.3 - - [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 17')
    View(address='10.1.2.3', minute='17/May/2015:10:05', page='/a', network='10')
    >>> view_in("10.1.2.3 - - 17/05/2015:10:05:03 +0000 HEAD /a")
    """
    found = _VIEW.search(line)
    if found is None:
        return None
    network = _LOOKED.search(found[1])
    return View(found[1], found[2], found[3], network[0] if network else "")


def log_in(path: Path) -> list[str]:
    """The lines of a log file; a file without any view is an error."""
    lines = lines_in(path)
    if not any(view_in(line) for line in lines):
        raise BadInput(f'{path} is no web log: lines must be as 1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a ..."')
    return lines


def lines_of(first: int, count: int) -> list[str]:
    """The lines numbered ``first`` on."""
    at = np.arange(first, first + count, dtype=np.int64)
    visitors, pages = ranked(at, 1, _VISITORS).tolist(), ranked(at, 2, _PAGES).tolist()
    oddities = np.floor(100 * uniform(at, 3)).astype(np.int64).tolist()
    return [
        _line(visitor, page, _BEGAN_S + number // _PER_S, oddity)
        for number, visitor, page, oddity in zip(at.tolist(), visitors, pages, oddities, strict=True)
    ]


def _line(visitor: int, page: int, at_s: int, oddity: int) -> str:
    """Format a line; ``oddity``, 0 to 99, makes a few lines that are not views."""
    mixed = (visitor + 1) * 2654435761 % 2**32
    address = f"{40 + mixed % 23}.{mixed >> 24 & 255}.{mixed >> 16 & 255}.{mixed >> 8 & 255}"
    when = datetime.fromtimestamp(at_s, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    method = "HEAD" if oddity == 0 else "POST" if oddity == 1 else "GET"
    asked = "?flav=rss20" if 10 <= oddity < 22 else ""
    path = f"/{_SECTIONS[page % len(_SECTIONS)]}/{page}/index.html{asked}"
    line = f'{address} - - [{when}] "{method} {path} HTTP/1.1" 200 {5000 + 37 * page}'
    return line[:40] if oddity == 2 else line
