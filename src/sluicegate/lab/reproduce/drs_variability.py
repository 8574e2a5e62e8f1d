"""DRS Fig 10: M/M/k against GI/G/k where service times vary more than exponential ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sluicegate.domain import Observation, Operator
from sluicegate.lab.reproduce import drs_apps as apps
from sluicegate.lab.reproduce.drs_apps import Split, named, shown
from sluicegate.lab.reproduce.row import Progress, Row
from sluicegate.lab.simulate.arrivals import renewal
from sluicegate.lab.simulate.distributions import uniform
from sluicegate.lab.simulate.stepping import advance, begin
from sluicegate.policy.demand import situation_at, stations_of

_SEED = 1
_SECONDS = 240_000.0
_CHANCE = 0.02
"""Differences of mean errors below this change sign with the seed."""


def rows(progress: Progress) -> Iterator[Row]:
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
    world = begin(topology, renewal(rate_per_s, uniform(*gaps)), named(topology, split), _SEED)
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
