"""DRS Fig 6, 7 and 10: predictions of the models against measurements in the event simulator.

Fig 10 is M/M/k against GI/G/k where service times vary more than exponential ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sluicegate.domain import Limits, Observation, Operator, Topology
from sluicegate.lab.agreement import pairs_in_order
from sluicegate.lab.reproduce import drs_apps as apps
from sluicegate.lab.reproduce.claims import Progress, Row
from sluicegate.lab.reproduce.drs_apps import Split, named, shown, split_of
from sluicegate.lab.simulate.arrivals import renewal
from sluicegate.lab.simulate.distributions import uniform
from sluicegate.lab.simulate.scenario import Load
from sluicegate.lab.simulate.simulation import simulate
from sluicegate.lab.simulate.stepping import advance, begin
from sluicegate.model.stations import Stations
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.papers.drs import Drs

_SEED = 1
_NO_RATES = "The paper prints no rates and not all six allocations; ours are stated in lab/reproduce/drs_apps.py."


@dataclass(frozen=True, slots=True)
class Held:
    """One allocation: E[T] by the model, and the simulated mean and 95% quantile."""

    split: Split
    predicted_s: float
    measured_s: float
    p95_s: float


def fig_6_and_7_rows(progress: Progress) -> Iterator[Row]:
    progress("DRS Fig 6, 7: six allocations of VLD")
    vld = held(apps.VLD, apps.VLD_FRAMES_PER_S, apps.VLD_SPLITS, apps.frames(60_000, _SEED), 60_000)
    yield from _six("VLD", apps.VLD, apps.VLD_FRAMES_PER_S, vld, apps.VLD_BEST)
    progress("DRS Fig 6, 7: six allocations of FPD")
    fpd = held(apps.FPD, apps.FPD_ROWS_PER_S, apps.FPD_SPLITS, apps.FPD_ROWS_PER_S, 1_200)
    yield from _six("FPD", apps.FPD, apps.FPD_ROWS_PER_S, fpd, apps.FPD_BEST)
    yield _accuracy(vld, fpd)


def held(topology: Topology, rate_per_s: float, splits: Sequence[Split], load: Load, seconds: float) -> list[Held]:
    """Predict each split (M/M/k) at the rate and simulate it under the load."""
    stations = stations_of(situation_at(topology, rate_per_s)).markovian()
    return [_held(topology, stations, split, load, seconds) for split in splits]


def _held(topology: Topology, stations: Stations, split: Split, load: Load, seconds: float) -> Held:
    result = simulate(topology, load, named(topology, split), seconds, _SEED)
    mean_s = math.inf if result.mean_s is None else result.mean_s
    p95_s = math.inf if result.p95_s is None else result.p95_s
    return Held(split, stations.total_mean_s(np.array(split)), mean_s, p95_s)


def _six(name: str, topology: Topology, rate_per_s: float, found: Sequence[Held], best: Split) -> Iterator[Row]:
    recommended = split_of(
        topology,
        Drs().propose(None, situation_at(topology, rate_per_s, limits=Limits(budget=sum(best))))[1].processors,
    )
    fastest = min(found, key=lambda one: one.measured_s)
    steadiest = min(found, key=lambda one: one.p95_s)
    yield Row(
        f"Fig 6 {name}: best of six allocations of 22",
        f"{shown(best)} is recommended, fastest and varies least",
        f"recommended {shown(recommended)}, fastest {shown(fastest.split)} ({_time(fastest.measured_s)}), least p95 "
        f"{shown(steadiest.split)} ({_time(steadiest.p95_s)})",
        recommended == fastest.split == steadiest.split == best,
        "Holds if all three are the paper's. "
        f"{_NO_RATES} The rates were chosen for the recommendation; that it is also the fastest in simulation was not. "
        "p95 stands for the paper's standard deviation.",
    )
    same, pairs = pairs_in_order([(one.predicted_s, one.measured_s) for one in found])
    table = ", ".join(f"{shown(one.split)} {_time(one.predicted_s)}/{_time(one.measured_s)}" for one in found)
    yield Row(
        f"Fig 7 {name}: predicted and measured times keep the same order",
        "yes",
        f"{same} of {pairs} pairs; predicted/simulated: {table}",
        same == pairs,
        f"Holds if every pair is in order. {_LOADS[name]}",
    )


_LOADS = {
    "VLD": "Assumed: the frame rate, uniform in 1 to 25 a second, is drawn anew each second; the paper does not say.",
    "FPD": "Poisson, as in the paper. Assumed: 320 tweets/s from each of the two spouts.",
}


def _accuracy(vld: Sequence[Held], fpd: Sequence[Held]) -> Row:
    ratios = [[one.measured_s / one.predicted_s for one in found] for found in (vld, fpd)]
    low, high = [min(found) for found in ratios], [max(found) for found in ratios]
    return Row(
        "Fig 7: the model underestimates, FPD more than VLD",
        "VLD slightly, FPD by much",
        f"simulated over predicted: VLD {low[0]:.2f} to {high[0]:.2f}, FPD {low[1]:.2f} to {high[1]:.2f}",
        low[0] > 1 and low[1] > 1 and low[1] > high[0],
        "Holds if every ratio is above 1 and each of FPD's above VLD's. "
        "Underestimates both, but FPD less. In the paper FPD's time is mostly network transfer, which the simulator "
        "does not have; VLD's input is burstier than Poisson, which tells most at the two heavily loaded splits.",
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 0.5 else f"{seconds:.2f} s"


_FIG_10_SEED = 1
_SECONDS = 240_000.0
_CHANCE = 0.02
"""Differences of mean errors below this change sign with the seed."""


def fig_10_rows(progress: Progress) -> Iterator[Row]:
    """The two allocations at the two rates."""
    progress("DRS Fig 10: M/M/k against GI/G/k")
    bars = {
        rate: {split: models(rate, gaps, split, _SECONDS) for split in (_FEW, _MANY)} for rate, gaps in _GAPS.items()
    }
    for rate, found in bars.items():
        yield _preferred(rate, found)
    yield _shortfall(bars)
    for rate, found in bars.items():
        yield _closeness(rate, found)


@dataclass(frozen=True, slots=True)
class Models:
    """One group of bars: E[T] by M/M/k, by GI/G/k with measured variabilities, and simulated."""

    markovian_s: float
    general_s: float
    measured_s: float


_GAPS = {5.0: (1 / 8, 1 / 2), 6.0: (1 / 9, 1 / 3)}
_FEW: Split = (2, 4, 1)
_MANY: Split = (3, 3, 1)


def models(rate_per_s: float, gaps: tuple[float, float], split: Split, seconds: float) -> Models:
    """Both models with the figures measured in one run, and the measured mean of that run."""
    topology = apps.VLD_FIG10
    world = begin(topology, renewal(rate_per_s, uniform(*gaps)), named(topology, split), _FIG_10_SEED)
    seen = advance(world, seconds)
    taught = topology.with_operators(tuple(_as_measured(operator, seen) for operator in topology.operators))
    stations, k = stations_of(situation_at(taught, rate_per_s)), np.array(split)
    mean_s = seen.sojourn.mean_s if seen.sojourn else math.inf
    return Models(stations.markovian().total_mean_s(k), stations.total_mean_s(k), mean_s)


def _as_measured(operator: Operator, seen: Observation) -> Operator:
    """The operator with measured figures; figures that were not measured are kept."""
    one = seen.of(operator.name)
    return operator.with_figures(
        operator.service_per_s if one.service_per_s is None else one.service_per_s,
        operator.arrival_scv if one.arrival_scv is None else one.arrival_scv,
        operator.service_scv if one.service_scv is None else one.service_scv,
        None,
    )


def _preferred(rate_per_s: float, found: dict[Split, Models]) -> Row:
    by_markov = min(found, key=lambda split: found[split].markovian_s)
    by_general = min(found, key=lambda split: found[split].general_s)
    truly = min(found, key=lambda split: found[split].measured_s)
    return Row(
        f"Fig 10: best of {shown(_FEW)} and {shown(_MANY)} at {rate_per_s:g} frames/s",
        "M/M/k 3:3:1, GI/G/k 2:4:1, measured 2:4:1",
        f"M/M/k {shown(by_markov)}, GI/G/k {shown(by_general)}, simulated {shown(truly)}; "
        + "; ".join(f"{shown(split)} {_bars(one)}" for split, one in found.items()),
        (by_markov, by_general, truly) == (_MANY, _FEW, _FEW),
        "Holds if all three are the paper's. "
        "Rates and variabilities are ours, picked so that the two models differ. The printed gaps give 3.2 and 4.5 "
        "frames/s: their shape was kept and scaled to 5 and 6. GI/G/k takes the variabilities measured in the run.",
    )


def _shortfall(bars: dict[float, dict[Split, Models]]) -> Row:
    slow, fast = (_mean([1 - one.markovian_s / one.measured_s for one in bars[rate].values()]) for rate in sorted(bars))
    return Row(
        "Fig 10: M/M/k underestimates, more at the higher rate",
        "yes",
        f"{slow:.1%} short at 5 frames/s, {fast:.1%} at 6",
        0 < slow < fast,
        "Holds if short at both, and more at 6. Mean of the two allocations, with the rates above.",
    )


def _closeness(rate_per_s: float, found: dict[Split, Models]) -> Row:
    markovian = _mean([abs(one.markovian_s / one.measured_s - 1) for one in found.values()])
    general = _mean([abs(one.general_s / one.measured_s - 1) for one in found.values()])
    return Row(
        f"Fig 10: GI/G/k is closer than M/M/k at {rate_per_s:g} frames/s",
        "yes",
        f"mean error GI/G/k {general:.1%}, M/M/k {markovian:.1%}",
        None if abs(general - markovian) < _CHANCE else general < markovian,
        f"Holds if closer by {_CHANCE:.0%} or more; "
        "within that other seeds turn it: undecided. With most other rates and variabilities that we tried "
        "M/M/k was closer at 5 frames/s: GI/G/k errs upwards, as (a+s)/2 is too much for few servers, uneven service.",
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _bars(one: Models) -> str:
    return f"{one.markovian_s:.3f}/{one.general_s:.3f}/{one.measured_s:.3f} s"
