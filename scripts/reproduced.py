#!/usr/bin/env python3
"""Renews the section "What comes out" of every page in docs/papers/ from `sluicegate reproduce` (about two minutes).

A page's text before its heading stays; what is below is made here, so that no figure in it is typed by hand.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "papers"
PAPERS = {
    "drs": "drs",
    "es_stream": "es-stream",
    "model_driven": "model-driven",
    "mc_stream": "mc-stream",
    "uncertainty": "uncertainty",
}
HEADING = "## What comes out\n"
_HOLDS = {True: "holds", False: "**does not**", None: "undecided"}


def main() -> int:
    for page, paper in PAPERS.items():
        said = subprocess.run(
            [sys.executable, "-c", "from sluicegate.cli import main; main()", "reproduce", paper, "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        renew(FOLDER / f"{page}.md", paper, json.loads(said.stdout)["rows"])
    return 0


def renew(path: Path, paper: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Replace what is below the heading."""
    before = path.read_text(encoding="utf-8").split(HEADING)[0]
    path.write_text(before + HEADING + section(paper, rows), encoding="utf-8")


def section(paper: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of what holds; why the rest does not; and what was assumed."""
    judged = [row["holds"] for row in rows if row["holds"] is not None]
    table = [
        f"| {_cell(row['what'])} | {_cell(row['paper'])} | {_cell(row['ours'])} | {_HOLDS[row['holds']]} |"
        for row in rows
    ]
    missed = [f"- **{_cell(row['what'])}**: {_cell(row['note'])}" for row in rows if not row["holds"] and row["note"]]
    assumed: dict[str, list[str]] = {}
    for row in rows:
        if row["holds"] and row["note"]:
            assumed.setdefault(_cell(row["note"]), []).append(_cell(row["what"]))
    return "\n".join(
        [
            f"\nMade by `scripts/reproduced.py` from `sluicegate reproduce {paper}`: "
            f"{sum(judged)} of {len(judged)} claims hold.\n",
            "| what | paper | ours | |",
            "|---|---|---|---|",
            *table,
            "\n## What does not hold, and why\n",
            *(missed or ["Every judged claim holds."]),
            "\n## Assumptions of what holds\n",
            *(f"- {'; '.join(whats)}: {note}" for note, whats in assumed.items()),
            "",
        ]
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main())
