"""The plan in force: k, pace, shares and key groups of every operator, executors, nodes and places, in one small file.

The controller writes it, the pipeline reads it at every batch; neither waits for the other, and if the controller dies
the file stays and the pipeline goes on as it was.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sluicegate.runlog.files import read_if_there, write_whole

USUAL_MOST_ROWS = 5_000_000
"""Of one batch where nothing bounds its duration. At half, large backlogs take more batches; at double, more memory."""
MOST_BEHIND = 20_000_000
MOST_PROCESSORS = 1_000_000
MOST_PACE_S = 1e6
MOST_PLANNED_GROUPS = 10_000
"""Sanity limits: no loop writes a plan beyond these; half or double of them is as far from any pipeline."""


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """Plan of one operator: ``processors`` tasks a batch, a batch at most every ``pace_s``.

    Rows are cut by ``shares`` (equal if empty). ``most_rows`` caps what one batch takes, so that a backlog is worked
    off in batches that end; ``most_behind`` is how many rows its readers may be behind it: beyond that it starts no
    batch, and the rows wait where they are. ``groups`` are the tasks of its key groups, if it has state; ``hosts`` the
    hosts its tasks should run on, one each (Spark chooses if empty). ``key_groups`` is the number of key groups its
    state should be in (0: unchanged).
    """

    processors: int = 1
    pace_s: float = 0.0
    shares: tuple[float, ...] = ()
    most_rows: int = USUAL_MOST_ROWS
    most_behind: int = MOST_BEHIND
    groups: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    key_groups: int = 0


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """The plan of all operators; ``version`` grows with every change.

    ``executors`` and ``nodes`` are how many there should be (``None``: unchanged), ``leaving`` the nodes to give back,
    ``decision`` the number in the decision log that says why.
    """

    version: int = 0
    operators: Mapping[str, OperatorPlan] = field(default_factory=dict)
    executors: int | None = None
    nodes: int | None = None
    leaving: tuple[str, ...] = ()
    decision: int | None = None

    def of(self, name: str) -> OperatorPlan:
        return self.operators.get(name, OperatorPlan())

    def to_json(self) -> str:
        operators = {name: asdict(operator) for name, operator in self.operators.items()}
        return json.dumps(
            {
                "version": self.version,
                "operators": operators,
                "executors": self.executors,
                "nodes": self.nodes,
                "leaving": self.leaving,
                "decision": self.decision,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> PlanInForce:
        """
        >>> one = PlanInForce(3, {"count": OperatorPlan(4, 0.5, (1.0, 2.0))})
        >>> PlanInForce.from_json(one.to_json()) == one
        True
        """
        read = json.loads(text)
        operators = {
            str(name): _sane(
                OperatorPlan(
                    int(p["processors"]),
                    float(p["pace_s"]),
                    tuple(float(s) for s in p["shares"]),
                    int(p["most_rows"]),
                    int(p.get("most_behind", MOST_BEHIND)),
                    tuple(int(task) for task in p.get("groups", ())),
                    tuple(str(host) for host in p.get("hosts", ())),
                    int(p.get("key_groups", 0)),
                )
            )
            for name, p in read["operators"].items()
        }
        return cls(
            int(read["version"]),
            operators,
            _count(read.get("executors")),
            _count(read.get("nodes")),
            tuple(str(name) for name in read.get("leaving", ())),
            _count(read.get("decision")),
        )


def _sane(plan: OperatorPlan) -> OperatorPlan:
    """The plan of an operator if its values are within limits; otherwise a ``ValueError``."""
    sane = (
        1 <= plan.processors <= MOST_PROCESSORS
        and 0.0 <= plan.pace_s <= MOST_PACE_S
        and plan.most_rows >= 1
        and plan.most_behind >= 0
        and all(0 <= task < MOST_PROCESSORS for task in plan.groups)
        and 0 <= plan.key_groups <= MOST_PLANNED_GROUPS
    )
    if not sane:
        raise ValueError(f"no batch can be cut by {plan}")
    return plan


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int) else None


class PlanFile:
    """Reads the plan again only when the file changed: otherwise a read costs one ``stat``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._plan = PlanInForce()

    def read(self) -> PlanInForce:
        try:
            status = self._path.stat()
        except OSError:
            return self._plan
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            # an invalid plan, edited by hand, or one that cannot be read is ignored: the last valid one stays in force
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                try:
                    text = read_if_there(self._path)
                except OSError:
                    return self._plan  # and tried again at the next batch
                if text is not None:
                    self._plan = PlanInForce.from_json(text)
            self._stamp = stamp
        return self._plan

    def write(self, plan: PlanInForce) -> None:
        write_whole(self._path, plan.to_json())

    def change(self, operators: Mapping[str, OperatorPlan]) -> None:
        """Write the next version of the plan, with these operators replaced and all else unchanged."""
        plan = self.read()
        self.write(replace(plan, version=plan.version + 1, operators={**plan.operators, **operators}))

    def add(self, processors: Mapping[str, int]) -> None:
        """Add operators that are not in the plan yet, with this k; a resumed one keeps its plan."""
        known = self.read().operators
        self.change({name: OperatorPlan(k) for name, k in processors.items() if name not in known})
