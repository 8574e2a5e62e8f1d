"""Decides which neighbouring operators are fused into one query.

A hop adds a whole batch of latency: rows wait half a batch for the next query and then one batch in it, at least
1.5 (o + c k) by the micro-batch law, whatever the rows cost. Its benefit is a separate parallelism. Two stateless
neighbours gain nothing by it: fused, k processors run both functions at 1/(1/mu_1 + 1/mu_2), the same work on the
same processors, so b* = (o + c k)/(1 - rho) is paid once instead of twice. A stateless operator before a stateful one
becomes the map side of its shuffle: its rows never touch a disk, and Spark aggregates them before they move; it loses
a k beyond the key groups, for which there is ``fuse=False``. An operator after a stateful one keeps its own query:
fused, a batch that must pay for all state stores would also have to wait for its neighbour's rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.domain import BatchCosts
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Step

# Measured cost of small batches on Spark with edges on a local disk; the loop learns its own once it runs.
COSTS = BatchCosts(overhead_s=0.15, per_task_s=0.03, commit_s=0.03)
_LONGEST_NAME = 255
"""Most characters of a file name: a group's folder has its name."""


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that run as one query, upstream first, and why they do."""

    steps: tuple[Step, ...]
    why: str

    @property
    def name(self) -> str:
        return "+".join(step.name for step in self.steps)

    @property
    def first(self) -> Step:
        return self.steps[0]

    @property
    def last(self) -> Step:
        return self.steps[-1]

    @property
    def stateful(self) -> bool:
        return any(step.stateful for step in self.steps)

    @property
    def key_groups(self) -> int:
        """Those of its stateful operator; what is declared for stateless ones has no meaning."""
        return max(step.key_groups for step in [s for s in self.steps if s.stateful] or self.steps)

    def retry_for_s(self, otherwise: float | None) -> float | None:
        """Retry limit of its query: the smallest limit of its operators, else ``otherwise``."""
        return min((step.retry_for_s for step in self.steps if step.retry_for_s is not None), default=otherwise)

    @property
    def mode(self) -> str:
        return next((step.mode for step in self.steps if step.stateful), self.last.mode)


def groups_of(pipeline: Pipeline, fuse: bool = True) -> tuple[Group, ...]:
    """Group the operators into queries; every operator is in exactly one group."""
    groups: list[list[Step]] = []
    home: dict[str, list[Step]] = {}
    for step in pipeline.steps.values():
        before = _before(pipeline, step)
        joined = home.get(before.name) if fuse and before is not None else None
        if joined is not None and joined[-1] is before and _fits([*joined, step]):
            group = joined
            group.append(step)
        else:
            group = [step]
            groups.append(group)
        home[step.name] = group
    return tuple(Group(tuple(group), _why(group)) for group in groups)


def _fits(group: list[Step]) -> bool:
    return len("+".join(step.name for step in group)) <= _LONGEST_NAME


def _before(pipeline: Pipeline, step: Step) -> Step | None:
    """The operator ``step`` may be fused with: it writes the only input, which has no other reader and is not kept."""
    if not step.fuse or [len(union) for union in step.reads] != [1]:  # ``a | a`` has every row twice
        return None
    (stream,) = step.inputs
    origin = pipeline.steps.get(stream)
    if origin is None or origin.stateful or not origin.fuse or len(origin.streams) > 1:
        return None
    if step.stateful and origin.source is not None:
        return None  # a native source's rows are counted by its query's output, which state would change
    if stream in pipeline.topics:
        return None
    readers = [other for other in pipeline.steps.values() if stream in other.inputs]
    kept = any(sink.stream == stream for sink in pipeline.sinks.values()) or stream in pipeline.closed.values()
    return origin if len(readers) == 1 and not kept else None


def _why(group: list[Step]) -> str:
    if len(group) == 1:
        step = group[0]
        reason = "its state has a parallelism of its own" if step.stateful else "it has no stateless neighbour to join"
        return f"{step.name}: a query of its own, {reason if step.fuse else 'as asked'}"
    saved_s = 1.5 * (COSTS.overhead_s + COSTS.per_task_s) * (len(group) - 1)
    names = ", ".join(step.name for step in group)
    gain = f"no edge to {group[-1].name}'s shuffle" if group[-1].stateful else "nothing to gain from two"
    return f"{names}: one query: {gain}; saves {saved_s:.2f} s at least"
