"""`sluicegate reproduce`: a paper's tables and figures, computed anew, next to the paper's own numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.out import console, place_for, print_json, status, write_page
from sluicegate.errors import BadInput
from sluicegate.lab.reproduce import drs, es_stream, mc_stream, model_driven, uncertainty
from sluicegate.lab.reproduce.claims import Reproduction, Row, reproduction_page
from sluicegate.policy.catalogue import unknown

PAPERS: dict[str, Reproduction] = {
    "drs": drs.rows,
    "es-stream": es_stream.rows,
    "model-driven": model_driven.rows,
    "mc-stream": mc_stream.rows,
    "uncertainty": uncertainty.rows,
}
_SIGN = {True: "[green]holds[/]", False: "[red]does not[/]", None: "-"}


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=", ".join(PAPERS))],
    traces: Annotated[
        list[Path] | None,
        typer.Option("--trace", metavar="CSV", help="Rates to use instead of generated ones (uncertainty)."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="As long as in the paper: five runs of seven days (uncertainty).")
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Reproduce a paper's tables and figures and report which claims hold."""
    if paper not in PAPERS:
        raise BadInput(unknown("paper", paper, PAPERS))
    if traces and paper != "uncertainty":
        raise BadInput(f"--trace goes with uncertainty only, not with {paper}: leave it out")
    if full and paper != "uncertainty":
        raise BadInput(f"--full goes with uncertainty only, not with {paper}: leave it out")
    if html is not None:
        place_for(html)
    made = PAPERS[paper]
    if paper == "uncertainty":
        length = uncertainty.FULL if full else uncertainty.BRIEF
        made = partial(uncertainty.rows, traces=tuple(traces or ()), steps=length.steps, runs=length.runs)
    with status(f"reproducing {paper}", quiet=json_out) as progress:
        rows = list(made(progress))
    if html is not None:
        write_page(html, reproduction_page(paper, rows))
    if json_out:
        print_json({"paper": paper, "rows": [asdict(row) for row in rows]})
    else:
        _show(rows)
    return 0


def _show(rows: list[Row]) -> None:
    out = console()
    table = Table("what", "paper", "ours", "", pad_edge=False, show_lines=True)
    for row in rows:
        table.add_row(escape(row.what), escape(row.paper), escape(row.ours), _SIGN[row.holds])
    out.print(table)
    for line in _notes(rows):
        out.print(line)
    judged = [row.holds for row in rows if row.holds is not None]
    out.print(f"\n{sum(judged)} of {len(judged)} claims hold")


def _notes(rows: list[Row]) -> Iterator[str]:
    yield "\n[bold]assumptions, and why the other claims do not hold[/]"
    for row in rows:
        if row.note:
            yield f"  - {escape(row.what)}: {escape(row.note)}"
