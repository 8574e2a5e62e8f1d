"""The state of a simulated pipeline with its pending changes, and changes made to it while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluicegate.domain.topology import require_number
from sluicegate.lab.simulate import rescaling
from sluicegate.lab.simulate.observing import Mark
from sluicegate.lab.simulate.placing import place, thread_per_s
from sluicegate.lab.simulate.records import BATCHED, WEIGHTED, Net
from sluicegate.lab.simulate.scenario import Discipline, Scenario, weighted
from sluicegate.model.state_move import Holder, Replay, repair_s, repartition_s


@dataclass(frozen=True, slots=True)
class OperatorState:
    """Size of an operator's state, and the speeds of moving it. ``kept_rows`` caps the rows kept for replay.

    The defaults are those of the paper's cluster: links of 100 Mbit/s, a backup every 2 seconds.
    """

    size_bytes: float
    compute_bytes_per_s: float = 1e9
    bandwidth_bytes_per_s: float = 12.5e6
    backup_interval_s: float = 2.0
    receive_per_s: float = 1e5
    kept_rows: float = 1e6

    def __post_init__(self) -> None:
        require_number(self.size_bytes, "state size in bytes")
        require_number(self.receive_per_s, "receive_per_s", above=True)

    def move_s(self, have: int, want: int) -> float:
        """Eq 25: the pause of a rescale from ``have`` to ``want`` instances; 0 if they are equal.

        >>> round(OperatorState(42e6).move_s(10, 15), 3), OperatorState(42e6).move_s(4, 4)
        (0.227, 0.0)
        """
        if have == want:
            return 0.0
        holder = Holder(self.compute_bytes_per_s, self.bandwidth_bytes_per_s)
        return repartition_s(self.size_bytes, want, [holder] * have)

    def repair_s(self, instance_arrivals_per_s: float, service_per_s: float) -> float:
        """Eq 26: how long a failed instance takes to receive and reprocess its rows since the last backup.

        >>> OperatorState(42e6).repair_s(35.0, 100.0)
        0.7
        """
        replay = Replay(instance_arrivals_per_s, self.receive_per_s, service_per_s)
        return repair_s(self.backup_interval_s, [replay], self.kept_rows)


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


def rescale(world: World, name: str, servers: int) -> None:
    """Change the number of processors of an operator, immediately."""
    index, routing = world.index(name), world.scenario.routing(name)
    own_queues = routing.discipline is not Discipline.SHARED
    world.net = rescaling.resize(world.net, index, servers, routing.shares(servers), own_queues, world.now_s)
    if name in world.scenario.batches:
        _fit_batches(world, name)
    elif world.scenario.behaviour.placement is not None:
        world.net = place(world.net, world.scenario, world.scenario.behaviour.placement)
    open_servers(world, name)


def pause(world: World, name: str, seconds: float) -> None:
    """Stop service of an operator for ``seconds``; extends a current pause that would end earlier."""
    require_number(seconds, f"pause of {name!r}")
    ends, would_end = world.paused_until.get(name, world.now_s), world.now_s + seconds
    if would_end > ends:
        rescaling.stretch(world.net, world.index(name), would_end - ends)
        world.paused_until[name] = would_end
        open_servers(world, name)


def put_down(world: World, name: str, failed: Sequence[int], until_s: float) -> None:
    """Fail these processors of an operator, counted from 0, until ``until_s``."""
    if not failed:
        return
    first = int(world.net.nodes["first"][world.index(name)])
    if name in world.scenario.batches:
        rescaling.break_off(world.net, first, world.now_s)
        pause(world, name, until_s - world.now_s)
        open_servers(world, name)
        return
    for j in failed:
        rescaling.break_off(world.net, first + j, world.now_s)
        world.down_until[name, j] = max(until_s, world.down_until.get((name, j), 0.0))
    open_servers(world, name)


def open_servers(world: World, name: str) -> None:
    """Open the servers that are up and not paused, close the others; free ones start on waiting rows."""
    index = world.index(name)
    node = world.net.nodes[index]
    first = int(node["first"])
    paused = name in world.paused_until
    for j in range(1 if node["discipline"] == BATCHED else int(node["servers"])):
        world.net.slots["open"][first + j] = not paused and (name, j) not in world.down_until
    rescaling.refresh(world.net, index, world.now_s)


def set_shares(world: World, shares: Mapping[str, tuple[float, ...]]) -> None:
    """Route by these shares from now on; only for operators with one queue per instance."""
    routing = dict(world.scenario.behaviour.routing)
    for name, given in shares.items():
        index = world.index(name)
        node = world.net.nodes[index]
        if world.scenario.routing(name).discipline is Discipline.SHARED or node["discipline"] == BATCHED:
            continue
        routing[name] = weighted(*given)
        node["discipline"] = WEIGHTED
        first, servers = int(node["first"]), int(node["servers"])
        world.net.slots["share"][first : first + servers] = _cumulative(routing[name].shares(servers))
    world.scenario = replace(world.scenario, behaviour=replace(world.scenario.behaviour, routing=routing))


def set_paces(world: World, pace_s: Mapping[str, float]) -> None:
    """Set the trigger interval of these operators' batches; 0 for back to back."""
    for name, pace in pace_s.items():
        require_number(pace, f"pace of {name!r}")
        world.net.nodes["pace_s"][world.index(name)] = pace


def _fit_batches(world: World, name: str) -> None:
    """Set the batch costs for the current number of tasks."""
    node = world.net.nodes[world.index(name)]
    costs, servers = world.scenario.batches[name], int(node["servers"])
    placement = world.scenario.behaviour.placement
    slowest = world.scenario.topology.operator(name).service_per_s
    if placement is not None:
        slowest = min(thread_per_s(world.scenario, placement, name, slot) for slot in placement.threads(name))
    node["overhead_s"] = costs.overhead_s + costs.per_task_s * servers
    node["per_row_s"] = 1 / (servers * slowest)


def _cumulative(shares: Sequence[float]) -> list[float]:
    total = 0.0
    return [total := total + share for share in shares]
