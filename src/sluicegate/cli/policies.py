"""`sluicegate policies`: every policy by name, or the options of one."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from sluicegate.cli.out import console, print_json
from sluicegate.policy.catalogue import POLICIES, policy_entry


def policies(
    name: Annotated[str | None, typer.Argument(metavar="POLICY", help="Show the options of this one.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """List the policies, what each does and where it comes from; or the options of one."""
    if name is not None:
        _options(name, json_out)
        return
    if json_out:
        found = {name: {"summary": entry.summary, "origin": entry.origin} for name, entry in POLICIES.items()}
        print_json({"policies": found})
        return
    table = Table("policy", "what it does", "from", box=None, pad_edge=False)
    for policy, entry in POLICIES.items():
        table.add_row(policy, entry.summary, entry.origin)
    console().print(table)
    console().print("\n`sluicegate policies POLICY` shows the options of one, for `run` and `plan` --policy-option K=V")


def _options(name: str, json_out: bool) -> None:
    """Loads the policy itself, which the list does without."""
    from sluicegate.control.settings import options_of

    entry, options = policy_entry(name), options_of(name)
    if json_out:
        print_json({"policy": name, "summary": entry.summary, "origin": entry.origin, "options": options})
        return
    console().print(f"[bold]{name}[/] ({entry.origin}): {entry.summary}\n")
    table = Table("option", "usually", box=None, pad_edge=False)
    for option, usual in options.items():
        table.add_row(option, "as goal and timing say" if usual is None else str(usual))
    console().print(table if options else "no options")
