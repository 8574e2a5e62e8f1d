"""`sluicegate advise`: what the queries of an event log would have needed, without touching anything."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.out import console, place_for, print_json, progress_bar, write_page
from sluicegate.domain.figures import promise, seconds, share

if TYPE_CHECKING:
    from sluicegate.lab.advise.advice import Advice
    from sluicegate.lab.advise.walk import Walked


def advise(
    logs: Annotated[list[Path], typer.Argument(metavar="EVENTLOG...", help="Files or rolled folders of Spark's logs.")],
    slo: Annotated[
        list[str] | None,
        typer.Option(metavar="GOAL", help="The promise, for example p95=10s (default: the latency it had)."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with pictures.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Estimate what the streaming queries of an event log would have needed, and what that saves."""
    from sluicegate.config.typed import goal_from
    from sluicegate.lab.advise.advice import advise as advice_of
    from sluicegate.lab.advise.event_log import events
    from sluicegate.lab.advise.logged import read_application
    from sluicegate.lab.advise.page import advice_page

    goal, place = (goal_from(slo) if slo else None), (html and place_for(html))
    found: list[tuple[str, tuple[Advice, ...]]] = []
    for log in logs:
        with progress_bar(f"reading {log.name}", quiet=json_out) as progress:
            app = read_application(events(log, lambda done, total: progress(done / max(total, 1))))
        with progress_bar(f"advising {app.name}", quiet=json_out) as progress:
            found.append((app.name, advice_of(app, goal, progress)))
    if json_out:
        print_json({"queries": [as_document(name, one) for name, advices in found for one in advices]})
    else:
        for name, advices in found:
            for one in advices:
                _show(name, one, console())
    if place is not None:
        write_page(place, advice_page(found))
        if not json_out:
            console().print(f"as a page: {escape(str(place))}")
    return 0


def as_document(app: str, one: Advice) -> dict[str, object]:
    """One query as JSON."""
    return {
        "application": app,
        "name": one.name,
        "batches": one.batches,
        "law": {"o_s": one.law.overhead_s, "c_s": one.law.per_task_s, "service_per_s": one.law.service_per_s},
        "promise": one.promise,
        "kept": one.kept,
        "kept_advised": one.advised.kept,
        "slots": one.slots,
        "slot_seconds": one.slot_seconds,
        "slot_seconds_advised": one.advised.slot_seconds,
        "saved": one.saved,
        "smallest_fixed_slots": one.smallest_fixed,
        "peers": {name: {k: v for k, v in asdict(w).items() if k != "slots"} for name, w in one.peers.items()},
        "reasons": list(one.reasons),
    }


def headline(one: Advice) -> str:
    """The advice in one line."""
    mean = one.advised.slot_seconds / max(one.load.seconds, 1e-9)
    kept = share(one.advised.kept)
    if one.saved >= 0.01:
        return (
            f"ran {one.slots:.1f} slots on average; {mean:.1f} that follow the load would have kept "
            f"{promise(one.promise)} for {kept} of rows: {one.saved:.0%} less"
        )
    return (
        f"ran {one.slots:.1f} slots on average; following the load takes {mean:.1f} and keeps {promise(one.promise)} "
        f"for {kept} of rows (it was kept for {share(one.kept)}): nothing to save"
    )


def _show(app: str, one: Advice, out: Console) -> None:
    out.print(f"[bold]{escape(app)} / {escape(one.name)}[/bold]: {escape(headline(one))}")
    table = Table(box=None, pad_edge=False)
    for head in ("", "slot-seconds", "rows within the promise", "p95", "most slots", "moves"):
        table.add_column(head, justify="left" if not head else "right")
    table.add_row("as it ran", f"{one.slot_seconds:,.0f}", share(one.kept), "", "", "")
    _row(table, "sluicegate", one.advised)
    for name, walked in one.peers.items():
        _row(table, name, walked)
    out.print(table)
    for reason in one.reasons:
        out.print(f"  - {escape(reason)}")


def _row(table: Table, name: str, walked: Walked) -> None:
    table.add_row(
        name,
        f"{walked.slot_seconds:,.0f}",
        share(walked.kept),
        seconds(walked.p95_s),
        str(walked.most),
        str(walked.moves),
    )
