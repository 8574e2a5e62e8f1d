"""What bounds an on-time promise: on-time's forecast with the true capacity curve and a fixed price of a late step.

    moving at once   goes to the best number at every decision: what is left is the forecast's
    holding          rescales as rarely as on-time does: what it costs above the first is the price of few rescales

What on-time costs above the second, at the price that just reaches the target, is that of learning price and curve.
Part of the budget may be gone before anybody has decided anything: ``lost_at_the_start``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sluicegate.domain import Forecast
from sluicegate.forecast.calibrated import Calibrated
from sluicegate.lab.replay.jobs import Yardstick, facts_of, scored, yardstick
from sluicegate.lab.replay.players import Facts
from sluicegate.lab.replay.replay import ReplayOptions, jobs_of, replay
from sluicegate.lab.replay.world import STEP_S, Floats, Ints, Protocol, Truth
from sluicegate.policy.on_time import CapacityBelief, OnTime, Steps

BOUNDS = {"moving at once": False, "holding": True}
PRICES = tuple(2.0**n for n in range(1, 16))  # machine steps for a late one
Found = tuple[str, float, float, float]


def bounds(values: Floats, protocol: Protocol, truth: Truth, runs: int) -> Iterator[Found]:
    """For each bound and price its name, the share on time, the cost against hindsight and the rescales."""
    facts = facts_of_runs(values, protocol, truth, runs)
    yards = [yardstick(known) for known in facts]
    timing = Steps(protocol.cycle_steps, protocol.startup_steps, protocol.lead_steps)
    asked = [(name, price) for name in BOUNDS for price in PRICES]
    rules = [OnTime(facts[0].target, timing, price, BOUNDS[name]) for name, price in asked]
    for (name, price), machines in zip(asked, _priced(facts[0], rules), strict=True):
        yield f"{name} at {price:g}", *_judged(machines, facts, yards)


def lost_at_the_start(values: Floats, protocol: Protocol, truth: Truth, runs: int) -> Found:
    """A policy that is perfect from the first step that it can decide for: the most that anybody can be on time.

    Until then all run what the trace's first rate and 20% need.
    """
    facts = facts_of_runs(values, protocol, truth, runs)
    first = max(protocol.cycle_steps, protocol.bound[0])
    start = np.full(first, truth.needs(float(facts[0].rates_per_s[0]) * 1.2))
    late = [np.mean(truth.at(start, known.draws[:first]) <= known.rates_per_s[:first]) for known in facts]
    return "perfect after the start", 1 - float(np.mean(late)) * first / len(values), 1.0, 0.0


def facts_of_runs(values: Floats, protocol: Protocol, truth: Truth, runs: int) -> list[Facts]:
    """What holds on each run of a replay of the values, scaled as a replay scales them."""
    options = ReplayOptions(("hindsight",), protocol, runs=runs)
    rates = replay([("bound", values)], truth, options)[0].rates_per_s
    job = jobs_of("bound", rates, truth, options)[0]
    return [facts_of(job, run) for run in range(runs)]


def minutes_of(facts: Facts) -> Iterator[tuple[int, float, Forecast | None]]:
    """Each minute and its rate, with on-time's forecast before it where a decision counts at its start."""
    protocol, made_by, forecast = facts.protocol, Calibrated(STEP_S), None
    learned = made_by.start()
    for t, rate in enumerate(facts.rates_per_s.tolist()):
        yield t, rate, forecast if protocol.decides(t, protocol.lead_steps) else None
        learned = made_by.learn(learned, rate)
        forecast = made_by.forecast(learned, protocol.bound[1])


def true_curve(truth: Truth) -> CapacityBelief:
    """The capacity as a rule takes it, with nothing to learn."""
    return CapacityBelief(truth.mean_per_s[1:], truth.sd_per_s[1:])


def _priced(facts: Facts, rules: Sequence[OnTime]) -> list[Ints]:
    """Machines asked for, step by step, by each rule with the true curve; one forecast a step serves them all."""
    curve, memories = true_curve(facts.truth), [rule.start() for rule in rules]
    coming = [facts.truth.needs(float(facts.rates_per_s[0]) * 1.2)] * len(rules)
    asked = np.empty((len(rules), len(facts.rates_per_s)), dtype=np.int64)
    for t, _, forecast in minutes_of(facts):
        if forecast is not None:
            for i, rule in enumerate(rules):
                memories[i], choice = rule.decide(memories[i], forecast, curve, coming[i])
                coming[i] = choice.machines
        asked[:, t] = coming if t % facts.protocol.cycle_steps == 0 else asked[:, t - 1]
    return list(asked)


def _judged(asked: Ints, facts: Sequence[Facts], yards: Sequence[Yardstick]) -> tuple[float, float, float]:
    late = facts[0].protocol.startup_steps - facts[0].protocol.lead_steps
    scores = [scored(known, run, asked, late) for run, known in enumerate(facts)]
    costs = [score.machine_steps / yard.hindsight for score, yard in zip(scores, yards, strict=True)]
    return float(np.mean([score.qos for score in scores])), float(np.mean(costs)), float(scores[0].rescales)
