"""The claims of a paper, one a row: the paper's value, ours, whether it holds, and what was assumed; and their page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from sluicegate.report.page import page


@dataclass(frozen=True, slots=True)
class Row:
    """One claim: ``paper`` and ``ours`` are display texts; ``holds`` is whether the claim is reproduced.

    ``note`` states assumptions where the paper is silent, and the reason if the claim is not reproduced.
    """

    what: str
    paper: str
    ours: str
    holds: bool | None
    note: str


Progress = Callable[[str], None]
"""Called with the current step."""

Reproduction = Callable[[Progress], Iterator[Row]]
"""Yields the rows of a paper's tables and figures, computed lazily."""


_STYLE = """
th, td, td:first-child { text-align: left; vertical-align: top; white-space: normal; padding: 8px 12px 8px 0; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
td.note { color: var(--soft); font-size: 13px; }
"""
_SIGN = {True: '<span class="good">holds</span>', False: '<span class="bad">does not</span>', None: "&ndash;"}


def reproduction_page(paper: str, rows: Sequence[Row]) -> str:
    """The whole HTML text.

    >>> text = reproduction_page("drs", [Row("Fig 6", "10:11:1", "10:11:1", True, "rates are ours")])
    >>> "10:11:1" in text, "http" in text
    (True, False)
    """
    judged = [row.holds for row in rows if row.holds is not None]
    lines = "".join(
        f"<tr><td>{escape(row.what)}</td><td>{escape(row.paper)}</td><td>{escape(row.ours)}</td>"
        f'<td>{_SIGN[row.holds]}</td><td class="note">{escape(row.note)}</td></tr>'
        for row in rows
    )
    return page(
        f"sluicegate: {paper} reproduced",
        _STYLE,
        f"<h1>{escape(paper)}, reproduced</h1>"
        f"<p>{sum(judged)} of {len(judged)} claims hold. Every number in the column &ldquo;ours&rdquo; was computed by "
        'this run.</p><div class="wide"><table>'
        "<thead><tr><th>what</th><th>paper</th><th>ours</th><th></th><th>assumed, and why</th></tr></thead>"
        f"<tbody>{lines}</tbody></table></div>",
    )
