"""What an on-time promise costs on load traces, and what bounds it: ``python benchmarks/trace_frontier.py TRACE...``.

    --minutes N   of each trace, from its start (10080)      --runs N   draws of the capacity (3)
    --brief       headgate and recent peak at both targets only, for far less work

For each trace, both protocols and both targets: headgate beside the best recent peak chosen in hindsight and the best
of the paper's policies (of those that reach the target the cheapest, else the one most often on time), and who, if
anybody, is both cheaper and less often late. Then the frontier: headgate's cost for a row of targets, and two bounds
that have the true capacity curve and the one price of a late step, fixed in hindsight, that just reaches the target:
moving at every decision, and holding as headgate does. What headgate costs above the second is the price of learning
the price and the curve; the second above the first that of few rescales; the first is the forecast's. Last, the
paper's policies one by one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headgate.config.trace_file import read_trace
from headgate.forecast.calibrated import Calibrated
from headgate.plan.on_time import Capacity, OnTime, Timing
from headgate.simulate.replay import Options, Result, TraceReport, jobs_of, replay
from headgate.simulate.replay_jobs import facts_of
from headgate.simulate.replay_players import ALL, BEST_RECENT_PEAK, Facts
from headgate.simulate.replay_protocol import PROTOCOLS, STEP_S, Protocol
from headgate.simulate.replay_score import Yardstick, scored, yardstick
from headgate.simulate.replay_truth import DEFAULT_POINTS, Truth, truth_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TARGETS = (0.995, 0.999)
FRONTIER = (0.98, 0.99, 0.995, 0.999)
PRICES = tuple(2.0**n for n in range(1, 16))  # machine steps for a late one
TOLD = ("headgate", BEST_RECENT_PEAK)  # the target moves only these
BOUNDS = {"moving at once": False, "holding": True}


@dataclass(frozen=True, slots=True)
class Point:
    """Share of steps on time, cost against hindsight and rescales: means over the runs."""

    qos: float
    cost: float
    rescales: float


Frontier = dict[float, Point | None]


@dataclass(frozen=True, eq=False, slots=True)
class Study:
    """One trace under one protocol: by target what was told it, all others once, and the bounds by target."""

    trace: str
    protocol: Protocol
    told: dict[float, tuple[Result, ...]]
    others: tuple[Result, ...]
    bounds: dict[str, Frontier]


def main() -> None:
    asked = _arguments()
    studies: list[Study] = []
    tables = (comparison,) if asked.brief else (comparison, frontier, papers)
    for path in asked.traces:
        values = read_trace(path).values[: asked.minutes]
        for protocol in PROTOCOLS.values():
            _say(f"{path.stem}, {protocol.name}, {len(values):,} minutes")
            made = (brief if asked.brief else study)(path.stem, values, protocol, asked.runs)
            studies.append(made)
            _say("\n".join(line for table in tables for line in table([made])[2:]))
    print(f"\nFirst {asked.minutes:,} minutes at most, {asked.runs} runs, seed 0, capacity of no file.\n")
    print("\n\n".join("\n".join(table(studies)) for table in tables))


def study(trace: str, values: Floats, protocol: Protocol, runs: int) -> Study:
    """Everything about one trace under one protocol."""
    truth = truth_of(DEFAULT_POINTS)
    rest = tuple(name for name in ALL if name not in (*TOLD, "hindsight"))
    told = {t: _played(trace, values, protocol, runs, TOLD if t in TARGETS else TOLD[:1], t) for t in FRONTIER}
    others = _played(trace, values, protocol, runs, rest, TARGETS[0])
    bounds = _bounds(others.rates_per_s, truth, Options(rest, protocol, runs=runs))
    return Study(trace, protocol, {t: report.results for t, report in told.items()}, others.results, bounds)


def brief(trace: str, values: Floats, protocol: Protocol, runs: int) -> Study:
    """Headgate and recent peak alone."""
    told = {target: _played(trace, values, protocol, runs, TOLD, target).results for target in TARGETS}
    return Study(trace, protocol, told, (), {})


def _played(
    trace: str, values: Floats, protocol: Protocol, runs: int, policies: tuple[str, ...], target: float
) -> TraceReport:
    _say(f"  {', '.join(policies)} at {target:.2%}")
    return replay([(trace, values)], truth_of(DEFAULT_POINTS), Options(policies, protocol, target, runs=runs))[0]


def _bounds(rates_per_s: Floats, truth: Truth, options: Options) -> dict[str, Frontier]:
    job = jobs_of("bound", rates_per_s, truth, options)[0]
    facts = [facts_of(job, run) for run in range(options.runs)]
    yards = [yardstick(known) for known in facts]
    rules = [
        (name, OnTime(job.target, _timing(job.protocol), price, holds))
        for name, holds in BOUNDS.items()
        for price in PRICES
    ]
    _say(f"  bounds: {len(rules)} rules with the price fixed")
    asked = _priced(facts[0], [rule for _, rule in rules])
    points: dict[str, list[Point]] = {name: [] for name in BOUNDS}
    for (name, _), machines in zip(rules, asked, strict=True):
        points[name].append(_judged(machines, facts, yards))
    return {name: {target: _cheapest(row, target) for target in FRONTIER} for name, row in points.items()}


def _timing(protocol: Protocol) -> Timing:
    return Timing(protocol.cycle_steps, protocol.startup_steps, protocol.lead_steps)


def _priced(facts: Facts, rules: Sequence[OnTime]) -> list[Ints]:
    """Machines asked for, step by step, by each rule with the true curve; one forecast a step serves them all."""
    protocol, truth, rates = facts.protocol, facts.truth, facts.rates_per_s.tolist()
    curve, made_by, forecast = Capacity(truth.mean_per_s[1:], truth.sd_per_s[1:]), Calibrated(STEP_S), None
    learned, memories = made_by.start(), [rule.start() for rule in rules]
    coming = [truth.needs(rates[0] * 1.2)] * len(rules)
    asked = np.empty((len(rules), len(rates)), dtype=np.int64)
    for t, rate in enumerate(rates):
        if forecast is not None and protocol.decides(t, protocol.lead_steps):
            for i, rule in enumerate(rules):
                memories[i], choice = rule.decide(memories[i], forecast, curve, coming[i])
                coming[i] = choice.machines
        asked[:, t] = coming if t % protocol.cycle_steps == 0 else asked[:, t - 1]
        learned = made_by.learn(learned, rate)
        forecast = made_by.forecast(learned, protocol.bound[1])
    return list(asked)


def _judged(asked: Ints, facts: Sequence[Facts], yards: Sequence[Yardstick]) -> Point:
    late = facts[0].protocol.startup_steps - facts[0].protocol.lead_steps
    scores = [scored(known, run, asked, late) for run, known in enumerate(facts)]
    costs = [score.machine_steps / yard.hindsight for score, yard in zip(scores, yards, strict=True)]
    return Point(float(np.mean([score.qos for score in scores])), float(np.mean(costs)), scores[0].rescales)


def _cheapest(points: Sequence[Point], target: float) -> Point | None:
    """Between the two prices around the target, by the logarithm of the late share; ``None`` if none reaches it."""
    reaching = [point for point in points if point.qos >= target]
    if not reaching:
        return None
    above = min(reaching, key=lambda point: point.cost)
    cheaper = [point for point in points if point.qos < target and point.cost < above.cost]
    if not cheaper or above.qos >= 1:
        return above
    below = max(cheaper, key=lambda point: point.qos)
    spans = np.log([(1 - below.qos) / (1 - above.qos), (1 - target) / (1 - above.qos)])
    part = float(spans[1] / spans[0])
    cost = above.cost + part * (below.cost - above.cost)
    return Point(target, cost, above.rescales + part * (below.rescales - above.rescales))


def _of(results: Sequence[Result], name: str) -> Result:
    return next(result for result in results if result.policy == name)


def _best(results: Sequence[Result], target: float) -> Result:
    reaching = [result for result in results if result.qos >= target]
    if reaching:
        return min(reaching, key=lambda result: result.cost_vs_hindsight)
    return max(results, key=lambda result: result.qos)


def comparison(studies: Sequence[Study]) -> list[str]:
    """Headgate beside the others, a row for each trace, protocol and target."""
    lines = [
        "| trace | protocol | target | headgate | recent peak in hindsight | best of the paper's | dominated by |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in studies:
        for target in TARGETS:
            ours, peak = (_of(one.told[target], name) for name in TOLD)
            papers_own = [r for r in one.others if r.policy.startswith("uncertainty")]
            best = _best(papers_own, target) if papers_own else None
            over = [r.policy for r in (peak, *one.others) if _dominates(r, ours)]
            cells = (
                _cell(ours),
                _cell(peak),
                f"{best.policy[-1]}: {_cell(best)}" if best else "-",
                ", ".join(over) or ("nobody" if one.others else "not recent peak"),
            )
            lines.append(f"| {one.trace} | {one.protocol.name} | {target:.1%} | {' | '.join(cells)} |")
    return lines


def _dominates(one: Result, other: Result) -> bool:
    no_worse = one.qos >= other.qos and one.cost_vs_hindsight <= other.cost_vs_hindsight
    return no_worse and (one.qos, one.cost_vs_hindsight) != (other.qos, other.cost_vs_hindsight)


def _cell(result: Result) -> str:
    return f"{result.qos:.2%} {result.cost_vs_hindsight:.3f} ({result.rescales:.0f})"


def frontier(studies: Sequence[Study]) -> list[str]:
    """Cost of headgate (with what it reached) and of the bounds for each target."""
    heads = " | ".join(f"{target:.1%}" for target in FRONTIER)
    lines = [f"| trace | protocol | who | {heads} |", "|---|---|---|" + "---|" * len(FRONTIER)]
    for one in studies:
        place = f"| {one.trace} | {one.protocol.name}"
        ours = [_cell(_of(one.told[target], "headgate")) for target in FRONTIER]
        lines.append(f"{place} | headgate | {' | '.join(ours)} |")
        for name, row in one.bounds.items():
            cells = ["not reached" if p is None else f"{p.cost:.3f} ({p.rescales:.0f})" for p in row.values()]
            lines.append(f"{place} | bound, {name} | {' | '.join(cells)} |")
    return lines


def papers(studies: Sequence[Study]) -> list[str]:
    """The paper's policies 0 to 7 (at rho = 0.95, whatever the target): on time and cost."""
    numbers = range(8)
    lines = ["| trace | protocol | " + " | ".join(map(str, numbers)) + " |", "|---|---|" + "---|" * len(numbers)]
    for one in studies:
        found = [_of(one.others, f"uncertainty-{number}") for number in numbers]
        cells = (f"{result.qos:.1%} {result.cost_vs_hindsight:.3f}" for result in found)
        lines.append(f"| {one.trace} | {one.protocol.name} | {' | '.join(cells)} |")
    return lines


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What an on-time promise costs on load traces, and what bounds it.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    parser.add_argument("--minutes", type=int, default=10_080)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--brief", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
