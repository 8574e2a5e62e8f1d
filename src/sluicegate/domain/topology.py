"""A pipeline as a graph: operators, the edges between them, and external sources and sinks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sluicegate.domain.profile import TaskProfile
from sluicegate.errors import BadInput

SOURCE = "source"
SINK = "sink"
_NAME = re.compile(r"[^\W\d][\w.+\-]*")


def is_source(end: str) -> bool:
    """Whether an edge's end is an external source.

    >>> is_source("source"), is_source("source:clicks"), is_source("sources")
    (True, True, False)
    """
    return end == SOURCE or end.startswith(SOURCE + ":")


def is_sink(end: str) -> bool:
    """Whether an edge's end is an external sink."""
    return end == SINK or end.startswith(SINK + ":")


def require(holds: bool, problem: str) -> None:
    """Raise ``BadInput(problem)`` unless ``holds``."""
    if not holds:
        raise BadInput(problem)


# Values beyond these are typing errors (one row in thirty years, 1e15 rows a second), and products of several of them
# could overflow a float.
SLOWEST_PER_S = 1e-9
LARGEST = 1e15


def require_number(value: float, what: str, *, least: float = 0.0, above: bool = False) -> None:
    """Raise ``BadInput`` unless ``least`` <= value <= ``LARGEST``; with ``above``, ``least`` itself is refused too."""
    if least < value <= LARGEST or (value == least and not above):
        return
    require(math.isfinite(value), f"{what} is {value}: give a finite number")
    require(value <= LARGEST, f"{what} is {value:g}: it must be at most {LARGEST:g}")
    raise BadInput(f"{what} is {value:g}: it must be {'above' if above else 'at least'} {least:g}")


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """Time that a micro-batch takes besides its rows: ``b(n) = overhead + per_task k + n/(k mu)``."""

    overhead_s: float
    per_task_s: float
    commit_s: float = 0.0

    def __post_init__(self) -> None:
        require_number(self.overhead_s, "batch_overhead_s", above=True)
        require_number(self.per_task_s, "batch_per_task_s")
        require_number(self.commit_s, "batch_commit_s")


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of a pipeline.

    ``service_per_s`` is the rate of ONE processor. ``batch`` set means that the operator runs in micro-batches and
    the micro-batch law predicts it; unset means a queue with servers (M/M/k, or GI/G/k where the squared
    coefficients of variation differ from 1). ``cpu``, ``memory`` and ``io`` are what one processor uses, as shares
    of a slot; a ``profile`` measured on one slot replaces them where there is one.
    """

    name: str
    service_per_s: float
    arrival_scv: float = 1.0
    service_scv: float = 1.0
    stateful: bool = False
    batch: BatchCosts | None = None
    profile: TaskProfile | None = None
    cpu: float = 1.0
    memory: float = 0.0
    io: float = 0.0

    def __post_init__(self) -> None:
        require(
            bool(_NAME.fullmatch(self.name)),
            f"operator name {self.name!r}: use letters, digits, _ . + -, a letter first",
        )
        reserved = is_source(self.name) or is_sink(self.name)
        require(not reserved, f"operator name {self.name!r} is reserved for the outside world: choose another")
        require_number(self.service_per_s, f"service_rate_per_s of {self.name!r}", above=True)
        slow = self.service_per_s < SLOWEST_PER_S
        require(not slow, f"service_rate_per_s of {self.name!r} is {self.service_per_s:g}: at least {SLOWEST_PER_S:g}")
        for what in ("arrival_scv", "service_scv", "cpu", "memory", "io"):
            require_number(getattr(self, what), f"{what} of {self.name!r}")

    def with_figures(
        self, service_per_s: float, arrival_scv: float, service_scv: float, batch: BatchCosts | None
    ) -> Operator:
        """A copy with measured figures; only these are validated, the other fields already were."""
        fits = SLOWEST_PER_S <= service_per_s <= LARGEST and 0 <= arrival_scv <= LARGEST and 0 <= service_scv <= LARGEST
        require(
            fits, f"measured figures of {self.name!r} cannot be: {service_per_s}/s, scv {arrival_scv}, {service_scv}"
        )
        twin, put = object.__new__(Operator), object.__setattr__
        put(twin, "name", self.name)
        put(twin, "service_per_s", service_per_s)
        put(twin, "arrival_scv", arrival_scv)
        put(twin, "service_scv", service_scv)
        put(twin, "stateful", self.stateful)
        put(twin, "batch", batch)
        put(twin, "profile", self.profile)
        put(twin, "cpu", self.cpu)
        put(twin, "memory", self.memory)
        put(twin, "io", self.io)
        return twin


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows from ``origin`` to ``target``: ``selectivity`` rows on this edge for each row ``origin`` takes in."""

    origin: str
    target: str
    selectivity: float = 1.0

    def __post_init__(self) -> None:
        require_number(self.selectivity, f"selectivity of {self.origin!r} -> {self.target!r}")
        require(not is_sink(self.origin), f"edge from {self.origin!r}: a sink sends nothing; swap from and to")
        require(not is_source(self.target), f"edge to {self.target!r}: a source takes nothing; swap from and to")
        direct = is_source(self.origin) and is_sink(self.target)
        require(not direct, f"edge {self.origin!r} -> {self.target!r} passes no operator: remove it")


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Names and inner edges alone; compared by identity, so that results computed from it can be cached."""

    names: tuple[str, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, eq=False)
class Topology:
    """A validated pipeline graph. Splits, joins and loops are expressed as edges.

    ``source_shares`` gives a named source's rate as a share of the pipeline's (1 where it is not named).

    >>> chain = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
    >>> chain.order, chain.sources
    (('a', 'b'), ('source',))
    """

    name: str
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]
    source_shares: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(bool(self.operators), "no operators: add at least one [[operators]] table")
        seen: set[str] = set()
        for operator in self.operators:
            require(operator.name not in seen, f"operator {operator.name!r} is there twice: rename one of the two")
            seen.add(operator.name)
        pairs: set[tuple[str, str]] = set()
        for edge in self.edges:
            self._check_edge(edge, seen)
            pair = (edge.origin, edge.target)
            require(
                pair not in pairs, f"edge {edge.origin!r} -> {edge.target!r} is there twice: add their selectivities"
            )
            pairs.add(pair)
        require(any(is_source(e.origin) for e in self.edges), 'no source: add an edge with from = "source"')
        for source, share in self.source_shares.items():
            require(source in self.sources, f"source {source!r} has a share but no edge: remove one or add the other")
            require_number(share, f"share of {source!r}")
        unfed = sorted(seen - self._reached())
        require(
            not unfed, f"no path from a source to {', '.join(map(repr, unfed[:5]))}: add an edge or remove the operator"
        )

    def _check_edge(self, edge: Edge, known: set[str]) -> None:
        for end, outside in ((edge.origin, is_source(edge.origin)), (edge.target, is_sink(edge.target))):
            if not outside and end not in known:
                raise BadInput(
                    f"edge {edge.origin!r} -> {edge.target!r}: unknown operator {end!r}{_nearest(end, known)}"
                )

    def _reached(self) -> set[str]:
        follow: dict[str, list[str]] = {}
        for edge in self.edges:
            follow.setdefault(SOURCE if is_source(edge.origin) else edge.origin, []).append(edge.target)
        reached: set[str] = set()
        frontier = [SOURCE]
        while frontier:
            fresh = [t for t in follow.get(frontier.pop(), ()) if t not in reached and not is_sink(t)]
            reached.update(fresh)
            frontier.extend(fresh)
        return reached

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(operator.name for operator in self.operators)

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(e.origin for e in self.edges if is_source(e.origin)))

    @cached_property
    def inner_edges(self) -> tuple[Edge, ...]:
        """Edges between two operators, without those from sources or to sinks."""
        return tuple(e for e in self.edges if not is_source(e.origin) and not is_sink(e.target))

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.names, self.inner_edges)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Operators upstream first; within a loop, in the order they are first reached."""
        return tuple(_upstream_first(self))

    @cached_property
    def edges_back(self) -> tuple[Edge, ...]:
        """Edges that lead from an operator to itself or to one before it: every loop has one."""
        rank = {name: i for i, name in enumerate(self.order)}
        return tuple(e for e in self.inner_edges if rank[e.origin] >= rank[e.target])

    @cached_property
    def has_loop(self) -> bool:
        return bool(self.edges_back)

    def with_operators(self, operators: tuple[Operator, ...]) -> Topology:
        """A copy with other figures for the same operators, in the same order; cached graph properties are kept."""
        twin = object.__new__(Topology)
        twin.__dict__.update(self.__dict__, graph=self.graph, operators=operators)
        return twin

    def operator(self, name: str) -> Operator:
        return self.operators[self.index[name]]

    def share_of(self, source: str) -> float:
        return self.source_shares.get(source, 1.0)


def _upstream_first(topology: Topology) -> Iterator[str]:
    """Reverse postorder of a depth-first search: a topological order wherever there is no loop."""
    follow: dict[str, list[str]] = {name: [] for name in topology.names}
    for edge in topology.inner_edges:
        follow[edge.origin].append(edge.target)
    roots = [e.target for e in topology.edges if is_source(e.origin)]
    done: set[str] = set()
    postorder: list[str] = []
    for root in reversed(roots):
        if root in done:
            continue
        done.add(root)
        trail = [(root, iter(reversed(follow[root])))]
        while trail:
            name, rest = trail[-1]
            fresh = next((t for t in rest if t not in done), None)
            if fresh is None:
                postorder.append(name)
                trail.pop()
            else:
                done.add(fresh)
                trail.append((fresh, iter(reversed(follow[fresh]))))
    return reversed(postorder)


def _nearest(name: str, known: set[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else f" (known: {', '.join(sorted(known)[:8])})"
