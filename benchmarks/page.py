"""docs/benchmarks.md, made of what benchmarks recorded: every figure on it comes from benchmarks/results.

python benchmarks/page.py

A section is a title, what was measured and what bounds it, the command, and a table with a row for each distinct set of
``by``: medians, with the least and the most where there are several runs.
"""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import results
from sections import REPLAY, SECTIONS, Column, Section

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Made by `make bench` from `benchmarks/results`, a line of JSON a run with machine, versions and date. Figures are
ratios within one run where that is possible, since machines differ; several runs show their median and, in
brackets, the least and the most. `make bench ONLY=live` measures one group anew, `python benchmarks/bench.py --list`
names them with their minutes. `make bench KEEP=1` adds runs to those that are there.
"""


def text() -> str:
    """The whole page."""
    sections = (rendered(section, results.read(section.part)) for section in SECTIONS)
    return "\n".join([HEAD, *sections, REPLAY, took(results.read("took"))])


def rendered(section: Section, lines: Sequence[Mapping[str, Any]]) -> str:
    """One section: its table, or that it was not run."""
    parts = [f"## {section.title}", textwrap.fill(section.words, 120), f"    python benchmarks/{section.command}"]
    if not lines:
        parts.append("Not measured yet.")
    else:
        parts += [_table(section, lines), _provenance(lines)]
        parts += [section.verdict(lines)] if section.verdict else []
    return "\n\n".join(parts) + "\n"


def took(lines: Sequence[Mapping[str, Any]]) -> str:
    """What each part took when it last ran to its end."""
    last = {line["name"]: line for line in lines}
    rows = [f"| {name} | `{' '.join(line['words'])}` | {line['minutes']:.1f} |" for name, line in last.items()]
    total = sum(line["minutes"] for line in last.values())
    table = ["| part | command | minutes |", "|---|---|---|", *rows, f"| all of these | | {total:.0f} |"]
    return "\n".join(["## How long it takes", "", *(table if last else ["Not measured yet."]), ""])


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")


def _table(section: Section, lines: Sequence[Mapping[str, Any]]) -> str:
    columns = [*section.by, *section.columns]
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for line in lines:
        groups.setdefault(tuple(str(column.value(line)) for column in section.by), []).append(line)
    rows = ["| " + " | ".join(column.title for column in columns) + " |", "|---" * len(columns) + "|"]
    rows += ["| " + " | ".join(_cell(column, found) for column in columns) + " |" for found in groups.values()]
    return "\n".join(rows)


def _cell(column: Column, lines: Sequence[Mapping[str, Any]]) -> str:
    values = [value for line in lines if (value := column.value(line)) is not None]
    if not values:
        return ""
    if all(isinstance(value, bool) for value in values):
        return "yes" if all(values) else f"NO ({sum(not one for one in values)} of {len(values)})"
    if not all(isinstance(value, int | float) for value in values):
        return ", ".join(dict.fromkeys(str(value) for value in values))
    show: Callable[[float], str] = column.show
    middle, least, most = show(statistics.median(values)), show(min(values)), show(max(values))
    return middle if least == most else f"{middle} ({least} to {most})"


def _provenance(lines: Sequence[Mapping[str, Any]]) -> str:
    dates = sorted(line["date"][:10] for line in lines)
    commits = ", ".join(dict.fromkeys(line["commit"] for line in lines))
    machine = lines[-1]["machine"]
    load = max(line["machine"]["load_1min"] for line in lines)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return (
        f"{len(lines)} runs, {when}, commit {commits}; {machine['cores']} cores, {machine['memory_gib']} GiB, load "
        f"before a run at most {load:g}; pyspark {lines[-1]['versions']['pyspark']}."
    )


if __name__ == "__main__":
    write()
