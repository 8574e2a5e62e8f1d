"""Renders advice as a self-contained HTML page: a summary line, load and slots over time, a table, reasons."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from sluicegate.domain.figures import promise, seconds, share
from sluicegate.lab.advise.advice import Advice
from sluicegate.lab.advise.walk import Walked
from sluicegate.report.page import Frame, line, page, pixels, round_ticks, stepped

_FRAME = Frame()
_POINTS = 600
_STYLE = """
li { color: var(--soft); margin: 2px 0; } ul { margin: 4px 0 12px; padding-left: 18px; }
.big { font-size: 17px; color: var(--ink); } .load { fill: var(--load); }
.had { stroke: var(--warm); } .ours { stroke: var(--own); } tr.own td { font-weight: 700; }
.key.had { background: var(--warm); } .key.ours { background: var(--own); } .key.area { background: var(--load); }
"""


def advice_page(found: Sequence[tuple[str, Sequence[Advice]]]) -> str:
    sections = "".join(_section(app, one) for app, advices in found for one in advices)
    return page("sluicegate advise", _STYLE, f"<h1>sluicegate advise</h1>{sections}")


def _section(app: str, one: Advice) -> str:
    mean = one.advised.slot_seconds / max(one.load.seconds, 1e-9)
    told = (
        f"{one.slots:.1f} slots were held on average, {mean:.1f} that follow the load keep {promise(one.promise)} for "
        f"{share(one.advised.kept)} of rows: {abs(one.saved):.0%} {'less' if one.saved >= 0 else 'more'}"
    )
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in one.reasons)
    return (
        f'<h2>{escape(app)} / {escape(one.name)}</h2><p class="big">{escape(told)}</p>'
        '<p><span class="key area"></span>load, rows/s</p>'
        f"{_load(one)}"
        '<p><span class="key had"></span>slots held<span class="key ours"></span>slots that follow the load</p>'
        f"{_slots(one)}{_table(one)}<ul>{reasons}</ul>"
    )


def _load(one: Advice) -> str:
    rates = np.array(one.load.per_s)
    every = max(len(rates) // _POINTS, 1)
    top = [float(rates[i : i + every].max()) for i in range(0, len(rates), every)]
    at = [i * every * one.load.step_s / 60 for i in range(len(top))]
    x, y = _FRAME.x(0.0, max(one.load.seconds / 60, 1e-6)), _FRAME.y(0.0, max(top) * 1.08 or 1.0)
    around = [(0.0, 0.0), *zip(at, top, strict=True), (at[-1], 0.0)]
    parts = [
        _FRAME.rows(y, round_ticks(y.high), lambda v: f"{v:,.0f}"),
        f'<polygon class="load" points="{pixels(x, y, around)}"/>',
    ]
    return _FRAME.picture(parts, "Load in rows per second over minutes")


def _slots(one: Advice) -> str:
    most = max(one.slots, one.advised.most)
    x, y = _FRAME.x(0.0, max(one.load.seconds / 60, 1e-6)), _FRAME.y(0.0, most * 1.15)
    steps = [(at / 60, float(n)) for at, n in one.advised.slots]
    end = one.load.seconds / 60
    parts = [
        _FRAME.rows(y, round_ticks(y.high), lambda v: f"{v:,.0f}"),
        line(x, y, [(0.0, one.slots), (end, one.slots)], "line had"),
        line(x, y, stepped([*steps, (end, steps[-1][1])]), "line ours"),
    ]
    return _FRAME.picture(parts, "Slots over minutes: held, and following the load")


def _table(one: Advice) -> str:
    heads = ("", "slot-seconds", "rows within the promise", "p95", "most slots", "moves")
    cells = f"<td>{one.slot_seconds:,.0f}</td><td>{share(one.kept)}</td><td></td><td></td><td></td>"
    had = f"<tr><td>as it ran</td>{cells}</tr>"
    rows = "".join(_row(name, walked) for name, walked in (("sluicegate", one.advised), *one.peers.items()))
    head = "".join(f"<th>{text}</th>" for text in heads)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{had}{rows}</tbody></table></div>'


def _row(name: str, walked: Walked) -> str:
    own = ' class="own"' if name == "sluicegate" else ""
    cells = (
        f"{walked.slot_seconds:,.0f}",
        share(walked.kept),
        seconds(walked.p95_s),
        str(walked.most),
        str(walked.moves),
    )
    return f"<tr{own}><td>{escape(name)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
