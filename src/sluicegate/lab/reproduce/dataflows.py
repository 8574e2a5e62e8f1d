"""The dataflows of model-driven scheduling: three micro dataflows and three applications of five measured tasks.

Every task has selectivity 1, so a task's rate is a multiple of the dataflow's: outputs go to all successors. The paper
assigns the five tasks to the vertices at random; where it does not name the task of a vertex, the choice is ours. In
the applications the tasks alternate in a fixed order. The paper has no drawing of finance: ours has seven tasks and, as
stated there, more rows for pi and one blob task less than the other two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle, pairwise

from sluicegate.domain import Edge, Operator, ProfilePoint, TaskProfile, Topology

# threads on one slot, highest stable rows/s, percent of the slot's CPU and memory above its idle base
_MEASURED: Mapping[str, tuple[tuple[int, float, float, float], ...]] = {
    "blob": (
        (1, 2, 6.73, 23.92),
        (2, 3, 6.63, 23.98),
        (20, 10, 14.69, 26.3),
        (30, 20, 54.18, 28.74),
        (50, 30, 76.73, 31.38),
    ),
    "table": (
        (1, 3, 1.02, 1.15),
        (2, 5, 2.04, 1.15),
        (10, 10, 11.22, 3.45),
        (40, 20, 26.53, 9.2),
        (50, 30, 38.78, 12.64),
        (60, 40, 54.08, 16.09),
    ),
    "pi": ((1, 105, 92.35, 2.07), (2, 110, 94.9, 3.53)),
    "parse": ((1, 310, 84.69, 35.63),),
    "batch": ((1, 60_000, 58.27, 11.95), (2, 50_000, 51.84, 2.76)),
}
_TURNS = ("parse", "pi", "table", "blob", "batch")
_FAN = ("blob", "table", "parse", "batch")
_MICRO: Mapping[str, tuple[tuple[str, str], ...]] = {
    "linear": tuple(pairwise(("source", "blob", "table", "pi", "parse", "batch", "sink"))),
    "diamond": (*(("source", task) for task in _FAN), *((task, "pi") for task in _FAN), ("pi", "sink")),
    "star": (
        *(("source", "blob"), ("source", "table"), ("blob", "pi"), ("table", "pi")),
        *(("pi", "parse"), ("pi", "batch"), ("parse", "sink"), ("batch", "sink")),
    ),
}
# vertices by number, 1 is the source, 0 the sink
_TRAFFIC = "1-2-3-4-5 5-6 5-7 5-8 6-9 6-10 9-11 7-12 10-12 11-12 8-0 12-0"
_GRID = "1-2-3-4 4-5-6-7-8 4-9 9-10 9-11 9-12-13 10-14 11-14 13-14 14-15-16 8-0 16-0"
_FINANCE_TASKS = {
    "trades": "parse",
    "average": "pi",
    "quotes": "table",
    "index": "pi",
    "bargains": "batch",
    "history": "blob",
    "archive": "batch",
}
_FINANCE = (
    *(("source", "trades"), ("trades", "average"), ("trades", "quotes"), ("average", "index"), ("quotes", "index")),
    *(("index", "bargains"), ("bargains", "sink"), ("trades", "history"), ("history", "archive"), ("archive", "sink")),
)


def profile(task: str) -> TaskProfile:
    """One of the five tasks as measured.

    >>> [(point.threads, point.rate_per_s) for point in profile("pi").points]
    [(1, 105), (2, 110)]
    """
    points = (ProfilePoint(n, rate, cpu / 100, memory / 100) for n, rate, cpu, memory in _MEASURED[task])
    return TaskProfile(task, tuple(points))


def micro() -> dict[str, Topology]:
    """Linear, diamond and star.

    >>> [len(topology.operators) for topology in micro().values()]
    [5, 5, 5]
    """
    tasks = {task: task for task in _MEASURED}
    return {name: _topology(name, tasks, edges) for name, edges in _MICRO.items()}


def applications() -> dict[str, Topology]:
    """Traffic, finance and grid.

    >>> {name: len(topology.operators) for name, topology in applications().items()}
    {'traffic': 11, 'finance': 7, 'grid': 15}
    """
    return {
        "traffic": _numbered("traffic", _TRAFFIC),
        "finance": _topology("finance", _FINANCE_TASKS, _FINANCE),
        "grid": _numbered("grid", _GRID),
    }


def _numbered(name: str, drawing: str) -> Topology:
    """Turn numbered vertices into operators, alternating between the five tasks."""
    pairs = [pair for path in drawing.split() for pair in pairwise(map(int, path.split("-")))]
    vertices = sorted({end for pair in pairs for end in pair if end > 1})
    names = {1: "source", 0: "sink"}
    tasks: dict[str, str] = {}
    for vertex, task in zip(vertices, cycle(_TURNS), strict=False):
        names[vertex] = f"t{vertex}-{task}"
        tasks[names[vertex]] = task
    return _topology(name, tasks, ((names[a], names[b]) for a, b in pairs))


def _topology(name: str, tasks: Mapping[str, str], edges: Iterable[tuple[str, str]]) -> Topology:
    profiles = {operator: profile(task) for operator, task in tasks.items()}
    operators = tuple(Operator(one, p.points[0].rate_per_s, profile=p) for one, p in profiles.items())
    return Topology(name, operators, tuple(Edge(a, b) for a, b in edges))
