"""Traffic, finance and grid as run by model-driven scheduling: 11, 7 and 15 operators, each one of five tasks.

The graphs are those of ``lab.reproduce.dataflows``; ``five_tasks`` has the tasks. Every operator is stateless, emits
one row for each row, fills its own column, and has its own query and k. The output of an operator goes to all its
readers, so a message comes out once for every path from source to sink, with the answers of the operators on that path
only. ``traffic``, ``finance`` and ``grid`` are applications for the same purposes with real computations; those here
have the paper's load. ``..._waiting`` are the same with tasks that sleep instead of computing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_

from sluicegate.domain import Topology, is_sink, is_source
from sluicegate.lab.apps.dataflows import NOWHERE, TEXT, application
from sluicegate.lab.apps.five_tasks import TaskSurroundings, doing
from sluicegate.lab.reproduce.dataflows import applications
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream


@dataclass(frozen=True, slots=True)
class TaskDataflow:
    """A graph of operators, each named after its position and its task."""

    graph: Topology
    calm_per_s: float
    waiting: bool = False

    @property
    def name(self) -> str:
        return f"{self.graph.name}_tasks" + ("_waiting" if self.waiting else "")

    @property
    def tasks(self) -> dict[str, str]:
        """The task of each operator, by the operator's column name."""
        found = ((o.name, o.profile) for o in self.graph.operators)
        return {plain(name): profile.task for name, profile in found if profile is not None}

    @property
    def schema(self) -> str:
        columns = (f"{name} {'string' if task in TEXT else 'long'}" for name, task in self.tasks.items())
        return ", ".join(("id long", "message string", *columns))


def plain(name: str) -> str:
    """The column name of an operator.

    >>> plain("t2-parse")
    't2_parse'
    """
    return name.replace("-", "_")


def build(dataflow: TaskDataflow, beside: TaskSurroundings = NOWHERE) -> Pipeline:
    pipeline, graph = Pipeline(dataflow.name), dataflow.graph
    streams: dict[str, Stream] = {"source": pipeline.source("messages", dataflow.schema)}
    for name in graph.order:
        reads = [streams[edge.origin] for edge in graph.edges if edge.target == name]
        work = doing(dataflow.tasks[plain(name)], beside, plain(name), dataflow.schema)
        streams[name] = pipeline.operator(plain(name), work, reduce(or_, reads), fuse=False)
    for edge in graph.edges:
        if is_sink(edge.target):
            pipeline.sink(f"after-{plain(edge.origin)}", streams[edge.origin])
    return pipeline


def paths(graph: Topology) -> list[frozenset[str]]:
    """The operators on every path from the source to a sink.

    >>> [len(paths(graph)) for graph in applications().values()]
    [4, 3, 4]
    """
    follow: dict[str, list[str]] = {}
    for edge in graph.edges:
        follow.setdefault("source" if is_source(edge.origin) else edge.origin, []).append(edge.target)

    def onwards(name: str, passed: frozenset[str]) -> Iterator[frozenset[str]]:
        for target in follow.get(name, ()):
            yield from [passed] if is_sink(target) else onwards(target, passed | {plain(target)})

    return list(onwards("source", frozenset()))


DATAFLOWS = tuple(
    TaskDataflow(graph, calm_per_s, waiting)
    for waiting, calm_per_s in ((False, 10.0), (True, 20.0))
    for graph in applications().values()
)
APPS = tuple(
    application(
        partial(build, dataflow),
        paths(dataflow.graph),
        dataflow.tasks,
        name=dataflow.name,
        about=f"the {len(dataflow.tasks)} operators of the paper's {dataflow.graph.name} dataflow, each one of five "
        "tasks",
        paper=f"model-driven ({dataflow.graph.name})",
        calm_per_s=dataflow.calm_per_s,
        slo="mean=20s",
        waiting=dataflow.waiting,
    )
    for dataflow in DATAFLOWS
)
