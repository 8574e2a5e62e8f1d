"""Checks which pipelines can run in real-time mode, and counts the task slots their stages need.

Every operator is a stage of one query; all stages run at the same time, and each of their tasks holds a slot while the
query runs. The first operator is in the stage that reads the topic, so it has one task per partition. If a single slot
is missing Spark starts nothing, so all slots are counted before the start.
"""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.errors import BadInput
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Sink, Step
from sluicegate.spark.pipeline.graph import REAL_TIME, Node, RunningGraph

BATCH_S = 5.0
"""Batch duration, the shortest that Spark allows. At double, a rescale waits twice as long for the running batch."""
_INSTEAD = "leave --mode real-time out, micro-batches run it"


def stages_of(pipeline: Pipeline) -> tuple[Step, ...]:
    """The operators in the order of the data flow; refused unless they are a chain of stateless operators."""
    pipeline.check()
    if pipeline.loops or len(pipeline.sources) != 1:
        what = "a loop" if pipeline.loops else f"{len(pipeline.sources)} sources"
        raise BadInput(
            f"real-time mode runs operators in a row from one source, {pipeline.name!r} has {what}: {_INSTEAD}"
        )
    steps = [step for step in pipeline.steps.values() if step.source is None]
    for step in steps:
        _check(step)
    before, found = next(iter(pipeline.sources)), list[Step]()
    while following := [step for step in steps if step.inputs == (before,)]:
        if len(following) > 1:
            names = " and ".join(repr(step.name) for step in following[:2])
            raise BadInput(f"real-time mode runs operators in a row, {names} both read {before!r}: {_INSTEAD}")
        found += following
        before = following[0].name
    return tuple(found)


def _check(step: Step) -> None:
    if step.stateful:
        raise BadInput(
            f"operator {step.name!r} is stateful: Spark fixes the number of its tasks in the checkpoint, and real-time "
            f"mode changes it by a restart; {_INSTEAD}"
        )
    if len(step.reads) != 1 or len(step.inputs) != 1 or step.outputs:
        what = "names several outputs" if step.outputs else "reads several streams"
        raise BadInput(f"real-time mode runs operators in a row, {step.name!r} {what}: {_INSTEAD}")


def sink_of(pipeline: Pipeline, steps: tuple[Step, ...]) -> Sink:
    """The only sink, which must be behind the last operator."""
    last = steps[-1].name
    elsewhere = next((sink for sink in pipeline.sinks.values() if sink.stream != last), None)
    if elsewhere is not None or len(pipeline.sinks) != 1:
        what = f"{elsewhere.name!r} takes {elsewhere.stream!r}" if elsewhere else f"there are {len(pipeline.sinks)}"
        raise BadInput(f"real-time mode writes one sink behind the last operator, {last!r}; {what}: {_INSTEAD}")
    return next(iter(pipeline.sinks.values()))


def graph_of(pipeline: Pipeline, steps: tuple[Step, ...], partitions: int) -> RunningGraph:
    """The pipeline's graph for the controller; the first stage is fixed at one task per partition."""
    source = next(iter(pipeline.sources))
    nodes = tuple(
        Node(
            name=step.name,
            reads=() if i == 0 else (steps[i - 1].name,),
            writes=(step.name,),
            stateful=False,
            key_groups=partitions if i == 0 else 0,
            terminal=i == len(steps) - 1,
            source=source if i == 0 else None,
        )
        for i, step in enumerate(steps)
    )
    return RunningGraph(pipeline.name, (), nodes, (steps[-1].name,), mode=REAL_TIME)


def begin_with(graph: RunningGraph, asked: Mapping[str, int]) -> dict[str, int]:
    """Initial tasks of every stage: the requested number or 1; for the first stage the number of partitions."""
    first, names = graph.nodes[0], [node.name for node in graph.nodes]
    for name, k in asked.items():
        if name not in names:
            raise BadInput(f"processors of {name!r}: no such operator; there is {', '.join(names)}")
        if name == first.name and k != first.key_groups:
            raise BadInput(
                f"processors of {name!r} is {k}: it reads a topic with {first.key_groups} partitions and has one task "
                "for each; give the topic other partitions, or leave it out"
            )
    return {name: first.key_groups if name == first.name else asked.get(name, 1) for name in names}


def reserve(processors: Mapping[str, int], slots: int) -> int:
    """The slots that all stages need together; refused if there are fewer.

    >>> reserve({"parse": 1, "score": 3}, 4)
    4
    >>> reserve({"parse": 2, "score": 3}, 4)
    Traceback (most recent call last):
    sluicegate.errors.BadInput: real-time mode needs 5 task slots at once (parse 2, score 3), there are 4: give \
--master local[5] or more executors, or begin with fewer --processors
    """
    need = sum(processors.values())
    if need > slots:
        each = ", ".join(f"{name} {k}" for name, k in processors.items())
        raise BadInput(
            f"real-time mode needs {need} task slots at once ({each}), there are {slots}: give --master "
            f"local[{need}] or more executors, or begin with fewer --processors"
        )
    return need
