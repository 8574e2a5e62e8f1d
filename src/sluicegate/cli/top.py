"""`sluicegate top`: a run in the terminal, live: operators, load and latency over the last minutes, decisions."""

from __future__ import annotations

import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sluicegate.cli.out import console
from sluicegate.cli.status import LATEST_BYTES, attached_lines, failing_lines, headline, held
from sluicegate.domain.figures import clock, rate, seconds, share
from sluicegate.runlog.log_text import changed
from sluicegate.runlog.plain_words import plain
from sluicegate.runlog.run_record import Line, RunRecord, measured_s, own_promises, read_record
from sluicegate.runlog.runs import find_run

_BLOCKS, _PLAIN = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
_BAR = 10
_BESIDE = 42
"""Columns used by a line's name and its figures."""
_DECISIONS = 5


def top_frame(record: RunRecord, now_s: float, out: Console) -> Group:
    """Everything on one screen; in ASCII if the terminal has no Unicode."""
    ramp = _BLOCKS if out.encoding.startswith("utf") else _PLAIN
    return Group(
        Text.from_markup(headline(record, now_s)),
        *(Text(text, style="bold red") for text in failing_lines(record, now_s)),
        Text(held(record) if record.last else "no observation yet"),
        Text(""),
        _lines(record, ramp, max(out.width - _BESIDE, 10)),
        Text(""),
        _operators(record, ramp),
        *(Text(text) for text in attached_lines(record)),
        Text(""),
        *_decisions(record),
        Text("q or Ctrl-C leaves", style="dim"),
    )


def _lines(record: RunRecord, ramp: str, looks: int) -> Table:
    ticks = record.ticks[-looks:]
    came = [tick.get("arrivals_per_s") for tick in ticks]
    table = Table.grid(padding=(0, 2))
    table.add_row("load", Text(sparkline(came, ramp)), rate(came[-1]) if came and came[-1] is not None else "-")
    for what in list(record.bounds) or ["mean"]:
        took, bound_s = [measured_s(tick, what) for tick in ticks], record.bounds.get(what)
        against = f"{seconds(took[-1] if took else None)}" + (f" of {seconds(bound_s)} promised" if bound_s else "")
        table.add_row(f"{what} latency", _coloured(took, bound_s, ramp), against)
    for name, what, bound_s, took_s in own_promises(record.last):
        seen = [{(n, w): s for n, w, _, s in own_promises(tick)}.get((name, what)) for tick in ticks]
        against = f"{seconds(took_s)} of {seconds(bound_s)} promised"
        table.add_row(escape(f"{name} {what}"), _coloured(seen, bound_s, ramp), against)
    return table


def _coloured(took: Sequence[float | None], bound_s: float | None, ramp: str) -> Text:
    """A sparkline against the promise: a full block is twice the bound, and late ticks are red."""
    drawn = sparkline(took, ramp, most=2 * bound_s if bound_s else None)
    text = Text()
    for sign, took_s in zip(drawn, took, strict=True):
        text.append(sign, style="red" if bound_s and took_s is not None and took_s > bound_s else "green")
    return text


def sparkline(values: Sequence[float | None], ramp: str, most: float | None = None) -> str:
    """
    >>> sparkline([0.0, 5.0, None, 10.0], " .:-=+*#@")
    '.= @'
    """
    top = most or max((value for value in values if value is not None), default=0.0)
    steps = len(ramp) - 1
    return "".join(
        " " if value is None else ramp[min(max(round(steps * value / top) if top else 0, 1), steps)] for value in values
    )


def bar(part: float | None, ramp: str) -> str:
    """
    >>> bar(0.42, " .:-=+*#@"), bar(None, " .:-=+*#@")
    ('@@@@...... 42.0%', '-')
    """
    if part is None:
        return "-"
    full = round(_BAR * min(max(part, 0.0), 1.0))
    return f"{ramp[-1] * full}{ramp[1] * (_BAR - full)} {share(part)}"


def _operators(record: RunRecord, ramp: str) -> Table:
    table = Table("operator", box=None, pad_edge=False)
    for heading in ("k", "rows/s", "busy", "queued", "latency"):
        table.add_column(heading, justify="left" if heading == "busy" else "right")
    for name in record.operators:
        told = (record.last.get("operators") or {}).get(name) or {}
        k = (record.last.get("running") or {}).get(name, "-")
        cells = (_count(told.get("arrivals_per_s")), bar(told.get("utilisation"), ramp), _count(told.get("queue_rows")))
        table.add_row(escape(name), str(k), *cells, seconds(told.get("sojourn_s")))
    return table


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _decisions(record: RunRecord) -> list[Text]:
    if not record.decisions:
        return [Text("no decision yet", style="dim")]
    return [_decision(decision, record.began_s) for decision in reversed(record.decisions[-_DECISIONS:])]


def _decision(decision: Line, began_s: float) -> Text:
    moves = changed(decision)
    text = Text(f"{decision['number']:>3}  {clock(decision['at_s'] - began_s):>6}  ", no_wrap=True, overflow="ellipsis")
    text.append(moves, style="bold")
    return text.append(f"  {plain(decision['reasons'][0]) if decision['reasons'] else ''}", style="dim")


_EVERY_S = 1.0
_LEAVE = "q"


def top(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Folder of the run (default: the newest run).")
    ] = None,
) -> int:
    """Watch a run: operators, load and latency against the promise, the last decisions. Exit with q or Ctrl-C."""
    chosen, out = find_run(folder), console()
    if not out.is_terminal or out.is_dumb_terminal:
        out.print(top_frame(read_record(chosen, LATEST_BYTES), time.time(), out))
        return 0
    with suppress(KeyboardInterrupt):  # the usual way to leave
        _watch(chosen, out)
    return 0


def _watch(folder: Path, out: Console) -> None:
    with _keys() as pressed, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(top_frame(read_record(folder, LATEST_BYTES), time.time(), out), refresh=True)
            if pressed(_EVERY_S) == _LEAVE:
                return


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A function that waits up to that long for a key; during the block keys are read one by one, without Enter."""
    if not sys.stdin.isatty():
        yield _none_pressed
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield _pressed
    finally:
        # immediately: draining would block on a terminal that is no longer read
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _none_pressed(wait_s: float) -> str:
    time.sleep(wait_s)
    return ""


def _pressed(wait_s: float) -> str:
    ready, _, _ = select.select([sys.stdin], [], [], wait_s)
    # a closed terminal is always ready and returns nothing: leave
    return (sys.stdin.read(1) or _LEAVE) if ready else ""
