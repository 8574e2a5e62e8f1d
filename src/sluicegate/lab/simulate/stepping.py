"""Steps a simulated pipeline that is rescaled while it runs: the interface for the control loop.

    world = begin(topology, load, allocation, seed)
    for each interval:
        observation = advance(world, until_s)
        state, decision = tick(state, observation, until_s)
        apply(world, decision.running, startup_s=..., pause_s=...)

New processors are available ``startup_s`` later (machines take time to start); removals are immediate. At both the
operator pauses for ``pause_s``, or for as long as its state takes to move (Eq 25). ``fail`` removes processors for a
time. A ``World`` is changed in place; everything else here is immutable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from sluicegate.domain import Observation, Topology
from sluicegate.domain.topology import require, require_number
from sluicegate.lab.simulate import kernel
from sluicegate.lab.simulate.build import build
from sluicegate.lab.simulate.observing import mark, observe
from sluicegate.lab.simulate.records import rows_inside
from sluicegate.lab.simulate.scenario import Behaviour, Load, Mode, scenario
from sluicegate.lab.simulate.world import (
    Growth,
    OperatorState,
    World,
    open_servers,
    pause,
    put_down,
    rescale,
    set_paces,
    set_shares,
)

_LOGGED_BATCHES = 65_536


def begin(
    topology: Topology,
    load: Load,
    allocation: Mapping[str, int],
    seed: int,
    *,
    mode: Mode = "queue",
    behaviour: Behaviour | None = None,
    state: Mapping[str, OperatorState] | None = None,
) -> World:
    """An empty pipeline at time 0.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> world = begin(one, 15.0, {"a": 2}, seed=1)
    >>> seen = advance(world, 60.0)
    >>> apply(world, {"a": 3}, startup_s=30.0)
    >>> [advance(world, at).running["a"] for at in (75.0, 90.0)]
    [2, 3]
    """
    order = scenario(topology, load, allocation, mode, behaviour)
    net = build(order, seed, log=_LOGGED_BATCHES)
    return World(order, net, mark(net), dict(state or {}))


def advance(world: World, until_s: float) -> Observation:
    """Run the pipeline to ``until_s``; return the observation since the last call."""
    require_number(until_s, "until_s", least=world.now_s, above=True)
    while True:
        pending = _next_change(world)
        if pending > until_s:
            break
        _run(world, pending)
        _make_due_changes(world)
    _run(world, until_s)
    seen = observe(world.scenario, world.net, world.marked, world.now_s, world.running, world.processor_s)
    world.marked = mark(world.net, world.now_s)
    world.net.totals["logged"] = 0
    world.processor_s = {}
    return replace(seen, rescaling=world.rescaling)


def inside(world: World) -> int:
    """Rows in the pipeline now, including those held outside by back-pressure."""
    return rows_inside(world.net)


def apply(
    world: World,
    allocation: Mapping[str, int],
    *,
    pause_s: float | Mapping[str, float] | None = None,
    startup_s: float = 0.0,
    shares: Mapping[str, tuple[float, ...]] | None = None,
    pace_s: Mapping[str, float] | None = None,
) -> None:
    """Start a rescale to ``allocation``; it replaces earlier rescales that are still in progress.

    If the allocation of an operator equals its running processors nothing is changed, and rescales in progress go on:
    a loop sends this when it wants no change. Failed processors do not count and are replaced.
    ``pause_s`` as a number pauses every operator that changes; by name, those named, changed or not; by default the
    pause is the time to move an operator's state. ``shares`` apply to operators with one queue per instance,
    ``pace_s`` to operators in batches.
    """
    require_number(startup_s, "startup_s")
    names = {*allocation, *(shares or {}), *(pace_s or {}), *(pause_s if isinstance(pause_s, Mapping) else ())}
    for name in sorted(names):
        require(name in world.scenario.topology.index, f"unknown operator {name!r}: leave it out")
    for name, want in allocation.items():
        require(want >= 1, f"{want} processors for {name!r}: give at least 1")
    set_shares(world, shares or {})
    set_paces(world, pace_s or {})
    for name, want in allocation.items():
        _aim(world, name, want, _pause_for(world, name, want, pause_s), startup_s)
    if isinstance(pause_s, Mapping):
        for name in sorted(pause_s.keys() - {growth.operator for growth in world.growths}):
            pause(world, name, pause_s[name])
    _make_due_changes(world)


def fail(world: World, failed: Mapping[str, int], *, startup_s: float = 0.0, repair_s: float | None = None) -> None:
    """Fail the last processors of these operators, as many as given. Their rows go back and are served again.

    They are back after ``startup_s`` (a new machine) plus ``repair_s``, by default Eq 26 for a stateful operator, else
    0. An operator in batches is paused for that time, and its batch is repeated.
    """
    for name, count in failed.items():
        require(name in world.scenario.topology.index, f"unknown operator {name!r} cannot fail: leave it out")
        up = [j for j in range(world.servers(name)) if (name, j) not in world.down_until]
        _fail(world, name, up[len(up) - min(count, len(up)) :], startup_s, repair_s)


def _fail(world: World, name: str, failed: list[int], startup_s: float, repair_s: float | None) -> None:
    require_number(startup_s, "startup_s")
    state = world.state.get(name)
    if repair_s is None:
        arrivals = float(world.net.nodes["arrivals"][world.index(name)])
        each_per_s = arrivals / world.now_s / world.servers(name) if world.now_s > 0 else 0.0
        service_per_s = world.scenario.topology.operator(name).service_per_s
        repair_s = state.repair_s(each_per_s, service_per_s) if state else 0.0
    require_number(repair_s, "repair_s")
    put_down(world, name, failed, world.now_s + startup_s + repair_s)


def _aim(world: World, name: str, want: int, pause_s: float, startup_s: float) -> None:
    """Shrink now, or schedule new processors; scheduled growth beyond ``want`` is cancelled."""
    have, size = world.servers(name), _size_for(world, name, want)
    if want == world.running[name]:
        return
    coming = [replace(g, servers=min(g.servers, size)) for g in world.growths if g.operator == name]
    world.growths = [g for g in world.growths if g.operator != name]
    if size < have:
        rescale(world, name, size)
        pause(world, name, pause_s)
    elif size > have:
        world.growths += [g for g in coming if g.servers > have]
        if max((g.servers for g in coming), default=have) < size:
            world.growths.append(Growth(world.now_s + startup_s, name, size, pause_s))


def _size_for(world: World, name: str, want: int) -> int:
    """The number of processors needed for ``want`` to run, as failed ones do not count."""
    size = up = 0
    while up < want:
        up += (name, size) not in world.down_until
        size += 1
    return size


def _pause_for(world: World, name: str, want: int, pause_s: float | Mapping[str, float] | None) -> float:
    if isinstance(pause_s, Mapping):
        return pause_s.get(name, 0.0)
    if pause_s is not None:
        return pause_s
    state = world.state.get(name)
    return state.move_s(world.servers(name), want) if state else 0.0


def _next_change(world: World) -> float:
    coming = (growth.at_s for growth in world.growths)
    return min((*coming, *world.paused_until.values(), *world.down_until.values()), default=math.inf)


def _make_due_changes(world: World) -> None:
    """Apply due changes: processors that have started, pauses and failures that are over."""
    due = sorted((g for g in world.growths if g.at_s <= world.now_s), key=lambda g: (g.at_s, g.servers))
    world.growths = [g for g in world.growths if g.at_s > world.now_s]
    for growth in due:
        if growth.servers > world.servers(growth.operator):
            rescale(world, growth.operator, growth.servers)
            pause(world, growth.operator, growth.pause_s)
    over = [name for name, until in world.paused_until.items() if until <= world.now_s]
    up = [key for key, until in world.down_until.items() if until <= world.now_s]
    for name in over:
        del world.paused_until[name]
    for key in up:
        del world.down_until[key]
    for name in dict.fromkeys([*over, *(operator for operator, _ in up)]):
        open_servers(world, name)


def _run(world: World, until_s: float) -> None:
    for name, count in world.running.items():
        world.processor_s[name] = world.processor_s.get(name, 0.0) + count * (until_s - world.now_s)
    world.net, _ = kernel.advance(world.net, until_s)
    world.now_s = until_s
