"""`sluicegate apps`: every application that comes along."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from sluicegate.cli.out import console, print_json
from sluicegate.lab.apps.catalogue import LISTED


def apps(json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False) -> None:
    """List the applications, what each does, its promise and load, and the paper it comes from."""
    if json_out:
        what = ("about", "paper", "slo", "calm_per_s")
        print_json({"apps": {name: {key: getattr(app, key) for key in what} for name, app in LISTED.items()}})
        return
    table = Table("application", "what it does", "promise", "rows/s", "from", box=None, pad_edge=False)
    for name, app in LISTED.items():
        table.add_row(name, app.about, app.slo, f"{app.calm_per_s:g}", app.paper)
    console().print(table)
