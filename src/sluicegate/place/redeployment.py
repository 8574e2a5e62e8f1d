"""The steps that move a running instance without losing a row (Mc-Stream 5.5), as data for the runtime to execute.

A replica starts while the old instance still processes rows. Our reading: the paper names state migration and gives no
protocol; state must move first, then rows. So the upstream buffers this instance's rows, the old one drains its queue,
its state moves, and only then do rows flow to the replica, the buffered ones first. All other instances keep running.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sluicegate.domain import Topology


class Act(Enum):
    """One step of a move; each starts after the previous one has ended."""

    START_REPLICA = "start a replica on the target"
    AWAIT_READY = "wait until the replica is ready; the old instance still serves"
    HOLD_ROWS = "hold this instance's rows at the upstream"
    DRAIN_OLD = "let the old instance finish the rows it has"
    MOVE_STATE = "move its state to the replica"
    SWITCH_UPSTREAM = "route to the replica, held rows first"
    REMOVE_OLD = "remove the old instance and free its slot"


STATEFUL = (
    Act.START_REPLICA,
    Act.AWAIT_READY,
    Act.HOLD_ROWS,
    Act.DRAIN_OLD,
    Act.MOVE_STATE,
    Act.SWITCH_UPSTREAM,
    Act.REMOVE_OLD,
)
STATELESS = (Act.START_REPLICA, Act.AWAIT_READY, Act.SWITCH_UPSTREAM, Act.DRAIN_OLD, Act.REMOVE_OLD)


@dataclass(frozen=True, slots=True)
class RedeploymentStep:
    """One step, its operator, and where it happens: slots of the instance, or operators or sources upstream."""

    act: Act
    operator: str
    at: tuple[str, ...]


def steps_without_loss(topology: Topology, operator: str, origin: str, target: str) -> tuple[RedeploymentStep, ...]:
    """The ordered steps that move the instance of ``operator`` on the slot ``origin`` to the slot ``target``.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("count", 9.0, stateful=True),), (Edge("source", "count"),))
    >>> [step.act.name for step in steps_without_loss(one, "count", "n1/1", "n2/1")][3:]
    ['DRAIN_OLD', 'MOVE_STATE', 'SWITCH_UPSTREAM', 'REMOVE_OLD']
    """
    upstream = tuple(edge.origin for edge in topology.edges if edge.target == operator)
    places = {
        Act.START_REPLICA: (target,),
        Act.AWAIT_READY: (target,),
        Act.HOLD_ROWS: upstream,
        Act.DRAIN_OLD: (origin,),
        Act.MOVE_STATE: (origin, target),
        Act.SWITCH_UPSTREAM: upstream,
        Act.REMOVE_OLD: (origin,),
    }
    stateful = operator in topology.index and topology.operator(operator).stateful
    return tuple(RedeploymentStep(act, operator, places[act]) for act in (STATEFUL if stateful else STATELESS))
