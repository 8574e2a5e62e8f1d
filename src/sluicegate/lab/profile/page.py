"""Renders a profile as a self-contained HTML page: rate, CPU and memory over the tasks of a slot."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sluicegate.config.profile_file import ProfileFile
from sluicegate.lab.profile.operator import OperatorMeasured
from sluicegate.lab.profile.result import shares_of
from sluicegate.report.page import Frame, line, page, round_ticks

_STYLE = """
svg { max-width: 720px; } .rate { stroke: var(--s0); } .cpu { stroke: var(--s2); } .memory { stroke: var(--s3); }
.between { stroke: var(--s0); stroke-width: 6; opacity: .35; } .between.cpu { stroke: var(--s2); }
.between.memory { stroke: var(--s3); } .stable { fill: var(--good); } .not { fill: var(--bad); }
"""
_FRAME = Frame(width=720, height=260)
_NEAR = 0.9
Range = tuple[float, float]


def profile_page(found: ProfileFile, measured: OperatorMeasured) -> str:
    """The page: every trial as a dot, the bracket of every peak rate as a bar; below, the shares of the slot."""
    name = escape(found.profile.task)
    body = (
        f"<h1>Profile of {name}</h1><p>{escape(_where(found))}</p>"
        "<h2>Rate over tasks</h2><p>Green trials were stable, red ones were not; a bar is what lies between "
        f"the highest stable rate and the lowest above it that was not.</p>{_rates(found, measured)}"
        "<h2>Shares of the slot at that rate, above its idle base</h2><p>A bar is what the stable trials within a "
        f"tenth of that rate used, from the least to the most.</p>{_shares(found, measured)}"
        '<p><span class="key" style="background:var(--s2)"></span>CPU<span class="key" '
        'style="background:var(--s3)"></span>memory</p>'
        f"{_table(found)}<h2>Assumed</h2><ul>{_assumed(found)}</ul>"
    )
    return page(f"sluicegate profile of {name}", _STYLE, body)


def _rates(found: ProfileFile, measured: OperatorMeasured) -> str:
    points = found.profile.points
    most = max([*(t.threads for t in measured.trials), *(p.threads for p in points)])
    top = max([*(t.rate_per_s for t in measured.trials), *(p.rate_per_s for p in points)])
    x, y = _FRAME.x(0.0, most * 1.05), _FRAME.y(0.0, top * 1.08)
    bars = (
        f'<line class="between" x1="{x.at(p.threads):.1f}" x2="{x.at(p.threads):.1f}" y1="{y.at(p.rate_per_s):.1f}" '
        f'y2="{y.at(found.highest[p.threads]):.1f}"/>'
        for p in points
        if p.threads in found.highest
    )
    dots = (
        f'<circle class="{"stable" if t.stable else "not"}" cx="{x.at(t.threads):.1f}" cy="{y.at(t.rate_per_s):.1f}" '
        f'r="3"><title>{t.threads} tasks, {t.rate_per_s:,.4g} rows/s</title></circle>'
        for t in measured.trials
    )
    curve = line(x, y, [(float(p.threads), p.rate_per_s) for p in points], "rate")
    rows = _FRAME.rows(y, round_ticks(top), lambda t: f"{t:,.0f}")
    return _FRAME.picture([rows, _below([p.threads for p in points]), curve, *bars, *dots], "rows/s over tasks")


def _shares(found: ProfileFile, measured: OperatorMeasured) -> str:
    points = found.profile.points
    x, y = _FRAME.x(0.0, points[-1].threads * 1.05), _FRAME.y(0.0, 1.0)
    bars = (
        f'<line class="between {what}" x1="{x.at(threads) + off:.1f}" x2="{x.at(threads) + off:.1f}" '
        f'y1="{y.at(least):.1f}" y2="{y.at(most):.1f}"/>'
        for threads, ranges in _ranges(found, measured).items()
        for (what, off), (least, most) in zip((("cpu", -4), ("memory", 4)), ranges, strict=True)
    )
    curves = [
        line(x, y, [(float(p.threads), p.cpu) for p in points], "cpu"),
        line(x, y, [(float(p.threads), p.memory) for p in points], "memory"),
    ]
    rows = _FRAME.rows(y, (0.0, 0.25, 0.5, 0.75, 1.0), lambda t: f"{t:.0%}")
    return _FRAME.picture([rows, _below([p.threads for p in points]), *curves, *bars], "CPU and memory over tasks")


def _ranges(found: ProfileFile, measured: OperatorMeasured) -> dict[int, tuple[Range, Range]]:
    """By tasks, the least and the most CPU and memory of stable trials near the peak rate; one trial is no range."""
    slot_mb, ranges = found.measured.get("slot_memory_mb"), dict[int, tuple[Range, Range]]()
    if not isinstance(slot_mb, int):
        return ranges
    for point in found.profile.points:
        near = [
            shares_of(trial, measured.idle, slot_mb * 2**20)
            for trial in measured.trials
            if trial.threads == point.threads and trial.stable and trial.rate_per_s >= _NEAR * point.rate_per_s
        ]
        if len(near) > 1:
            cpu, memory = [share for share, _ in near], [share for _, share in near]
            ranges[point.threads] = ((min(cpu), max(cpu)), (min(memory), max(memory)))
    return ranges


def _below(threads: Sequence[int]) -> str:
    x = _FRAME.x(0.0, threads[-1] * 1.05)
    at = _FRAME.height - 10
    return "".join(f'<text class="small" x="{x.at(t):.1f}" y="{at}" text-anchor="middle">{t}</text>' for t in threads)


def _table(found: ProfileFile) -> str:
    rows = "".join(
        f"<tr><td>{p.threads}</td><td>{p.rate_per_s:,.4g}</td><td>{found.highest.get(p.threads, 0) or '-'}</td>"
        f"<td>{p.cpu:.1%}</td><td>{p.memory:.1%}</td></tr>"
        for p in found.profile.points
    )
    heads = "".join(f"<th>{h}</th>" for h in ("tasks", "rows/s", "not stable at", "CPU", "memory"))
    return f'<div class="wide"><table><tr>{heads}</tr>{rows}</table></div>'


def _where(found: ProfileFile) -> str:
    told = found.measured
    parts = (str(told[key]) for key in ("app", "date", "machine") if key in told)
    return ", ".join([*parts, f"Spark {told.get('spark', '?')}", str(told.get("ended", ""))])


def _assumed(found: ProfileFile) -> str:
    told = found.measured.get("assumed", [])
    return "".join(f"<li>{escape(str(one))}</li>" for one in told) if isinstance(told, list) else ""
