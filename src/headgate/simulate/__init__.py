"""Event simulation of a pipeline: queues, servers, batches, back-pressure, placement, rescaling and failures."""

from headgate.simulate.arrivals import Arrivals, bursty, deterministic, poisson, renewal, trace
from headgate.simulate.distributions import Distribution
from headgate.simulate.result import OperatorResult, SimulationResult
from headgate.simulate.scenario import Behaviour, Load, Mode, Routing, keyed, shared, shuffle, weighted
from headgate.simulate.simulation import simulate
from headgate.simulate.state import OperatorState
from headgate.simulate.stepping import advance, apply, begin, fail, fail_machine, inside
from headgate.simulate.world import World

__all__ = [
    "Arrivals",
    "Behaviour",
    "Distribution",
    "Load",
    "Mode",
    "OperatorResult",
    "OperatorState",
    "Routing",
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
    "trace",
    "weighted",
]
