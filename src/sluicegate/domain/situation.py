"""All that a policy may look at when it proposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain.forecast import Forecast
from sluicegate.domain.goal import Goal, Limits
from sluicegate.domain.observation import Observation
from sluicegate.domain.topology import Topology


@dataclass(frozen=True, slots=True)
class Cores:
    """Processor time in seconds a batch, a task and a row of each operator, and the cores for it (``model.node_law``).

    ``there`` are those of all nodes, ``free`` what others leave of them, ``each`` those of a node.
    """

    per_batch_s: float
    per_task_s: float
    per_row_s: Mapping[str, float]
    there: float
    free: float
    each: float = 1.0


@dataclass(frozen=True, slots=True)
class Situation:
    """One moment of a pipeline, ready to be planned for.

    ``topology`` carries the service rates, variabilities and batch costs as learned so far. ``arrivals_per_s`` is the
    load to plan for: the pipeline's rate (what a source of share 1 sends), and per operator (as learned while all kept
    up, before that by the traffic equations). ``observation`` is smoothed. ``service_rsd`` is the relative standard
    error of each learned service rate. ``cores`` is what batches cost in processor time, once that is known.
    """

    now_s: float
    topology: Topology
    observation: Observation
    arrivals_per_s: float
    operator_arrivals_per_s: Mapping[str, float]
    goal: Goal = field(default_factory=Goal)
    limits: Limits = field(default_factory=Limits)
    forecast: Forecast | None = None
    service_rsd: Mapping[str, float] = field(default_factory=dict)
    cores: Cores | None = None

    @property
    def running(self) -> Mapping[str, int]:
        return self.observation.running
