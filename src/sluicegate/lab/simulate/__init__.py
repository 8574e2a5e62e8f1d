"""Event simulation of a pipeline: queues, servers, batches, back-pressure, placement, rescaling and failures."""

from sluicegate.lab.simulate.arrivals import Arrivals, deterministic, poisson, renewal, trace
from sluicegate.lab.simulate.distributions import Distribution
from sluicegate.lab.simulate.scenario import Behaviour, Load, Mode, RowRouting, shuffle, spread, weighted
from sluicegate.lab.simulate.simulation import OperatorResult, SimulationResult, simulate
from sluicegate.lab.simulate.stepping import advance, apply, begin, fail, inside
from sluicegate.lab.simulate.world import OperatorState, World

__all__ = [
    "Arrivals",
    "Behaviour",
    "Distribution",
    "Load",
    "Mode",
    "OperatorResult",
    "OperatorState",
    "RowRouting",
    "SimulationResult",
    "World",
    "advance",
    "apply",
    "begin",
    "deterministic",
    "fail",
    "inside",
    "poisson",
    "renewal",
    "shuffle",
    "simulate",
    "spread",
    "trace",
    "weighted",
]
