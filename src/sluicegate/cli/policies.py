"""`sluicegate policies`: every policy by name."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from sluicegate.cli.out import console, print_json
from sluicegate.policy.catalogue import POLICIES


def policies(json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False) -> None:
    """List the policies, what each does and where it comes from."""
    if json_out:
        found = {name: {"summary": entry.summary, "origin": entry.origin} for name, entry in POLICIES.items()}
        print_json({"policies": found})
        return
    table = Table("policy", "what it does", "from", box=None, pad_edge=False)
    for name, entry in POLICIES.items():
        table.add_row(name, entry.summary, entry.origin)
    console().print(table)
