"""What the lab and Spark build for every policy of the catalogue: the same parts for the same timing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sluicegate.control.loop import Settings
from sluicegate.control.rules import Rules
from sluicegate.control.settings import Known, Timing, settings_for
from sluicegate.domain import Edge, Goal, Limits, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.lab.replay.players import Facts, settings_of, timing_of
from sluicegate.lab.replay.world import PROTOCOLS, Truth
from sluicegate.policy.catalogue import POLICIES
from sluicegate.policy.in_steps import InSteps
from sluicegate.spark.controller import Control
from sluicegate.spark.controller import settings_of as live_settings
from sluicegate.spark.pipeline.graph import Node, RunningGraph

LIVE = sorted(name for name, entry in POLICIES.items() if not entry.clairvoyant)
GRAPH = RunningGraph("one", ("rows",), (Node("work", ("rows",), ("work",), False, 8, True, None),), ("work",))
SIZES = np.arange(9, dtype=np.float64)
TRUTH = Truth(SIZES * 100.0, SIZES * 5.0, measured=8)
TRAINING = ((3, 300.0), (4, 400.0))


def facts(protocol: str) -> Facts:
    rates = np.full(30, 250.0)
    return Facts(PROTOCOLS[protocol], TRUTH, 0.995, 0.95, TRAINING, rates, np.zeros(30))


def parts(settings: Settings) -> tuple[object, ...]:
    forecaster = settings.forecaster
    return (
        settings.policy,
        None if forecaster is None else (type(forecaster), forecaster.step_s),
        settings.forecast_steps,
        settings.rules,
        settings.smoothing,
        settings.placer,
    )


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.parametrize("name", LIVE)
def test_the_replay_runs_what_spark_would_with_its_timing(name: str, protocol: str) -> None:
    """Spark's own way to its settings, given the replay's timing and what the replay's policies know."""
    told = facts(protocol)
    lab = settings_of(name, told)
    timing = timing_of(told.protocol)
    control = Control(name, ("on_time=0.995",), interval_s=60.0, startup_s=timing.startup_s, cycle_s=timing.cycle_s)
    live = live_settings(GRAPH, control, timing=replace(control.timing, all_in_cycles=True), known=known_of(told))
    if name == "keda":  # the replay sets its threshold, as whoever runs it must
        lab = replace(lab, policy=live.policy)
    assert parts(lab) == parts(live)


def known_of(told: Facts) -> Known:
    curve = tuple(told.truth.rising().tolist())
    return Known(training=told.training, most=told.truth.most, rho=told.rho, curve_per_s=curve)


@pytest.mark.parametrize("name", LIVE)
def test_a_live_policy_keeps_its_own_forecaster(name: str) -> None:
    made = live_settings(GRAPH, Control(name, ("mean=2s",)))
    assert (None if made.forecaster is None else made.forecaster.name) == POLICIES[name].forecaster


@pytest.mark.parametrize("name", LIVE)
def test_a_policy_with_its_own_timing_is_not_damped_a_second_time(name: str) -> None:
    entry, rules = POLICIES[name], live_settings(GRAPH, Control(name, ("mean=2s",))).rules
    if entry.moves == "governed":
        assert rules.settle_down_s > 0
        assert rules.cooldown_s > 2.0  # of a look every 2 s: a cool-down below it would be none
    else:
        spaced = 60.0 if entry.moves == "spaced" else 0.0
        assert rules == replace(Rules.none(), cooldown_s=spaced, stale_after_s=rules.stale_after_s)


def test_policies_that_decide_in_cycles_are_asked_once_a_cycle_before_it_starts() -> None:
    forecasting, not_forecasting = (
        live_settings(GRAPH, Control(name, startup_s=15.0, cycle_s=60.0)).policy
        for name in ("uncertainty-7", "uncertainty-3")
    )
    assert isinstance(forecasting, InSteps)
    assert isinstance(not_forecasting, InSteps)
    assert (forecasting.every_s, forecasting.lead_s, not_forecasting.lead_s) == (60.0, 15.0, 0.0)


def test_an_option_that_a_policy_does_not_have_is_refused_with_those_it_has() -> None:
    one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    with pytest.raises(BadInput, match=r"es-stream.*no option 'alpha'.*beta"):
        settings_for("es-stream", one, Goal(), Limits(), Timing(), options={"alpha": 1})
    made = settings_for("es-stream", one, options={"trigger": 0.5})
    assert made.policy.trigger == 0.5  # type: ignore[attr-defined]
