"""The self-contained page of one run: what was promised and kept, what it cost, and why each move was made."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from html import escape
from statistics import fmean

from sluicegate.domain.figures import clock, rate, seconds, share
from sluicegate.report.page import Frame, page
from sluicegate.report.run_charts import (
    fleet,
    held,
    kept_share,
    lasted_s,
    load,
    mean_of,
    observed_s,
    slot_seconds_of,
    sojourn,
    thinned,
    what_if,
)
from sluicegate.report.topology_picture import topology_picture
from sluicegate.runlog.log_text import change_text
from sluicegate.runlog.plain_words import plain
from sluicegate.runlog.run_record import Line, RunRecord, measured_s

_SCRIPT = """
const looks = JSON.parse(document.getElementById("looks").textContent);
const readout = document.getElementById("readout");
const pictures = [...document.querySelectorAll("svg.time")];
function hair(svg) {
  if (!svg.hair) {
    svg.hair = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "line"));
    svg.hair.setAttribute("class", "hair");
    svg.hair.setAttribute("y1", 0);
    svg.hair.setAttribute("y2", svg.viewBox.baseVal.height - 30);
  }
  return svg.hair;
}
function show(svg, event) {
  const box = svg.getBoundingClientRect(), d = svg.dataset;
  const at = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
  const time = d.end * Math.min(Math.max((at - d.from) / (d.to - d.from), 0), 1);
  const look = looks.reduce((best, one) => Math.abs(one[0] - time) < Math.abs(best[0] - time) ? one : best);
  for (const other of pictures) {
    const o = other.dataset, x = +o.from + look[0] / o.end * (o.to - o.from);
    hair(other).setAttribute("x1", x);
    hair(other).setAttribute("x2", x);
    hair(other).style.display = "";
  }
  readout.textContent = look[1];
  readout.hidden = false;
}
function hide() {
  for (const svg of pictures) hair(svg).style.display = "none";
  readout.hidden = true;
}
for (const svg of pictures) {
  svg.addEventListener("pointermove", event => show(svg, event));
  svg.addEventListener("pointerdown", event => show(svg, event));
  svg.addEventListener("pointerleave", hide);
}
"""


def run_script(record: RunRecord) -> str:
    """The readout element, the figures as JSON, and the script that follows the pointer."""
    looks = [[round(tick["at_s"] - record.began_s, 1), _said(tick, record.began_s)] for tick in thinned(record.ticks)]
    data = json.dumps(looks).replace("<", "\\u003c")
    return (
        '<div id="readout" role="status" hidden></div>'
        f'<script type="application/json" id="looks">{data}</script><script>{_SCRIPT}</script>'
    )


def _said(tick: Line, began_s: float) -> str:
    came, backlog = tick.get("arrivals_per_s"), tick.get("backlog_rows")
    parts = [
        clock(tick["at_s"] - began_s),
        rate(came) if came is not None else "-",
        f"mean {seconds(measured_s(tick))}, p95 {seconds(measured_s(tick, 'p95'))}",
        f"{backlog:,.0f} rows wait" if backlog is not None else "",
        ", ".join(f"{name} {k}" for name, k in tick["running"].items()),
    ]
    return "  |  ".join(part for part in parts if part)


_DESK, _PHONE = Frame(), Frame(width=390, height=200, left=46, right=22)
_SHOWN = 30
"""Number of decisions shown; the rest is folded away."""

_STYLE = (
    """
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 16px 0 12px; }
.tile { background: var(--card); border-radius: 10px; padding: 12px 14px; color: var(--soft); font-size: 13px;
  line-height: 1.35; }
.tile b { display: block; font-size: 25px; line-height: 1.25; color: var(--ink); font-variant-numeric: tabular-nums; }
.tile.good b { color: var(--good); } .tile.bad b { color: var(--bad); }
ul { color: var(--soft); margin: 4px 0; padding-left: 18px; font-size: 13.5px; }
.load { fill: var(--load); } .band { fill: var(--own); fill-opacity: .16; }
.came { stroke: var(--soft); stroke-width: 1.4; }
.guess { stroke: var(--own); stroke-width: 1.3; stroke-dasharray: 2 3; }
.main { stroke: var(--own); } .thin { stroke: var(--soft); stroke-width: 1.1; }
.goal { stroke: var(--warm); stroke-dasharray: 6 4; stroke-width: 1.3; }
svg text.goal-text { fill: var(--warm); font-size: 11px; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.late { fill: var(--bad); } .move { fill: var(--ink); fill-opacity: .55; }
.stack { fill-opacity: .82; stroke: var(--paper); stroke-width: .8; }
.f-executors { stroke: var(--s0); } .f-nodes { stroke: var(--s2); stroke-dasharray: 5 3; }
.stream { fill: none; stroke: var(--soft); stroke-width: 1.5; } .end { fill: var(--soft); }
.back { stroke-dasharray: 5 4; } .box { fill: var(--card); stroke-width: 1.8; } svg text.name { font-weight: 600; }
.key.load { background: var(--load); } .key.band { background: var(--own); opacity: .4; }
.key.guess { background: none; border: 1.5px dashed var(--own); } .key.thin { background: var(--soft); }
.key.late { background: var(--bad); border-radius: 5px; }
ol { list-style: none; margin: 0; padding: 0; }
ol > li { display: flex; gap: 14px; padding: 8px 0; border-bottom: 1px solid var(--rule); }
.when { flex: 0 0 74px; color: var(--soft); font-variant-numeric: tabular-nums; }
ol b { margin-right: 12px; white-space: nowrap; } summary { cursor: pointer; padding: 8px 0; color: var(--soft); }
.hair { stroke: var(--ink); stroke-opacity: .45; }
#readout { position: fixed; left: 0; right: 0; bottom: 0; padding: 9px 20px; background: var(--ink);
  color: var(--paper); font-size: 13px; text-align: center; font-variant-numeric: tabular-nums; }
li:target { background: var(--card); } .phone { display: none; }
@media (max-width: 640px) { .desk { display: none; } .phone { display: block; }
  .tiles { grid-template-columns: 1fr 1fr; } ol > li { flex-direction: column; gap: 2px; } .when { flex: none; } }
@media print { section { break-inside: avoid; } }
"""
    + "\n".join(
        f".a{i} {{ fill: var(--s{i}); }} .b{i} {{ stroke: var(--s{i}); }} .key.k{i} {{ background: var(--s{i}); }}"
        for i in range(8)
    )
    + "\n"
)


def run_page(record: RunRecord) -> str:
    """The whole HTML text."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.began_s))
    said = f"{record.policy} decides; promised: {record.promised}; {began}, {_length(record)}"
    body = [f"<h1>{escape(record.app)} under sluicegate</h1><p>{escape(said)}</p>", _tiles(record), _notes(record)]
    body += [_section("The pipeline", _PICTURE, _both(_topology(record)))]
    if record.ticks:
        body += [_section("Load", _load_key(record), _chart(record, load))]
        body += [_section("Latency", _latency_key(record), _chart(record, sojourn))]
        body += [_section("Processors", _operator_keys(record), _chart(record, held))]
    if any(entry.get("executors") is not None for entry in record.fleet):
        body += [_section("Executors and nodes", _FLEET_KEY, _chart(record, fleet))]
    body += [_section("Every decision and why", _MARK, _decisions(record.decisions, record.began_s))]
    if record.ticks:
        body += [_section("What each operator costs", _LAW, _costs(record))]
    if record.what_if.get("points"):
        body += [_section("What another load would need", _WHAT_IF, _chart(record, what_if))]
    return page(f"sluicegate: {record.app}", _STYLE, "".join(body) + (run_script(record) if record.ticks else ""))


_PICTURE = "Each box is one streaming query; k is its processors, least to most."
_FLEET_KEY = '<i class="key k0"></i>executors <i class="key k2"></i>nodes'
_MARK = "A small triangle at the foot of the pictures marks each of them."
_LAW = "A batch of n rows on k processors lasts o + c k + n / (k &mu;), as learned from this run's batches."
_WHAT_IF = "Processors in all against rows a second, by the same laws; the dashed line is the load at the end."


def _section(title: str, said: str, body: str) -> str:
    return f"<section><h2>{title}</h2><p>{said}</p>{body}</section>"


def _both(drawn: Callable[[Frame], str]) -> str:
    """Draw once for a desk and once for a phone, where a scaled-down picture cannot be read."""
    return f'<div class="desk">{drawn(_DESK)}</div><div class="phone">{drawn(_PHONE)}</div>'


def _chart(record: RunRecord, draw: Callable[[RunRecord, Frame], str]) -> str:
    return _both(lambda frame: draw(record, frame))


def _length(record: RunRecord) -> str:
    if record.outcome.get("seconds") is not None:
        how = "ended early, by hand" if record.outcome.get("interrupted") else "in all"
        return f"{_clocked(float(record.outcome['seconds']))} {how}"
    if record.ended:
        return f"{_clocked(lasted_s(record))} in all"
    return f"{_clocked(lasted_s(record))} so far" if record.ticks else "just begun"


def _clocked(lasted_s: float) -> str:
    """A length as on a clock, with the unit of its first figure.

    >>> _clocked(95.0), _clocked(3725.0)
    ('1:35 min', '1:02:05 h')
    """
    told = clock(lasted_s)
    return f"{told} {'h' if told.count(':') > 1 else 'min'}"


def _tiles(record: RunRecord) -> str:
    kept, of_what = kept_share(record)
    tiles = [
        (share(kept), f"{of_what} with the promise kept", "" if kept is None else "good" if kept > 0.95 else "bad"),
        *(_paid(record.outcome) if record.outcome else _observed(record)),
        (f"{record.moves}", "moves of k while it ran", ""),
    ]
    inner = "".join(
        f'<div class="tile {style}"><b>{escape(value)}</b>{escape(text)}</div>' for value, text, style in tiles
    )
    return f'<div class="tiles">{inner}</div>'


def _paid(told: Line) -> list[tuple[str, str, str]]:
    """What only the end of a run tells: its price, its answer, the latency of all rows."""
    used, static = told.get("slot_seconds"), told.get("slot_seconds_static_peak")
    return [
        (share(used / static) if used and static else "-", "of static peak's slot-seconds", ""),
        (*_exact(told), _judged(told.get("answer_exact"))),
        (seconds(told.get("mean_s")), f"mean latency; p95 {seconds(told.get('p95_s'))}", ""),
    ]


def _observed(record: RunRecord) -> list[tuple[str, str, str]]:
    """The same of a run without an outcome, such as an attached application, from its observations."""
    means = [mean_s for tick in record.ticks if (mean_s := measured_s(tick)) is not None]
    lasted_s = observed_s(record)
    held = f"{sum(slot_seconds_of(record).values()) / lasted_s:.1f}" if lasted_s else "-"
    return [(held, "processors on average", ""), (seconds(fmean(means) if means else None), "mean latency", "")]


def _exact(told: Line) -> tuple[str, str]:
    rows = f"of {told['rows_in']:,} rows" if told.get("rows_in") is not None else "rows"
    if told.get("answer_exact") is None:
        return "-", f"the answer {rows} was not checked"
    return (
        "exact" if told["answer_exact"] else "WRONG",
        f"answer {rows}: {told.get('lost')} lost, {told.get('duplicated')} doubled",
    )


def _judged(exact: object) -> str:
    return "" if exact is None else "good" if exact else "bad"


def _notes(record: RunRecord) -> str:
    told = [*record.outcome.get("queries", ()), *record.outcome.get("restarts", ())]
    return "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in told) + "</ul>" if told else ""


def _topology(record: RunRecord) -> Callable[[Frame], str]:
    told = {name: _k_range(record, name) for name in record.operators}
    return lambda frame: topology_picture(record.pipeline, told, frame.width)


def _k_range(record: RunRecord, name: str) -> str:
    ks = [k for tick in record.ticks if (k := tick["running"].get(name)) is not None] or [0]
    return f"k = {ks[0]}" if min(ks) == max(ks) else f"k = {min(ks)} to {max(ks)}"


def _load_key(record: RunRecord) -> str:
    band = '<i class="key band"></i>forecast made two ticks before, with its interval'
    return f'<i class="key load"></i>rows a second that came {band if _forecasts(record) else ""}'


def _forecasts(record: RunRecord) -> bool:
    return any(tick.get("forecast") for tick in record.ticks)


def _latency_key(record: RunRecord) -> str:
    guess = any(tick.get("predicted_mean_s") is not None for tick in record.ticks)
    told = '<i class="key k0"></i>mean, source to sink <i class="key thin"></i>p95'
    told += ' <i class="key guess"></i>predicted mean' if guess else ""
    return told + ' <i class="key late"></i>promise broken'


def _operator_keys(record: RunRecord) -> str:
    return " ".join(f'<i class="key k{i % 8}"></i>{escape(name)}' for i, name in enumerate(record.operators))


def _decisions(decisions: Sequence[Line], began_s: float) -> str:
    if not decisions:
        return "<p>Nothing was moved.</p>"
    items = [_decision(decision, began_s) for decision in decisions]
    folded = items[_SHOWN:]
    more = f"<details><summary>{len(folded)} more</summary><ol>{''.join(folded)}</ol></details>" if folded else ""
    return f'<ol class="decisions">{"".join(items[:_SHOWN])}</ol>{more}'


def _decision(decision: Line, began_s: float) -> str:
    moves = "".join(f"<b>{escape(r['operator'])} {r['have']} &rarr; {r['want']}</b> " for r in decision["rescales"])
    others = decision.get("changes") or ()
    moves += "".join(f"<b>{escape(change_text(c)).replace('-&gt;', '&rarr;')}</b> " for c in others)
    told = (*decision["reasons"], *(f"{c['what']}: {c['reason']}" for c in others))
    why = "".join(f"<li>{escape(plain(reason))}</li>" for reason in told)
    number = int(decision["number"])
    return (
        f'<li id="d{number}"><span class="when">{number} &middot; {clock(decision["at_s"] - began_s)}</span>'
        f"<div>{moves}<ul>{why}</ul></div></li>"
    )


def _costs(record: RunRecord) -> str:
    slots, all_slots = slot_seconds_of(record), sum(slot_seconds_of(record).values()) or 1.0
    heads = ("operator", "o", "c", "&mu; of one", "busy, mean", "rows/s, mean", "slot-seconds", "share")
    rows = "".join(_cost(record, name, slots[name], slots[name] / all_slots) for name in record.operators)
    head = "".join(f"<th>{text}</th>" for text in heads)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cost(record: RunRecord, name: str, slot_seconds: float, part: float) -> str:
    told = (record.last.get("operators") or {}).get(name) or {}
    batch, came = told.get("batch") or {}, mean_of(record, name, "arrivals_per_s")
    served = told.get("service_per_s")
    cells = (
        escape(name),
        seconds(batch.get("overhead_s")),
        seconds(batch.get("per_task_s")),
        rate(served) if served is not None else "-",
        share(mean_of(record, name, "utilisation")),
        f"{came:,.0f}" if came is not None else "-",
        f"{slot_seconds:,.0f}",
        share(part),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
