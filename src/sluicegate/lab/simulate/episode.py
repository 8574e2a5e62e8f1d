"""Runs a simulated pipeline under the control loop, with the same `loop.tick` as on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.control import loop
from sluicegate.control.loop import Settings
from sluicegate.domain import Decision, Observation
from sluicegate.errors import BadInput
from sluicegate.lab.simulate.arrivals import trace
from sluicegate.lab.simulate.records import Net
from sluicegate.lab.simulate.scenario import Mode
from sluicegate.lab.simulate.stepping import advance, apply, begin


@dataclass(frozen=True, slots=True)
class Moment:
    """One interval: the observation at its end, and the decision."""

    observation: Observation
    decision: Decision


@dataclass(frozen=True, slots=True)
class Episode:
    """A whole run. Rows are counted at both ends, so that lost or duplicated rows show."""

    moments: tuple[Moment, ...]
    interval_s: float
    rows_in: int
    rows_out: int
    rows_inside: int
    kept_share: float | None
    slot_seconds: float

    @property
    def rescales(self) -> int:
        return sum(moment.decision.moves for moment in self.moments)


@dataclass(frozen=True, slots=True)
class Course:
    """The load of a run in steps, and the delay and pause of a rescale."""

    rates_per_s: tuple[float, ...]
    step_s: float
    interval_s: float = 10.0
    startup_s: float = 0.0
    pause_s: float = 0.0
    mode: Mode = "queue"

    def __post_init__(self) -> None:
        if not self.rates_per_s or not self.step_s > 0 or not self.interval_s > 0:
            raise BadInput("a course needs rates, a step and an interval above 0 s")

    @property
    def seconds(self) -> float:
        return len(self.rates_per_s) * self.step_s


def run_episode(settings: Settings, course: Course, allocation: Mapping[str, int], seed: int) -> Episode:
    """Run the loop along the course, starting from ``allocation``; the same seed gives the same run.

    >>> from sluicegate.domain import Edge, Goal, Operator, Topology
    >>> from sluicegate.control.settings import Timing, settings_for
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> settings = settings_for("sluicegate", one, Goal(mean_s=0.5), timing=Timing(10.0, 10.0))
    >>> episode = run_episode(settings, Course((20.0, 60.0), step_s=300.0), {"a": 3}, seed=1)
    >>> episode.rows_in == episode.rows_out + episode.rows_inside, episode.moments[-1].decision.running["a"] > 5
    (True, True)
    """
    world = begin(settings.topology, trace(course.step_s, course.rates_per_s), allocation, seed, mode=course.mode)
    state, moments = loop.start(settings), []
    count = int(course.seconds / course.interval_s + 1e-9)
    for step in range(1, count + 1):
        now_s = step * course.interval_s
        seen = advance(world, now_s)
        state, decision = loop.tick(state, seen, now_s)
        apply(
            world,
            decision.running,
            startup_s=course.startup_s,
            pause_s=course.pause_s,
            shares=decision.shares,
            pace_s=decision.pace_s,
        )
        moments.append(Moment(seen, decision))
    totals = world.net.totals
    return Episode(
        moments=tuple(moments),
        interval_s=course.interval_s,
        rows_in=int(totals["inputs"][0]),
        rows_out=int(totals["completed"][0]),
        rows_inside=_inputs_inside(world.net),
        kept_share=kept_share(moments, settings),
        slot_seconds=sum(sum(moment.observation.running.values()) for moment in moments) * course.interval_s,
    )


def _inputs_inside(net: Net) -> int:
    """Inputs with rows still in the pipeline: the entries of their pool that are not free."""
    follow, place, free = net.inputs["next"].tolist(), int(net.totals["free_input"][0]), 0
    while place:
        place, free = follow[place], free + 1
    return len(follow) - 1 - free


def kept_share(moments: list[Moment], settings: Settings) -> float | None:
    """Share of rows that arrived in intervals in which every latency promise was kept; ``None`` without a promise.

    An interval with arrivals but no output does not count as kept.
    """
    bounds = settings.goal.latency_bounds
    if not bounds:
        return None
    kept = total = 0.0
    for moment in moments:
        rows = moment.observation.arrivals_per_s or 0.0
        total += rows
        sojourn = moment.observation.sojourn
        if sojourn is not None:
            measured = sojourn.by_name
            late = any((value := measured[what]) is None or value > bound for what, bound in bounds.items())
            kept += 0.0 if late else rows
    return kept / total if total > 0 else 1.0
