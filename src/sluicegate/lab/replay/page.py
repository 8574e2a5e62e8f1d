"""A replay as one page of HTML that needs nothing else: pictures, table, and what was done to the data."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sluicegate.lab.replay.charts import family, machines, minutes_a_point, over_time, pareto
from sluicegate.lab.replay.replay import Options, Result, TraceReport
from sluicegate.lab.replay.truth import Truth
from sluicegate.report.page import page

_SHOWN = ("sluicegate", "recent-peak", "uncertainty-7", "hindsight")
_STYLE = """
:root { --paper-policy: #b3561b; --bound: #8a919b; --peer: #22826a; }
@media (prefers-color-scheme: dark) { :root { --paper-policy: #ec9a5c; --bound: #8a919b; --peer: #58c3a5; } }
h2 { margin-top: 40px; } h3 { font-size: 15px; margin: 22px 0 2px; }
li { color: var(--soft); margin: 2px 0; } ul { margin: 4px 0 12px; padding-left: 18px; }
svg text.own { font-weight: 700; } .goal { stroke: var(--soft); stroke-dasharray: 5 4; }
.frontier { fill: none; stroke: var(--soft); stroke-opacity: .5; } .load { fill: var(--load); }
.c0 { stroke: var(--own); } .c1 { stroke: var(--peer); } .c2 { stroke: var(--paper-policy); }
.c3 { stroke: var(--bound); }
.dot { stroke: var(--paper); stroke-width: 1.5; } .dot.own { fill: var(--own); }
.dot.paper { fill: var(--paper-policy); }
.dot.bound { fill: var(--bound); } .dot.peer { fill: var(--peer); }
.key.own, .key.k0 { background: var(--own); } .key.peer, .key.k1 { background: var(--peer); }
.key.paper, .key.k2 { background: var(--paper-policy); } .key.bound, .key.k3 { background: var(--bound); }
.key.area { background: var(--load); }
tr.own td { font-weight: 700; } td.missed { color: var(--paper-policy); }
"""


def replay_page(
    options: Options, said: str, truth: Truth, reports: Sequence[tuple[TraceReport, tuple[str, ...]]]
) -> str:
    """The page; with each report go the repairs that its trace needed."""
    sections = "".join(_section(options, truth, report, repairs) for report, repairs in reports)
    facts = (
        f"protocol {options.protocol.name}, target {options.target:.2%} of minutes on time, {options.runs} runs,"
        f" seed {options.seed}; {said}"
    )
    return page("sluicegate replay", _STYLE, f"<h1>sluicegate replay</h1><p>{escape(facts)}</p>{sections}")


def _section(options: Options, truth: Truth, report: TraceReport, repairs: tuple[str, ...]) -> str:
    notes = [*repairs, *report.notes, *(f"{r.policy}: {note}" for r in report.results for note in r.notes)]
    chosen = _chosen(report.results)
    every = minutes_a_point(report)
    points = "each point a minute" if every == 1 else f"each point {every} minutes: largest load, smallest capacity"
    return "".join(
        (
            f"<h2>{escape(report.trace)}</h2>",
            "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>",
            "<h3>Late minutes against cost: lower left is better</h3>",
            f"<p>{_keys(report.results)}</p>",
            pareto(report, options.target),
            _table(report, options.target),
            f"<h3>Load and capacity over time, first run ({points})</h3>",
            *(_panel(report, result, truth, colour) for result, colour in chosen),
            "<h3>Machines that serve</h3>",
            "<p>" + "".join(f'<span class="key k{i}"></span>{escape(r.policy)}' for r, i in chosen) + "</p>",
            machines(report, chosen),
        )
    )


def _panel(report: TraceReport, result: Result, truth: Truth, colour: int) -> str:
    keys = f'<span class="key area"></span>load, rows/s<span class="key k{colour}"></span>capacity under'
    return f"<p>{keys} {escape(result.policy)}</p>{over_time(report, result, truth, colour)}"


def _chosen(results: Sequence[Result]) -> list[tuple[Result, int]]:
    """Up to four policies for the time plots, each with its colour: the telling ones first, then as they come."""
    by_name = {result.policy: result for result in results}
    colours = {name: i for i, name in enumerate(_SHOWN) if name in by_name}
    left = [i for i in range(len(_SHOWN)) if i not in colours.values()]
    others = [name for name in by_name if name not in colours]
    colours.update(zip(others, left, strict=False))
    return [(by_name[name], colour) for name, colour in colours.items()]


def _keys(results: Sequence[Result]) -> str:
    shown = {"own": "sluicegate", "paper": "the paper's policies", "peer": "peers", "bound": "bounds, told the future"}
    there = {family(result.policy) for result in results}
    return "".join(f'<span class="key {name}"></span>{text}' for name, text in shown.items() if name in there)


def _table(report: TraceReport, target: float) -> str:
    heads = (
        "policy",
        "on time",
        "cost / hindsight",
        "cost / static peak",
        "rescales",
        "largest backlog, rows",
        "longest backlog, min",
        "forecast coverage",
    )
    head = "".join(f"<th>{text}</th>" for text in heads)
    rows = "".join(_row(result, target) for result in sorted(report.results, key=lambda r: r.cost_vs_hindsight))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(r: Result, target: float) -> str:
    coverage = "-" if r.coverage is None else f"{r.coverage:.1%}"
    cells = (
        f"{r.cost_vs_hindsight:.3f}",
        f"{r.cost_vs_static:.3f}",
        f"{r.rescales:,.0f}",
        f"{r.backlog_peak:,.0f}",
        f"{r.backlog_drain_s / 60:,.0f}",
        coverage,
    )
    on_time = f"<td{'' if r.qos >= target else ' class=missed'}>{r.qos:.3%}</td>"
    own = ' class="own"' if r.policy == "sluicegate" else ""
    return f"<tr{own}><td>{escape(r.policy)}</td>{on_time}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
