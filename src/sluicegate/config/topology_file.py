"""Reads topology files, TOML that people write, into domain objects."""

from __future__ import annotations

from pathlib import Path

from sluicegate.config.profile_file import read_profile as read_profile
from sluicegate.config.table import Table, read_toml
from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.model.traffic import flow_of

MODES = ("queue", "micro-batch")
# What a micro-batch costs on an idle two-core machine, for files that name the mode and no figures.
_OVERHEAD_S, _PER_TASK_S, _COMMIT_S = 0.14, 0.03, 0.04


def read_topology(path: str | Path) -> Topology:
    """The pipeline described in ``path``; every mistake is one line that says where and what to do."""
    path = Path(path)
    table = read_toml(path)
    name = table.text("name", path.stem)
    mode = _mode(table, "queue")
    operators = tuple(_operator(entry, mode, path.parent) for entry in table.tables("operators"))
    edges = tuple(_edge(entry) for entry in table.tables("edges"))
    shares = {}
    for entry in table.tables("sources", needed=False):
        shares[entry.text("name")] = entry.number("share", 1.0)
        entry.refuse_unknown()
    table.refuse_unknown()
    try:
        topology = Topology(name, operators, edges, shares)
        flow_of(topology)
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from None
    return topology


def _operator(entry: Table, mode: str, folder: Path) -> Operator:
    profile = read_profile(folder / entry.text("profile")) if entry.has("profile") else None
    if profile is None and not entry.has("service_rate_per_s"):
        entry.missing(
            "service_rate_per_s",
            'give service_rate_per_s (rows one processor does in a second) or profile = "FILE.toml"',
        )
    rate = entry.number("service_rate_per_s", profile.points[0].rate_per_s if profile else None)
    first = profile.points[0] if profile else None
    mode = _mode(entry, mode)
    try:
        operator = Operator(
            name=entry.text("name"),
            service_per_s=rate,
            arrival_scv=entry.number("arrival_scv", 1.0),
            service_scv=entry.number("service_scv", 1.0),
            stateful=entry.flag("stateful", False),
            batch=_batch_costs(entry, mode),
            profile=profile,
            cpu=entry.number("cpu", first.cpu if first else 1.0),
            memory=entry.number("memory", first.memory if first else 0.0),
            io=entry.number("io", 0.0),
        )
    except BadInput as problem:
        if str(problem).startswith(entry.file):
            raise
        entry.fail(str(problem))
    entry.asked.update(("profile", "service_rate_per_s"))
    entry.refuse_unknown()
    return operator


def _batch_costs(entry: Table, mode: str) -> BatchCosts | None:
    overhead = entry.number("batch_overhead_s", _OVERHEAD_S)
    per_task = entry.number("batch_per_task_s", _PER_TASK_S)
    commit = entry.number("batch_commit_s", _COMMIT_S)
    return BatchCosts(overhead, per_task, commit) if mode == "micro-batch" else None


def _edge(entry: Table) -> Edge:
    try:
        edge = Edge(entry.text("from"), entry.text("to"), entry.number("selectivity", 1.0))
    except BadInput as problem:
        if str(problem).startswith(entry.file):
            raise
        entry.fail(str(problem))
    entry.refuse_unknown()
    return edge


def _mode(table: Table, default: str) -> str:
    mode = table.text("mode", default)
    if mode not in MODES:
        table.fail(f"mode is {mode!r}: give one of {', '.join(MODES)}")
    return mode
