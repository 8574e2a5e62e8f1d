"""What the driver writes of an attached application, read from its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluicegate.domain import NodeObservation
from sluicegate.errors import BadInput
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.options import Options
from sluicegate.spark.observe.node_loads import ExecutorLoad, nodes_of
from sluicegate.spark.pipeline.graph import Node, RunningGraph

_STALE_S = 15.0


@dataclass(frozen=True, slots=True)
class Application:
    """Who is attached. ``no_executors`` says why executors cannot be moved; ``touches`` whether tasks can."""

    name: str
    options: Options
    touches: bool = True
    no_executors: str | None = None

    @classmethod
    def read(cls, layout: Layout) -> Application:
        text = read_if_there(layout.folder / "application.json")
        if text is None:
            raise BadInput(f"no attached application in {layout.folder}: it has no application.json")
        told = json.loads(text)
        options = Options.of(told["settings"])
        return cls(str(told["name"]), options, bool(told["touches"]), told.get("no_executors"))


@dataclass(frozen=True, slots=True)
class Query:
    """One streaming query. ``partitions`` bounds its tasks where it keeps state."""

    name: str
    active: bool
    stateful: bool
    partitions: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def graph(self, application: str) -> RunningGraph:
        """As a pipeline of one operator: what the loop plans for."""
        node = Node(self.name, ("in",), ("out",), self.stateful, self.partitions, True, None)
        return RunningGraph(application, ("in",), (node,), ("out",))


def queries_in(layout: Layout) -> dict[str, Query]:
    """By name; those that ended too."""
    text = read_if_there(layout.description)
    nodes = json.loads(text)["nodes"] if text else []
    return {node["name"]: _query(node) for node in nodes}


def _query(node: Mapping[str, Any]) -> Query:
    return Query(
        str(node["name"]),
        bool(node.get("active", True)),
        bool(node["stateful"]),
        max(int(node["key_groups"]), 1),
        tuple(node["reads"]),
        tuple(node["writes"]),
    )


@dataclass(frozen=True, slots=True)
class ApplicationGround:
    """What the application has: slots, executors (``None`` in local mode), nodes; which queries are in a batch."""

    slots: int = 1
    executor_cores: int = 1
    executors: int | None = None
    nodes: tuple[NodeObservation, ...] = ()
    busy: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def read(cls, layout: Layout, now_s: float) -> ApplicationGround | None:
        """``None`` where the driver has written nothing lately."""
        text = read_if_there(layout.nodes)
        told = json.loads(text) if text else None
        if told is None or now_s - float(told["at_s"]) > _STALE_S:
            return None
        nodes = nodes_of(ExecutorLoad.from_line(line) for line in told["loads"])
        return cls(
            max(int(told["slots"]), 1),
            max(int(told["executor_cores"]), 1),
            told["executors"],
            tuple(
                NodeObservation(str(n["name"]), _share(n["cpu"]), _share(n["memory"]), _share(n["io"])) for n in nodes
            ),
            {str(name): bool(busy) for name, busy in told["busy"].items()},
        )


def _share(value: object) -> float:
    return float(str(value))
