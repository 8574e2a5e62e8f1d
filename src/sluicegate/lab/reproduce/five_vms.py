"""Model-driven scheduling on a fixed cluster of five VMs with four slots: planned, predicted and reached rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluicegate.domain import Topology, Vm
from sluicegate.lab.reproduce.slot_plans import Pair, most_on
from sluicegate.lab.reproduce.stable_rate import Seen, stable_per_s, watch
from sluicegate.model.mapping_rate import Routing, mapping_rate, vm_loads

FLEET = tuple(Vm(f"vm-{number}", 4) for number in range(1, 6))
STEP_PER_S = 10.0


@dataclass(frozen=True, eq=False, slots=True)
class Reached:
    """The result of a pair on the cluster; rates are the dataflow's, use is a share of each VM."""

    pair: Pair
    planned_per_s: float
    predicted_per_s: float
    even_per_s: float
    simulated_per_s: float
    seen: Seen
    predicted_cpu: dict[str, float]
    predicted_memory: dict[str, float]


def reach(pair: Pair, topology: Topology) -> Reached:
    """Plan the highest rate that fits, predict by the model, and search the highest stable rate by simulation."""
    plan = most_on(pair, topology, FLEET, STEP_PER_S)
    model = mapping_rate(topology, plan.placement)
    predicted, even = (model.rate_per_s(routing) for routing in (Routing.SLOT_AWARE, Routing.EVEN))
    simulated = stable_per_s(topology, plan.placement, STEP_PER_S, 2 * plan.rate_per_s)
    loads = vm_loads(topology, plan.placement, predicted, Routing.SLOT_AWARE)
    return Reached(
        pair=pair,
        planned_per_s=plan.rate_per_s,
        predicted_per_s=predicted,
        even_per_s=even,
        simulated_per_s=simulated,
        seen=watch(topology, plan.placement, max(simulated, STEP_PER_S)),
        predicted_cpu={name: load.cpu / load.slots for name, load in loads.items()},
        predicted_memory={name: load.memory / load.slots for name, load in loads.items()},
    )


def r_squared(one: list[float], other: list[float]) -> float:
    """Squared correlation; 0 if one of the two does not vary.

    >>> r_squared([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    1.0
    """
    a, b = np.array(one) - np.mean(one), np.array(other) - np.mean(other)
    spread = float(a @ a) * float(b @ b)
    return round(float(a @ b) ** 2 / spread, 12) if spread > 0 else 0.0
