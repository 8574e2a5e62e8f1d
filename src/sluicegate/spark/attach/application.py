"""Reads the files that the driver writes about an attached application: settings, queries, slots and nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluicegate.domain import NodeObservation
from sluicegate.errors import BadInput
from sluicegate.runlog.batch_log import DAMAGE
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.files import FilesSeen
from sluicegate.spark.attach.options import Options, plain_name, unknown
from sluicegate.spark.observe.node_loads import ExecutorLoad, nodes_of
from sluicegate.spark.pipeline.graph import Node, RunningGraph

_STALE_S = 15.0


@dataclass(frozen=True, slots=True)
class Application:
    """The attached application and its options.

    ``touches`` is whether tasks may be moved, ``no_executors`` the reason why executors cannot be, if there is one.
    """

    name: str
    options: Options
    touches: bool = True
    no_executors: str | None = None
    unknown: tuple[str, ...] = ()
    """``spark.sluicegate.*`` settings that nothing reads."""

    @property
    def moves_executors(self) -> bool:
        return self.options.executors is not None and self.no_executors is None

    @classmethod
    def read(cls, layout: Layout) -> Application:
        told = _document(layout.folder / "application.json")
        if told is None:
            raise BadInput(f"no attached application in {layout.folder}: its application.json is missing or damaged")
        try:
            options = Options.of(told["settings"])
            touches, unread = bool(told["touches"]), unknown(told["settings"])
            return cls(str(told["name"]), options, touches, told.get("no_executors"), unread)
        except DAMAGE as problem:
            raise BadInput(f"application.json in {layout.folder} is damaged: start the application anew") from problem


@dataclass(frozen=True, slots=True)
class Query:
    """One streaming query. ``partitions`` is the upper bound of its tasks if it is stateful.

    ``promised_as`` is the name whose promise it has: queries of one name in two sessions differ in ``name`` only.
    """

    name: str
    active: bool
    stateful: bool
    partitions: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    checkpoint: str = "CHECKPOINT"
    promised_as: str = ""
    left: str = ""
    """Why no plan moves its tasks, if the driver says so."""

    def graph(self, application: str) -> RunningGraph:
        """The query as a pipeline of one operator, which is what the loop plans for."""
        node = Node(self.name, ("in",), ("out",), self.stateful, self.partitions, True, None)
        return RunningGraph(application, ("in",), (node,), ("out",))


def queries_in(layout: Layout) -> dict[str, Query]:
    """The queries of the application by name, including those that have ended."""
    told = _document(layout.description) or {}
    try:
        return {str(node["name"]): _query(node) for node in told.get("nodes", [])}
    except DAMAGE:
        return {}


def _query(node: Mapping[str, Any]) -> Query:
    return Query(
        str(node["name"]),
        bool(node.get("active", True)),
        bool(node["stateful"]),
        max(int(node["key_groups"]), 1),
        tuple(node["reads"]),
        tuple(node["writes"]),
        str(node.get("checkpoint") or "CHECKPOINT"),
        plain_name(given) if (given := str(node.get("given") or "").strip()) else str(node["name"]),
        str(node.get("left") or ""),
    )


@dataclass(frozen=True, slots=True)
class ApplicationGround:
    """Resources and state of the application.

    Task slots, executors (``None`` in local mode), nodes, which queries are in a batch (``busy``), their input files.
    """

    slots: int = 1
    executor_cores: int = 1
    executors: int | None = None
    nodes: tuple[NodeObservation, ...] = ()
    busy: Mapping[str, bool] = field(default_factory=dict)
    files: Mapping[str, FilesSeen] = field(default_factory=dict)

    @classmethod
    def read(cls, layout: Layout, now_s: float) -> ApplicationGround | None:
        """Read the driver's last report; ``None`` if it is missing, damaged or older than 15 s."""
        told = _document(layout.nodes)
        try:
            return None if told is None or now_s - float(told["at_s"]) > _STALE_S else cls._of(told)
        except DAMAGE:
            return None

    @classmethod
    def _of(cls, told: Mapping[str, Any]) -> ApplicationGround:
        nodes = nodes_of(ExecutorLoad.from_line(line) for line in told["loads"])
        return cls(
            max(int(told["slots"]), 1),
            max(int(told["executor_cores"]), 1),
            told["executors"],
            tuple(
                NodeObservation(str(n["name"]), _share(n["cpu"]), _share(n["memory"]), _share(n["io"])) for n in nodes
            ),
            {str(name): bool(busy) for name, busy in told["busy"].items()},
            {str(name): FilesSeen.of(files) for name, files in told.get("files", {}).items()},
        )


def _document(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; ``None`` if the file is missing or damaged, since the driver will rewrite it."""
    try:
        found = json.loads(read_if_there(path) or "null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _share(value: object) -> float:
    return float(str(value))
