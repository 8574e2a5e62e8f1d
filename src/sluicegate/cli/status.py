"""`sluicegate status`: the current state of a run."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.out import console, print_json
from sluicegate.domain.figures import clock, number_of, rate, seconds, share
from sluicegate.errors import SluicegateError
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.joined import Link, links, neighbours
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.log_text import changed, topic_lines
from sluicegate.runlog.plain_words import plain
from sluicegate.runlog.run_record import FIGURES, RunRecord, measured_s, read_record
from sluicegate.runlog.runs import find_run
from sluicegate.spark.edges.folder import FolderEdge

DEAD_LETTERS = "dead_letters"
LATEST_BYTES = 300_000
_SILENT_S = 30.0
"""A controller that has logged nothing for this long counts as not running."""
_OVERDUE_S = 60.0
"""Executors that have not started by then are reported as missing."""
_SAID = 5
"""How many lines of the driver are shown."""
_TOLD = ("promise", "trigger", "tasks")
"""Rules of refusals that mean the promise cannot be kept, or that tasks are left to Spark."""


def status(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Folder of the run (default: the newest run).")
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Show the state of a run: promise, load, latency, processors, and the last decision with its reason."""
    record = read_record(find_run(folder), LATEST_BYTES)
    if json_out:
        print_json(as_document(record, time.time()))
    else:
        _show(record, time.time(), console())
    return 0


def state_of(record: RunRecord, now_s: float) -> str:
    """Whether a run is running, and whether it is controlled."""
    if record.ended:
        return "stopped by hand" if record.outcome.get("interrupted") else "ended"
    if record.pipeline.get("attached") and not any(node.get("active") for node in record.pipeline["nodes"]):
        return "no query runs"
    silent_s = now_s - float(record.last.get("at_s", record.began_s))
    if record.controlled is False or (record.controlled is None and silent_s > _SILENT_S):
        return "no controller: the last plan stays in force"
    if not record.last and record.controlled:
        return f"the controller has been starting for {seconds(silent_s)}"
    return "running" if silent_s <= _SILENT_S else f"no observation from the controller for {seconds(silent_s)}"


def as_document(record: RunRecord, now_s: float) -> dict[str, object]:
    """The JSON of the command; what was not measured is null."""
    last, late = record.last, record.broken
    return {
        "folder": str(record.folder),
        "app": record.app,
        "policy": record.policy,
        "state": state_of(record, now_s),
        "controller_alive": record.controlled,
        "dry_run": bool(record.control.get("dry_run")),
        "promise": record.bounds,
        "own_promises": last.get("own_promises") or {},
        "promise_kept": None if late is None else not late,
        "at_s": last.get("at_s"),
        "arrivals_per_s": last.get("arrivals_per_s"),
        "throughput_per_s": last.get("throughput_per_s"),
        "backlog_rows": last.get("backlog_rows"),
        "mean_s": measured_s(last),
        "p95_s": measured_s(last, "p95"),
        "predicted_mean_s": last.get("predicted_mean_s"),
        "processors": last.get("running", {}),
        "operators": _operators(record),
        "executors": counted(record, "executors"),
        "nodes": counted(record, "nodes"),
        "last_decision": record.decisions[-1] if record.decisions else None,
        "failures": [asdict(one) for one in record.failing],
        "dead_letters": dead_letters(record),
        "topics": last.get("topics") or {},
        "joined": [asdict(link) for link in _links(record)],
    }


def _operators(record: RunRecord) -> dict[str, dict[str, object]]:
    told = record.last.get("operators") or {}
    return {name: {what: (told.get(name) or {}).get(what) for what in FIGURES} for name in record.operators}


def counted(record: RunRecord, what: str) -> int | None:
    """Executors or nodes by the fleet log; executors else by the controller's last tick."""
    told = [entry[what] for entry in record.fleet if entry.get(what) is not None]
    last = record.last.get("executors") if what == "executors" else None
    return int(told[-1]) if told else last


def held(record: RunRecord) -> str:
    """Processors, executors and nodes, as far as they are known."""
    known = {"processor": sum((record.last.get("running") or {}).values())}
    known |= {what[:-1]: n for what in ("executors", "nodes") if (n := counted(record, what)) is not None}
    return ", ".join(number_of(n, what) for what, n in known.items())


def headline(record: RunRecord, now_s: float) -> str:
    """App, policy, state and promise in one line of markup."""
    late = record.broken
    kept = "" if late is None else ", [bold red]broken now[/]" if late else ", [green]kept[/]"
    advice = " (only advises)" if record.control.get("dry_run") else ""
    return (
        f"[bold]{escape(record.app)}[/]  {escape(record.policy)}{advice}  {state_of(record, now_s)}  "
        f"promise: {escape(record.promised)}{kept}"
    )


def failing_lines(record: RunRecord, now_s: float) -> list[str]:
    """A line for every operator that fails or has stopped."""
    return [one.line(now_s) for one in record.failing]


def dead_letters(record: RunRecord) -> dict[str, int]:
    """By stream: how many rows an operator has skipped since its first start; unreadable streams are left out."""
    streams = [stream for stream in record.pipeline.get("kept") or () if stream.endswith(f".{DEAD_LETTERS}")]
    found = {}
    for stream in streams:
        with suppress(SluicegateError, OSError):
            newest = FolderEdge(Layout(record.folder).edge(stream)).newest()
            found[stream] = newest.rows_after if newest else 0
    return found


def dead_letter_lines(record: RunRecord) -> list[str]:
    return [f"{rows:,} rows skipped: see {stream}" for stream, rows in dead_letters(record).items() if rows]


def _links(record: RunRecord) -> list[Link]:
    """For an attached application: which queries read what others write, including other applications."""
    attached = record.pipeline.get("attached")
    return links(record.pipeline, neighbours(record.folder)) if attached else []


def attached_lines(record: RunRecord) -> list[str]:
    """For an attached application: what cannot be reached, the topics it reads, and the queries it is joined to."""
    if not record.pipeline.get("attached"):
        return []
    refused = [plain(r["why"]) for r in record.last.get("refusals") or [] if r.get("rule") in _TOLD]
    unread = [f"{key} is not a setting of sluicegate: it is ignored" for key in _list(record, "unknown_settings")]
    renamed = [
        f"{node['name']} is the query named {node['given']!r}"
        for node in record.pipeline["nodes"]
        if node.get("given") not in (None, "", node["name"])
    ]
    joined = [link.text for link in _links(record)]
    advice = [str(line) for line in record.last.get("advice") or ()]
    about = [*advice, *_said(record), *renamed, *_continuous(record)]
    return [*refused, *unread, *_missing(record), *about, *topic_lines(record.last), *joined]


def _said(record: RunRecord) -> list[str]:
    """The driver's last messages: faults, and what it does not move."""
    with suppress(ValueError, KeyError, TypeError):
        lines = (read_if_there(Layout(record.folder).said) or "").splitlines()
        told = [json.loads(line) for line in lines[-_SAID:]]
        return [f"the driver logged at {_time(float(one['at_s']))}: {one['line']}" for one in told]
    return []


def _time(at_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_s))


def _continuous(record: RunRecord) -> list[str]:
    names = [node["name"] for node in record.pipeline["nodes"] if node.get("active") and node.get("continuous")]
    return [f"{name} runs in continuous mode, without batches: it is neither measured nor moved" for name in names]


def _list(record: RunRecord, key: str) -> list[str]:
    return [str(one) for one in record.control.get(key) or ()]


def _missing(record: RunRecord) -> list[str]:
    """Executors that were requested and have not started in time."""
    last = record.fleet[-1] if record.fleet else {}
    have, want, since_s = last.get("executors"), last.get("wanted"), float(last.get("at_s") or 0.0)
    waited_s = float(record.last.get("at_s") or 0.0) - since_s
    if have is None or want is None or have >= want or waited_s < _OVERDUE_S:
        return []
    return [f"{want} executors are requested and {have} are there for {seconds(waited_s)}: the master provides no more"]


def _show(record: RunRecord, now_s: float, out: Console) -> None:
    last = record.last
    out.print(headline(record, now_s))
    out.print(f"[dim]{escape(str(record.folder))}[/]")
    for text in failing_lines(record, now_s):
        out.print(f"[bold red]{escape(text)}[/]")
    for text in dead_letter_lines(record):
        out.print(f"[yellow]{escape(text)}[/]")
    if not last:
        if not record.ended:
            of_pipelines = "; the first controller after an installation compiles its models once"
            out.print("no observation yet" + ("" if record.pipeline.get("attached") else of_pipelines))
        for text in attached_lines(record):
            out.print(escape(text))
        return
    came, backlog = last.get("arrivals_per_s"), last.get("backlog_rows")
    out.print(
        f"load {rate(came) if came is not None else '-'}, latency mean {seconds(measured_s(last))}, "
        f"p95 {seconds(measured_s(last, 'p95'))}, {backlog or 0:,.0f} rows queued"
    )
    out.print(held(record) + "\n")
    out.print(_table(record))
    for text in attached_lines(record):
        out.print(escape(text))
    if record.decisions:
        out.print("\n" + last_decision(record))


def _table(record: RunRecord) -> Table:
    table = Table("operator", box=None, pad_edge=False)
    for heading in ("k", "rows/s", "busy", "queued", "latency"):
        table.add_column(heading, justify="right")
    for name, told in _operators(record).items():
        k = record.last["running"].get(name, "-")
        came, queue = told["arrivals_per_s"], told["queue_rows"]
        cells = (_count(came), share(_number(told["utilisation"])), _count(queue), seconds(_number(told["sojourn_s"])))
        table.add_row(escape(name), str(k), *cells)
    return table


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _count(value: object) -> str:
    number = _number(value)
    return "-" if number is None else f"{number:,.0f}"


def last_decision(record: RunRecord) -> str:
    """The last move and its first reason, in one line of markup."""
    decision = record.decisions[-1]
    moves = changed(decision)
    why = plain(decision["reasons"][0]) if decision["reasons"] else "no reason was noted"
    at = clock(float(decision["at_s"]) - record.began_s)
    return f"decision {decision['number']} at {at}: {escape(moves)}: {escape(why)}"
