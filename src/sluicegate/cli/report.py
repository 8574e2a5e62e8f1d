"""`sluicegate report`: a run as a self-contained page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from sluicegate.cli.out import console, print_json, write_page
from sluicegate.domain.figures import number_of, share
from sluicegate.report.run_charts import kept_share
from sluicegate.report.run_page import run_page
from sluicegate.runlog.run_record import read_record
from sluicegate.runlog.runs import find_run


def report(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Folder of the run (default: the newest run).")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Where (default: sluicegate-APP.html).")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Write the page of a run: what was promised, kept and paid, with pictures and every decision."""
    record = read_record(find_run(folder))
    path = html or Path(f"sluicegate-{re.sub(r'[^A-Za-z0-9_.-]', '_', record.app)}.html")
    write_page(path, run_page(record))
    kept, of_what = kept_share(record)
    if json_out:
        about = {"folder": str(record.folder), "app": record.app, "policy": record.policy, "promise": record.bounds}
        print_json({**about, "kept": kept, "kept_of": of_what, "moves": record.moves, "file": str(path)})
        return 0
    moves = number_of(record.moves, "move")
    said = f"{record.app}: {record.promised} kept for {share(kept)} {of_what}, {moves}"
    console().print(f"{escape(said)}; the page is {escape(str(path))}", soft_wrap=True)
    return 0
