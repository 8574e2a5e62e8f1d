"""The claims of a paper, one a row: the paper's value, ours, whether it holds, and what was assumed; and their page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape


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
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --rule: #d0d7de; --good: #1a7f37; --bad: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --rule: #30363d; --good: #3fb950; --bad: #ff7b72; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--rule); padding: .5rem .75rem; text-align: left; vertical-align: top; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
td.note { font-size: 13px; } div.wide { overflow-x: auto; }
"""
_SIGN = {True: '<span class="good">holds</span>', False: '<span class="bad">does not</span>', None: "&ndash;"}


def reproduction_page(paper: str, rows: Sequence[Row]) -> str:
    """The whole HTML text.

    >>> page = reproduction_page("drs", [Row("Fig 6", "10:11:1", "10:11:1", True, "rates are ours")])
    >>> "10:11:1" in page, "http" in page
    (True, False)
    """
    judged = [row.holds for row in rows if row.holds is not None]
    body = "\n".join(
        f"<tr><td>{escape(row.what)}</td><td>{escape(row.paper)}</td><td>{escape(row.ours)}</td>"
        f'<td>{_SIGN[row.holds]}</td><td class="note">{escape(row.note)}</td></tr>'
        for row in rows
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>sluicegate: {escape(paper)} reproduced</title><style>{_STYLE}</style></head>
<body><h1>{escape(paper)}, reproduced</h1>
<p>{sum(judged)} of {len(judged)} claims hold. Every number in the column &ldquo;ours&rdquo; was computed by this
run.</p>
<div class="wide"><table>
<thead><tr><th>what</th><th>paper</th><th>ours</th><th></th><th>assumed, and why</th></tr></thead>
<tbody>
{body}
</tbody></table></div></body></html>
"""
