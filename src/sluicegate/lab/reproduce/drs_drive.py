"""Runs the control loop with DRS minute by minute on a simulated pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluicegate.control import loop
from sluicegate.control.loop import Settings
from sluicegate.control.rules import Rules
from sluicegate.lab.reproduce.drs_apps import Split, named, split_of
from sluicegate.lab.simulate.scenario import Load
from sluicegate.lab.simulate.stepping import advance, apply, begin

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class DrsMove:
    """A re-allocation at the end of a minute."""

    minute: int
    before: Split
    after: Split

    @property
    def added(self) -> int:
        return sum(self.after) - sum(self.before)


@dataclass(frozen=True, slots=True)
class DrsRun:
    """The moves of a run, and the mean sojourn of each minute (the first minute is number 1)."""

    moves: tuple[DrsMove, ...]
    minutes_s: tuple[float, ...]


def rules(minutes_apart: int) -> Rules:
    """Governor rules with T_ra only, so that DRS alone decides."""
    return Rules(minutes_apart * MINUTE_S, 0.0, 0.0, 0.0, math.inf, 0.0, math.inf, 0.0)


def drive(
    settings: Settings, load: Load, start: Split, minutes: int, seed: int, adding_s: float, else_s: float
) -> DrsRun:
    """Tick once a minute; a move that adds processors pauses the whole application, others only what changes."""
    topology, state = settings.topology, loop.start(settings)
    world = begin(topology, load, named(topology, start), seed)
    moves: list[DrsMove] = []
    means: list[float] = []
    for minute in range(1, minutes + 1):
        seen = advance(world, minute * MINUTE_S)
        state, decision = loop.tick(state, seen, minute * MINUTE_S)
        means.append(seen.sojourn.mean_s if seen.sojourn else math.inf)
        if decision.moves:
            move = DrsMove(minute, split_of(topology, seen.running), split_of(topology, decision.running))
            moves.append(move)
            touched = [change.operator for change in decision.rescales]
            pauses = dict.fromkeys(topology.names, adding_s) if move.added > 0 else dict.fromkeys(touched, else_s)
            apply(world, decision.running, pause_s=pauses)
    return DrsRun(tuple(moves), tuple(means))
