"""`sluicegate doctor`: whether this machine has what sluicegate needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.checks import Finding, all_findings
from sluicegate.cli.out import console, print_json

_LACKS = 3
_SIGNS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "problem": "[bold red]problem[/]"}


def doctor(json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False) -> int:
    """Check Java, Spark, libraries, memory, disk and ports, and list what to do if something is missing."""
    findings = all_findings()
    if json_out:
        print_json({"well": not _problems(findings), "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    return _LACKS if _problems(findings) else 0


def _problems(findings: list[Finding]) -> int:
    return sum(finding.state == "problem" for finding in findings)


def _show(findings: list[Finding]) -> None:
    table = Table("", "what", "found", "what to do", box=None, pad_edge=False)
    for finding in findings:
        remedy = "" if finding.state == "ok" else finding.remedy
        table.add_row(_SIGNS[finding.state], finding.what, escape(finding.found), escape(remedy))
    out, problems = console(), _problems(findings)
    out.print(table)
    out.print(
        f"\n{problems} problem(s): sluicegate will not run as it is" if problems else "\neverything needed is here"
    )
