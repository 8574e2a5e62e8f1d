"""Event simulation of a pipeline: queues, servers, batches, back-pressure, placement, rescaling and failures."""

from sluicegate.lab.simulate.arrivals import Arrivals, bursty, deterministic, poisson, renewal, trace
from sluicegate.lab.simulate.distributions import Distribution
from sluicegate.lab.simulate.scenario import Behaviour, Load, Mode, RowRouting, keyed, shared, shuffle, spread, weighted
from sluicegate.lab.simulate.simulation import OperatorResult, SimulationResult, simulate
from sluicegate.lab.simulate.stepping import advance, apply, begin, fail, fail_machine, inside
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
    "bursty",
    "deterministic",
    "fail",
    "fail_machine",
    "inside",
    "keyed",
    "poisson",
    "renewal",
    "shared",
    "shuffle",
    "simulate",
    "spread",
    "trace",
    "weighted",
]
