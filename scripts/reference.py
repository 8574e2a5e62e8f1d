#!/usr/bin/env python3
"""Writes docs/reference/ from the code: configuration, commands, metrics, logs. `--check` only says what differs."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer
from prometheus_client.parser import text_string_to_metric_families

from sluicegate.cli.app import COMMANDS, commands
from sluicegate.dashboard.metrics import metrics_text
from sluicegate.dashboard.record import Record

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made from the code by scripts/reference.py: change it there, and run that script. -->\n"


@dataclass(frozen=True, slots=True)
class Key:
    """``default`` holds where nothing is set, ``effect`` says what the value does."""

    default: str
    effect: str


ATTACH_KEYS: Mapping[str, Key] = MappingProxyType(
    {
        "slo": Key("none", "The promise of all queries: `p95=10s`, `mean=2s`, several with commas. None: it observes."),
        "query.NAME.slo": Key("`slo`", "The promise of one query, by its `queryName`; `none` leaves it alone."),
        "executors": Key("not moved", "`LEAST:MOST` executors."),
        "policy": Key("`sluicegate`", "The policy, by name (`sluicegate policies`)."),
        "observe": Key("`false`", "`true`: measure and advise, move nothing."),
        "pace": Key("`false`", "`true`: trigger intervals and read limits may be moved too."),
        "split": Key("`false`", "`true`: sources may be read in more tasks than they give; order in a batch changes."),
        "folder": Key("`$SLUICEGATE_HOME/attached/APPLICATION`", "Where the record goes, on the driver's machine."),
        "python": Key("`python3`", "The Python that has sluicegate, on the driver's machine; `conf` names its own."),
        "controller": Key("`process`", "`none`: no controller is started, so nothing is planned."),
        "interval_s": Key("`2`", "Seconds between two ticks of the controller."),
    }
)
"""Settings of Spark below ``spark.sluicegate.``; read once, when the application starts."""

ENVIRONMENT: Mapping[str, Key] = MappingProxyType(
    {
        "SLUICEGATE_HOME": Key("`~/.sluicegate`", "Folder of the run registry, of records and of the local cluster."),
        "SLUICEGATE_JARS": Key("`~/.cache/sluicegate/jars`", "Where the jars of Kafka's connector are kept."),
        "SLUICEGATE_KAFKA_BROKER": Key("4.1.0", "The version of Kafka that chaos and tests start as a broker."),
        "SLUICEGATE_KAFKA_CONNECTOR": Key("that of this Spark", "Maven coordinates to use instead, with commas."),
        "SLUICEGATE_FAULT_POINTS": Key(
            "none", "For fault tests: a folder naming points at which a process kills itself or its disk fails."
        ),
        "SLUICEGATE_HURT": Key(
            "none", "Set by chaos for its processes: a file with clock steps, disk delays and errors."
        ),
        "SLUICEGATE_HURT_BELOW": Key("none", "Set by chaos for its processes: the folder below which the disk fails."),
        "SLUICEGATE_CHAOS_DATABASE": Key("none", "Set by chaos for its processes: the address of its PostgreSQL."),
        "JAVA_HOME": Key("`java` on the path", "The Java that Spark runs on, 17 or 21."),
    }
)

DECISION_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "number": "Counts from 1; `sluicegate explain NUMBER` shows it.",
        "at_s": "When it was decided.",
        "running": "Processors (k) of every operator from now on.",
        "rescales": "Operators whose k changes: `operator`, `have`, `want`, `reason`.",
        "changes": "Other changes (executors, nodes, places, key groups, shares, paces): `what`, `have`, `want`, "
        "`reason`.",
        "executors": "Executors there should be; null where they are not moved.",
        "nodes": "Nodes there should be; null where they are not moved.",
        "reasons": "Why, with the numbers.",
        "refusals": "What was proposed and is not done: `rule` of the governor, and `why` with the numbers.",
        "arrivals_per_s": "The load at that moment, rows a second from outside.",
        "predicted_mean_s": "Mean latency that the model expects of what was decided; null where queues would grow.",
        "failing": "Operators that fail at that moment, a line each.",
    }
)
"""A line of ``decisions.jsonl``: one for every move."""

TICK_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "at_s": "When the controller ticked.",
        "arrivals_per_s": "Rows a second from outside.",
        "throughput_per_s": "Rows a second that left at the sinks.",
        "backlog_rows": "Rows taken in that have not left.",
        "sojourn": "Latency from source to sink: `mean_s`, `p50_s`, `p95_s`, `p99_s`.",
        "predicted_mean_s": "Mean latency that the model expects of what is planned.",
        "forecast": "Coming steps of `step_s`: `mean_per_s`, and `low_per_s` to `high_per_s` at probability `level`.",
        "running": "k of every operator, planned.",
        "observed": "k of every operator, as its last batches ran.",
        "rescaling": "True while requested and observed differ.",
        "pace_s": "Seconds between the starts of two batches, by operator.",
        "changes": "Changes at this tick.",
        "refusals": "Refusals at this tick.",
        "executors": "Executors that run.",
        "failing": "Operators that fail, a line each.",
        "nodes": "Load of each node: `cpu`, `memory`, `io` as shares, `hosts`, `cores`, `busy_cores`, `other_cores`.",
        "operators": "By operator, as below.",
    }
)
"""A line of ``ticks.jsonl``: one for every tick."""

OPERATOR_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "arrivals_per_s": "Rows a second that reach it.",
        "queue_rows": "Rows that wait before it.",
        "sojourn_s": "Mean seconds from reaching it to leaving it.",
        "utilisation": "Share of time its processors are busy, 0 to 1.",
        "arrival_scv": "Squared coefficient of variation of the times between rows.",
        "service_scv": "The same of the time a row takes.",
        "service_per_s": "Rows a second of one processor, learned.",
        "batch": "The law of its batches, learned: `overhead_s` (o) and `per_task_s` (c).",
    }
)
"""What ``operators`` of a tick holds of each."""

BATCH_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "batch": "Spark's number of the batch.",
        "started_s": "When it started.",
        "published_s": "When its rows were visible to readers.",
        "duration_s": "The whole batch as Spark counts it, planning and commit included.",
        "rows": "Rows taken in.",
        "rows_out": "Rows published.",
        "processors": "Tasks it was cut into (k).",
        "entered_s": "When its rows came onto the edges it reads, on average.",
        "born": "When its rows came from outside: pairs of time and rows.",
        "cold": "One of the first after a start: nothing is learned from it.",
        "work_s": "Run time of its tasks, added up.",
        "task_s": "Run time of each task.",
        "task_rows": "Rows of each task.",
        "group_s": "Seconds that each key group takes, smoothed.",
        "task_on": "The executor that each task ran on, where it was looked up.",
        "task_at": "The place that each task was planned at.",
    }
)
"""A line of ``operators/NAME/batches.jsonl`` of a pipeline: one for every finished batch."""

FLEET_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "at_s": "When.",
        "what": "What was requested, came, went or failed, in words.",
        "decision": "Number of the decision that asked for it; null for what a run begins with.",
        "executors": "Executors requested, where they changed.",
        "nodes": "Nodes, where they changed.",
        "pause_s": "How long rows were not processed, where a query or an operator was restarted.",
    }
)
"""A line of ``fleet.jsonl``: what was done about executors and nodes."""

SECOND_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "at_s": "The end of the stretch.",
        "span_s": "How long it is, about a second.",
        "came": "Rows that the source's topic grew by.",
        "out": "Rows that came out.",
        "running": "Tasks of every stage.",
        "cold": "Whether the first rows still compile; nothing is learned from them.",
        "rescaling": "Whether the query is being restarted.",
        "pause_s": "What the last restart cost, from the commit it stopped at to the first row out.",
        "pauses": "Restarts so far.",
        "counted": "Rows that every stage took in the batch that ended last, where one has.",
        "stages": "Of every stage: rows, seconds of service, their squares, seconds of waiting before it, added up.",
        "ages": "Pairs of seconds from source to sink, and rows; at most some 200.",
    }
)
"""A line of ``stages.jsonl``: one for every second of a real-time query."""


def pages() -> dict[str, str]:
    """Every page of the reference by its file name."""
    made = {
        "configuration.md": configuration(),
        "cli.md": cli(),
        "metrics.md": metrics(),
        "logs.md": logs(),
    }
    return {name: f"{MADE}\n{text.strip()}\n" for name, text in made.items()}


def configuration() -> str:
    attach = {f"`spark.sluicegate.{name}`": key for name, key in ATTACH_KEYS.items()}
    return f"""# Configuration

## Spark settings of an attached application

`sluicegate conf` prints them with `spark.jars`, `spark.plugins` and `spark.sql.extensions`; [Attach](../attach.md) says
what they do together. They are read once, when the application starts.

{_keys("setting", attach)}

## Environment variables

{_keys("variable", {f"`{name}`": key for name, key in ENVIRONMENT.items()})}

Pipelines have no settings of their own: what a run is given are the options of [`sluicegate run`](cli.md#run) or the
arguments of `elastic`; Spark's own settings go through `--conf K=V`.
"""


def cli() -> str:
    return "\n".join(["# Commands", "", _CLI_HEAD, *(line for name in COMMANDS for line in _command(name))])


_CLI_HEAD = """\
`--json` prints one document on standard output and nothing else there. Exit codes: 0 done; 1 ran, but a stated check
failed; 2 bad input or usage, one line on standard error; 3 the environment lacks something (Java, a port, memory).
"""


def metrics() -> str:
    with tempfile.TemporaryDirectory() as folder:
        record = Record(_full_run(Path(folder)))
        while record.look():
            pass
        families = list(text_string_to_metric_families(metrics_text(record).decode()))
    rows = [
        [f"`{family.name + '_total' * (family.type == 'counter')}`", family.type, _labels(family), family.documentation]
        for family in families
    ]
    return f"""# Metrics

`sluicegate dashboard` serves them at `/metrics` in Prometheus' text format. What was not measured is left out.
[Alerts](../operations.md#alerts) and a [Grafana dashboard](../dashboard.md#prometheus-and-grafana) use them.

{_table(["metric", "type", "labels", "what"], rows)}
"""


def logs() -> str:
    parts = [
        ("decisions.jsonl", "One line for every move. `sluicegate explain` shows one in words.", DECISION_FIELDS),
        ("ticks.jsonl", "One line for every tick of the controller.", TICK_FIELDS),
        ("operators of a tick", "In `ticks.jsonl`, one for every operator (attached: every query).", OPERATOR_FIELDS),
        ("fleet.jsonl", "What was done about executors and nodes.", FLEET_FIELDS),
        (
            "batches.jsonl",
            "In `operators/NAME/` of a pipeline: one line for every finished batch. Attached queries have lines of "
            "their own there, made from Spark's progress reports.",
            BATCH_FIELDS,
        ),
        ("stages.jsonl", "In [real-time mode](../realtime.md): one line a second.", SECOND_FIELDS),
    ]
    sections = [f"## {name}\n\n{text}\n\n{_fields(fields)}" for name, text, fields in parts]
    head = """# Logs of a run

JSON, one line per event, in the folder of the run ([what is where](../operations.md#what-it-writes-where)). `_s` are
seconds, `at_s` seconds since the epoch, `_per_s` rows a second. What was not measured is null. A full log becomes
`NAME.1`, so the disk stays bounded. Fields may be added; those below keep their meaning.
"""
    return "\n\n".join([head.strip(), *sections])


def _command(name: str) -> Iterator[str]:
    group: Any = typer.main.get_command(commands([name]))
    command = group.commands[name]
    inner = getattr(command, "commands", None) or {}
    yield f"## {name}\n"
    yield f"{COMMANDS[name]}\n"
    for words, one in [(f"{name} {sub}", found) for sub, found in inner.items()] or [(name, command)]:
        if inner:
            yield f"### {words}\n\n{' '.join((one.help or '').split())}\n"
        yield f"```text\n{_usage(words, one)}\n```\n"
        rows = [_parameter(parameter) for parameter in one.params if parameter.name != "help"]
        if rows:
            yield _table(["", "what", "default"], rows) + "\n"


def _usage(words: str, command: Any) -> str:
    return " ".join(["sluicegate", words, "[OPTIONS]", *(_shown(p) for p in command.params if _is_argument(p))])


def _shown(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name = name if argument.required or name.startswith("[") else f"[{name}]"
    return f"{name}..." if argument.nargs == -1 and not name.endswith("...") else name


def _parameter(parameter: Any) -> list[str]:
    if _is_argument(parameter):
        return [f"`{_shown(parameter)}`", _plain(parameter.help), ""]
    metavar = "" if getattr(parameter, "is_flag", False) else f" {parameter.metavar or _kind(parameter)}"
    names = " / ".join([*parameter.opts, *parameter.secondary_opts])
    return [f"`{names}{metavar}`", _plain(parameter.help), _default(parameter)]


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _kind(parameter: Any) -> str:
    """What an option without a name of its own takes, by its type."""
    kinds = {"int": "N", "float": "X", "Path": "PATH", "str": "NAME"}
    return kinds[str(parameter.bare_type())]


def _default(parameter: Any) -> str:
    value = parameter.default
    if getattr(parameter, "is_flag", False):
        return f"`{parameter.opts[0]}`" if value and parameter.secondary_opts else ""
    return "" if value in (None, (), [], "") or callable(value) else f"`{value}`"


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


def _full_run(folder: Path) -> Path:
    """A run of one tick in which everything was measured."""
    tick = {
        "at_s": 2.0,
        "arrivals_per_s": 1.0,
        "backlog_rows": 1.0,
        "sojourn": {"mean_s": 1.0, "p50_s": 1.0, "p95_s": 1.0, "p99_s": 1.0},
        "forecast": {"low_per_s": [1.0], "mean_per_s": [1.0], "high_per_s": [1.0]},
        "running": {"one": 1},
        "operators": {"one": {"queue_rows": 1.0, "utilisation": 0.5}},
        "executors": 1,
        "nodes": [{"name": "one", "cpu": 0.5}],
        "own_promises": {"one": {"p95": {"bound_s": 1.0, "took_s": 1.0}}},
        "topics": {"one": {"lag": {"topic/0": 1}}},
    }
    failing = {"operator": "one", "fault": "code", "since_s": 1.0}
    node = {"name": "one", "reads": ["in"], "writes": ["out"], "stateful": False, "key_groups": 1, "terminal": True}
    documents = {
        "pipeline.json": {"name": "full", "sources": ["in"], "kept": ["out"], "nodes": [{**node, "source": None}]},
        "control.json": {"bounds": {"mean": 1.0}},
        "failures.json": {"operators": [failing]},
        "ticks.jsonl": tick,
    }
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document) + "\n", encoding="utf-8")
    return folder


def _labels(family: Any) -> str:
    return ", ".join(sorted({f"`{label}`" for sample in family.samples for label in sample.labels}))


def _keys(first: str, keys: Mapping[str, Key]) -> str:
    return _table([first, "default", "what it does"], [[name, key.default, key.effect] for name, key in keys.items()])


def _fields(fields: Mapping[str, str]) -> str:
    return _table(["field", "meaning"], [[f"`{name}`", text] for name, text in fields.items()])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def stale(folder: Path = FOLDER) -> list[str]:
    """The pages that are not what the code makes now."""
    return [
        name
        for name, text in pages().items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text
    ]


def main(words: Sequence[str]) -> int:
    """Write the pages; with `--check`, fail where one differs."""
    differ = stale()
    if "--check" in words:
        for name in differ:
            sys.stderr.write(f"docs/reference/{name} is not what the code makes: run scripts/reference.py\n")
        return 1 if differ else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(differ)} pages of docs/reference renewed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
