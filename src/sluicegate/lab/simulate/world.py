"""The state of a simulated pipeline with its pending changes: growth, pauses, failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.lab.simulate.observing import Mark
from sluicegate.lab.simulate.records import Net
from sluicegate.lab.simulate.scenario import Scenario
from sluicegate.lab.simulate.state import OperatorState


@dataclass(frozen=True, slots=True)
class Growth:
    """Processors that are starting; ``servers`` is the operator's size once they are available at ``at_s``."""

    at_s: float
    operator: str
    servers: int
    pause_s: float


@dataclass(slots=True)
class World:
    """A network at time ``now_s``, with pending changes."""

    scenario: Scenario
    net: Net
    marked: Mark
    state: Mapping[str, OperatorState]
    now_s: float = 0.0
    growths: list[Growth] = field(default_factory=list)
    paused_until: dict[str, float] = field(default_factory=dict)
    down_until: dict[tuple[str, int], float] = field(default_factory=dict)
    processor_s: dict[str, float] = field(default_factory=dict)

    @property
    def running(self) -> dict[str, int]:
        """Processors by operator, without failed ones."""
        return {name: self.servers(name) - self._down(name) for name in self.scenario.topology.names}

    @property
    def rescaling(self) -> bool:
        return bool(self.growths or self.paused_until or self.down_until)

    def index(self, name: str) -> int:
        return self.scenario.topology.index[name]

    def servers(self, name: str) -> int:
        return int(self.net.nodes["servers"][self.index(name)])

    def _down(self, name: str) -> int:
        return sum(1 for operator, j in self.down_until if operator == name and j < self.servers(name))
