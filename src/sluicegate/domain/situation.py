"""The complete input of a policy, with the forecast of the load and its uncertainty.

numpy and scipy are imported only where they are used: commands that only read a run import this module too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
from collections.abc import Mapping

from sluicegate.domain.goal import Goal, Limits
from sluicegate.domain.observation import Observation
from sluicegate.domain.topology import Topology


def _no_scores() -> NDArray[np.float64]:
    import numpy as np

    return np.empty(0)


@dataclass(frozen=True, eq=False, slots=True)
class Forecast:
    """External rate at the coming steps: element ``h`` is ``h + 1`` steps of ``step_s`` ahead.

    ``scores`` are sorted standardised errors ``(actual - mean)/sd`` of past forecasts; without them errors are
    taken as normal.
    """

    step_s: float
    mean_per_s: NDArray[np.float64]
    sd_per_s: NDArray[np.float64]
    scores: NDArray[np.float64] = field(default_factory=_no_scores)

    def __post_init__(self) -> None:
        if len(self.mean_per_s) != len(self.sd_per_s) or not len(self.mean_per_s):
            raise ValueError("a forecast needs as many deviations as means, and at least one")

    def upper_per_s(self, level: float) -> NDArray[np.float64]:
        """The rate not exceeded with probability ``level``, step by step.

        >>> import numpy as np
        >>> f = Forecast(60.0, np.array([100.0]), np.array([10.0]))
        >>> f.upper_per_s(0.975).round(1).tolist()
        [119.6]
        """
        upper: NDArray[np.float64] = (self.mean_per_s + self._score(level) * self.sd_per_s).clip(0.0)
        return upper

    def peak_per_s(self, level: float) -> float:
        """The largest of the steps' ``level`` quantiles."""
        return float(self.upper_per_s(level).max())

    def _score(self, level: float) -> float:
        n = len(self.scores)
        if n == 0:
            from scipy.special import ndtri

            return float(ndtri(level))
        # split conformal: the ceil((n+1) q)-th smallest score covers a new one with probability at least q
        rank = math.ceil((n + 1) * level)
        return float(self.scores[min(max(rank, 1), n) - 1])


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
