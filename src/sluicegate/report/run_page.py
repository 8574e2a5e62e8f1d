"""One run as a page that needs nothing else: what was promised and kept, what it cost, and why each move was made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from html import escape

from sluicegate.report.figures import clock, promise, rate, seconds, share
from sluicegate.report.page import page
from sluicegate.report.plain_words import plain
from sluicegate.report.run_charts import fleet, held, load, sojourn, what_if
from sluicegate.report.run_figures import kept_share, lasted_s, mean_of, slot_seconds_of
from sluicegate.report.run_script import run_script
from sluicegate.report.run_style import RUN_STYLE
from sluicegate.report.svg import Frame
from sluicegate.report.topology_picture import topology_picture
from sluicegate.runlog.run_record import Line, RunRecord

_DESK, _PHONE = Frame(), Frame(width=390, height=200, left=46, right=22)
_SHOWN = 30
"""Decisions beyond these are folded away."""


def run_page(record: RunRecord) -> str:
    """The whole HTML text."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.began_s))
    said = f"{record.policy} decides; promised: {promise(record.bounds)}; {began}, {_length(record)}"
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
    return page(f"sluicegate: {record.app}", RUN_STYLE, "".join(body) + (run_script(record) if record.ticks else ""))


_PICTURE = "Each box is one streaming query; k is its processors, least to most."
_FLEET_KEY = '<i class="key k0"></i>executors <i class="key k2"></i>nodes'
_MARK = "A small triangle at the foot of the pictures marks each of them."
_LAW = "A batch of n rows on k processors lasts o + c k + n / (k &mu;), as learned from this run's batches."
_WHAT_IF = "Processors in all against rows a second, by the same laws; the dashed line is the load at the end."


def _section(title: str, said: str, body: str) -> str:
    return f"<section><h2>{title}</h2><p>{said}</p>{body}</section>"


def _both(drawn: Callable[[Frame], str]) -> str:
    """Once for a desk and once for a phone, where a picture that is only made smaller cannot be read."""
    return f'<div class="desk">{drawn(_DESK)}</div><div class="phone">{drawn(_PHONE)}</div>'


def _chart(record: RunRecord, draw: Callable[[RunRecord, Frame], str]) -> str:
    return _both(lambda frame: draw(record, frame))


def _length(record: RunRecord) -> str:
    if record.outcome.get("seconds") is not None:
        how = "ended early, by hand" if record.outcome.get("interrupted") else "in all"
        return f"{clock(float(record.outcome['seconds']))} min {how}"
    return f"{clock(lasted_s(record))} min so far" if record.ticks else "just begun"


def _tiles(record: RunRecord) -> str:
    told = record.outcome
    kept, of_what = kept_share(record)
    used, static = told.get("slot_seconds"), told.get("slot_seconds_static_peak")
    tiles = [
        (share(kept), f"{of_what} with the promise kept", "" if kept is None else "good" if kept > 0.95 else "bad"),
        (share(used / static) if used and static else "-", "of static peak's slot-seconds", ""),
        (*_exact(told), _judged(told.get("answer_exact"))),
        (seconds(told.get("mean_s")), f"mean latency; p95 {seconds(told.get('p95_s'))}", ""),
        (f"{len(record.decisions)}", "moves of k while it ran", ""),
    ]
    inner = "".join(
        f'<div class="tile {style}"><b>{escape(value)}</b>{escape(text)}</div>' for value, text, style in tiles
    )
    return f'<div class="tiles">{inner}</div>'


def _exact(told: Line) -> tuple[str, str]:
    rows = f"of {told['rows_in']:,} rows" if told.get("rows_in") is not None else "rows"
    if told.get("answer_exact") is None:
        return "-", f"nobody has checked the answer {rows}"
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
    ks = [tick["running"].get(name, 0) for tick in record.ticks] or [0]
    return f"k = {ks[0]}" if min(ks) == max(ks) else f"k = {min(ks)} to {max(ks)}"


def _load_key(record: RunRecord) -> str:
    band = '<i class="key band"></i>forecast two looks before, with its interval'
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
    moves += "".join(f"<b>{escape(c['what'])} {escape(c['have'])} &rarr; {escape(c['want'])}</b> " for c in others)
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
