"""`sluicegate explain`: one decision, from what was measured to its effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from sluicegate.cli.out import console, print_json
from sluicegate.domain.figures import clock, rate, seconds
from sluicegate.errors import BadInput
from sluicegate.report.explained import Explained, explained, meaning
from sluicegate.runlog.log_text import changed
from sluicegate.runlog.plain_words import plain
from sluicegate.runlog.run_record import RunRecord, read_record
from sluicegate.runlog.runs import find_run

_DIGITS = 10
"""A word of digits as long as this is no decision."""


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DECISION] [RUN]", help="Number of the decision (default: the last), folder of the run."
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run (default: the newest run).")
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Explain a decision: what was measured and forecast, every reason and refusal, and its effect."""
    decision, chosen = asked_for(words or (), folder)
    record = read_record(find_run(chosen))
    found = explained(record, _number(record, decision))
    if json_out:
        print_json(found.document())
    else:
        _show(found, record, console())
    return 0


def asked_for(words: Sequence[str], folder: Path | None) -> tuple[int | None, Path | None]:
    """The decision and the run in the words, in either order; a word of digits is a decision.

    >>> asked_for(["7", "words"], None)
    (7, PosixPath('words'))
    """
    numbers = [word for word in words if word.isascii() and word.isdigit() and len(word) < _DIGITS]
    runs = [word for word in words if word not in numbers]
    if len(numbers) > 1:
        raise BadInput(f"decisions {' and '.join(numbers)}: give one, explain takes no more")
    if len(runs) + (folder is not None) > 1:
        given = [*runs, *([str(folder)] if folder is not None else [])]
        raise BadInput(f"{' and '.join(given)}: give the number of a decision and the folder of one run")
    return (int(numbers[0]) if numbers else None), (Path(runs[0]) if runs else folder)


def _number(record: RunRecord, asked: int | None) -> int:
    numbers = [int(decision["number"]) for decision in record.decisions]
    if not numbers:
        raise BadInput(f"nothing was decided in {record.folder} so far: look at it with `sluicegate status`")
    if asked is not None and asked not in numbers:
        raise BadInput(f"no decision {asked}: there are {numbers[0]} to {numbers[-1]}")
    return numbers[-1] if asked is None else asked


def _show(found: Explained, record: RunRecord, out: Console) -> None:
    decision = found.decision
    moves = ", ".join(f"{r['operator']} from {r['have']} to {r['want']} processors" for r in decision["rescales"])
    moves = moves or changed(decision)
    at = clock(float(decision["at_s"]) - record.began_s)
    out.print(f"[bold]decision {decision['number']} of {found.of}, {at} after the start: {escape(moves)}[/]")
    out.print(f"{escape(record.app)}, {escape(record.policy)}, {escape(record.promised)}\n")
    _list(out, "measured", [_measured(found), *(_operator(name, found) for name in found.moved)])
    # several queries have a forecast each, which their reasons name
    forecast = found.forecast or ("none" if not found.forecast_by_query else "of each query: in the reasons")
    _list(out, "forecast", [forecast])
    _list(out, "why", [plain(reason) for reason in decision["reasons"]])
    refused = [f"{plain(r['why'])} ({r['rule']}: {meaning(r['rule'])})" for r in decision.get("refusals") or []]
    _list(out, "refused, and why", refused)
    _list(out, "outcome", found.came_of_it())
    _list(out, "what only you can change", [str(line) for line in record.last.get("advice") or ()])


def _list(out: Console, title: str, lines: list[str]) -> None:
    if lines:
        out.print(f"[bold]{title}[/]")
        for line in lines:
            out.print(f"  - {escape(line)}", soft_wrap=True)


def _measured(found: Explained) -> str:
    came, backlog = found.arrivals_per_s, found.before.get("backlog_rows")
    waiting = f", {backlog:,.0f} rows queued" if backlog is not None else ""
    return f"{rate(came) if came is not None else 'no rate'} came in, latency {seconds(found.mean_s)}{waiting}"


def _operator(name: str, found: Explained) -> str:
    told = (found.before.get("operators") or {}).get(name) or {}
    busy, queue, served = told.get("utilisation"), told.get("queue_rows"), told.get("service_per_s")
    parts = [
        f"{busy:.0%} busy" if busy is not None else "",
        f"{queue:,.0f} rows queued there" if queue is not None else "",
        f"one processor serves {rate(served)}" if served is not None else "",
    ]
    return f"{name}: " + (", ".join(part for part in parts if part) or "nothing")
