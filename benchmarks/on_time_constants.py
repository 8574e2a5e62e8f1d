"""What each constant of the on-time rule is worth on load traces: one at a time.

    nice -n 19 python benchmarks/on_time_constants.py TRACE... [--weeks 0,1,2] [--runs 2] [--only SPEND,PATIENCE]

The rule itself is driven, with its own forecast and the true capacity curve, over whole weeks of each trace (weeks
a trace does not have are left out), or with ``--minutes`` over longer stretches from there. One forecast a step serves
all settings. For each setting, protocol and target:

    cost     against hindsight, geometric mean over the weeks
    late     late minutes over those allowed, geometric mean (each with 0.02 added, so that none late counts too)
    reached  weeks in which the target was
    moves    rescales, mean

Bound by one core a week: some two minutes of it for all settings and two runs.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from frontier_bounds import facts_of_runs, minutes_of, true_curve
from sluicegate.config.trace_file import read_trace
from sluicegate.errors import SluicegateError
from sluicegate.lab.replay.jobs import scored, yardstick
from sluicegate.lab.replay.players import Facts
from sluicegate.lab.replay.world import DEFAULT_POINTS, PROTOCOLS, Floats, truth_of
from sluicegate.policy import on_time
from sluicegate.policy.on_time import OnTime, OnTimeMemory, Steps

WEEK = 10_080
TARGETS = (0.995, 0.999)
# beside what the package has; one constant at a time
VARIED: Mapping[str, tuple[float, ...]] = {
    "PRICE_0": (0.09, 0.36),
    "MOST_PRICE": (0.19, 0.75),
    "LEAST_PRICE": (1.0, 4.0),
    "SPEND": (1_250.0, 5_000.0),
    "PATIENCE": (0.3, 1.2),
    "KEEP": (0.4, 1.0),
}
Setting = tuple[str, float] | None


@dataclass(frozen=True, slots=True)
class Found:
    """One setting on one week: means over the runs."""

    setting: Setting
    protocol: str
    target: float
    cost: float
    late_budgets: float
    moves: float


class Lane:
    """One setting of the rule on one run."""

    def __init__(self, setting: Setting, target: float, facts: Facts) -> None:
        protocol = facts.protocol
        self.setting, self.facts = setting, facts
        self.rule = OnTime(target, Steps(protocol.cycle_steps, protocol.startup_steps, protocol.lead_steps))
        self.memory: OnTimeMemory = self.rule.start()
        self.coming = facts.truth.needs(float(facts.rates_per_s[0]) * 1.2)
        self.asked: list[int] = []

    def passed(self, t: int) -> None:
        """Minute ``t`` with the machines that serve in it."""
        self.asked.append(self.coming if t % self.facts.protocol.cycle_steps == 0 else self.asked[-1])
        serving = min(self.asked[max(0, t - self.late_steps) :])
        rate, truth = float(self.facts.rates_per_s[t]), self.facts.truth
        carried = truth.mean_per_s[serving] + truth.sd_per_s[serving] * self.facts.draws[t]
        self.memory = self.rule.judged(self.memory, float(carried <= rate))

    @property
    def late_steps(self) -> int:
        return self.facts.protocol.startup_steps - self.facts.protocol.lead_steps


def settings_of(only: frozenset[str]) -> list[Setting]:
    """As the package has it, and each constant at its other values."""
    return [None, *((name, value) for name, values in VARIED.items() if not only or name in only for value in values)]


def stretch_found(values: Floats, protocol_name: str, settings: list[Setting], runs: int) -> list[Found]:
    """All settings and targets on one stretch of minutes."""
    facts = facts_of_runs(values, PROTOCOLS[protocol_name], truth_of(DEFAULT_POINTS), runs)
    lanes = [Lane(setting, target, known) for setting in settings for target in TARGETS for known in facts]
    _drive(lanes, facts[0])
    yards = [yardstick(known).hindsight for known in facts]
    return [_found(lanes[i : i + runs], yards, protocol_name) for i in range(0, len(lanes), runs)]


def _drive(lanes: list[Lane], facts: Facts) -> None:
    curve = true_curve(facts.truth)
    for t, _, forecast in minutes_of(facts):
        if forecast is not None:
            for lane in lanes:
                with _changed(lane.setting):
                    lane.memory, choice = lane.rule.decide(lane.memory, forecast, curve, lane.coming)
                lane.coming = choice.machines
        for lane in lanes:
            lane.passed(t)


@contextmanager
def _changed(setting: Setting) -> Iterator[None]:
    """One constant of the rule or of its price changed, for one decision."""
    if setting is None:
        yield
        return
    name, value = setting
    before = getattr(on_time, name)
    setattr(on_time, name, value)
    yield
    setattr(on_time, name, before)


def _found(lanes: list[Lane], yards: list[int], protocol: str) -> Found:
    target = lanes[0].rule.target
    scores = [scored(lane.facts, run, np.array(lane.asked), lane.late_steps) for run, lane in enumerate(lanes)]
    return Found(
        setting=lanes[0].setting,
        protocol=protocol,
        target=target,
        cost=fmean(score.machine_steps / yard for score, yard in zip(scores, yards, strict=True)),
        late_budgets=fmean(1 - score.qos for score in scores) / (1 - target),
        moves=fmean(score.rescales for score in scores),
    )


def table(found: list[Found], settings: list[Setting]) -> Iterator[str]:
    places = [(protocol, target) for target in TARGETS for protocol in PROTOCOLS]
    yield "| setting | " + " | ".join(f"{protocol} {target:.1%}" for protocol, target in places) + " |"
    yield "|---" * (1 + len(places)) + "|"
    for setting in settings:
        own = [[one for one in found if (one.setting, one.protocol, one.target) == (setting, *at)] for at in places]
        name = "as it is" if setting is None else f"{setting[0]} {setting[1]:g}"
        yield f"| {name} | " + " | ".join(map(_cell, own)) + " |"


def _cell(weeks: list[Found]) -> str:
    cost = math.exp(fmean(math.log(one.cost) for one in weeks))
    late = math.exp(fmean(math.log(one.late_budgets + 0.02) for one in weeks)) - 0.02
    reached = sum(one.late_budgets <= 1 + 1e-9 for one in weeks)
    return f"{cost:.3f} {late:.2f} {reached} of {len(weeks)} ({fmean(one.moves for one in weeks):.0f})"


def _stretch(asked: tuple[Path, int, int, str, list[Setting], int]) -> list[Found]:
    path, week, minutes, protocol, settings, runs = asked
    values = read_trace(path).values[week * WEEK :][:minutes]
    return stretch_found(values, protocol, settings, runs) if len(values) == minutes else []


def main() -> None:
    parser = argparse.ArgumentParser(description="What each constant of the on-time rule is worth on load traces.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    parser.add_argument("--weeks", default="0", help="which weeks of each trace, from 0: 0,2,4")
    parser.add_argument("--minutes", type=int, default=WEEK, help="how long from there (a week)")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", default="", help="constants to vary, with commas between")
    asked = parser.parse_args()
    settings = settings_of(frozenset(filter(None, asked.only.split(","))))
    jobs = [
        (path, int(week), asked.minutes, protocol, settings, asked.runs)
        for path in asked.traces
        for week in asked.weeks.split(",")
        for protocol in PROTOCOLS
    ]
    found: list[Found] = []
    try:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            for done, rows in enumerate(pool.map(_stretch, jobs), start=1):
                found += rows
                print(f"{done}/{len(jobs)}", file=sys.stderr)
    except SluicegateError as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.exit_code)
    print("\n".join(table(found, settings)))


if __name__ == "__main__":
    main()
