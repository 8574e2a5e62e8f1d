"""The complete input of a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain.forecast import Forecast
from sluicegate.domain.goal import Goal, Limits
from sluicegate.domain.observation import Observation
from sluicegate.domain.topology import Topology


@dataclass(frozen=True, slots=True)
class Cores:
    """CPU seconds per batch, per task and per row of each operator, and the cores available (``model.node_law``).

    ``there`` counts the cores of all nodes, ``free`` those not used by other processes, ``each`` the mean per node.
    """

    per_batch_s: float
    per_task_s: float
    per_row_s: Mapping[str, float]
    there: float
    free: float
    each: float = 1.0


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a pipeline at one time, as input for a policy.

    ``topology`` carries the service rates, variabilities and batch costs as learned so far. ``arrivals_per_s`` is the
    load to plan for: the pipeline's rate (what a source of share 1 sends). ``operator_arrivals_per_s`` is that load per
    operator, from visits learned while all operators kept up, before that from the traffic equations. ``observation``
    is smoothed. ``service_rsd`` is the relative standard error of each learned service rate. ``cores`` is the CPU time
    that batches cost, ``None`` until it is known.
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
