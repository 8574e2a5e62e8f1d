"""What the live comparison of all policies is made of, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

import live_elasticity
import results
from live_elasticity import FASTER, LOADS, POLICIES, SLOTS, left, next_of, options_of, plateau
from sections.live import AT_PEAK
from sluicegate.config.typed import policy_options
from sluicegate.control.settings import policy_for
from sluicegate.lab.apps.catalogue import app_named

CELLS = [("plateau", app, policy) for policy in ("sluicegate", "hpa") for app in ("chain", "shop")]
PEAK = {"parse": 3, "enrich": 6, "store": 1}


def test_what_was_measured_fewest_times_is_next_and_what_is_left_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    order = []
    while (cell := next_of(CELLS, 2)) is not None:
        order.append(cell)
        assert left(CELLS, 2) == 2 * len(CELLS) - len(order) + 1
        results.record("live", load=cell[0], app=cell[1], policy=cell[2])
    assert order == [*CELLS, *CELLS]
    assert left(CELLS, 2) == 0
    assert next_of(CELLS, 3) == CELLS[0]  # a later call with more runs goes on from there


def test_the_peers_times_are_shortened_as_cycles_are() -> None:
    app, load = app_named("chain"), LOADS["plateau"](100.0)
    for name in POLICIES.split(","):
        if name != live_elasticity.FIXED_PEAK:
            policy_for(name, options=policy_options(options_of(name, app, load, PEAK)))
    told = policy_options(options_of("flink-autoscaler", app, load, PEAK))
    assert pytest.approx({"window_s": 9, "stabilisation_s": 3, "catch_up_s": 18, "restart_s": 3}, rel=1e-6) == {
        name: told[name] for name in ("window_s", "stabilisation_s", "catch_up_s", "restart_s")
    }
    assert policy_options(options_of("hpa", app, load, PEAK)) == {"period_s": 15 / FASTER, "stabilisation_s": 3}
    assert options_of("drs", app, load, PEAK) == ()


def test_keda_asks_for_the_plan_for_the_peak_when_the_lag_takes_a_third_of_the_promise() -> None:
    app, load = app_named("chain"), LOADS["plateau"](100.0)  # mean=5s
    told = policy_options(options_of("keda", app, load, PEAK))
    assert told["partitions"] == SLOTS
    assert 300.0 * 5 / 3 / float(str(told["lag_threshold_rows"])) == pytest.approx(max(PEAK.values()), rel=1e-3)


def test_the_page_knows_for_how_long_the_load_is_at_its_peak() -> None:
    load = plateau(1.0)
    assert sum(load(step / 10_000) == 3.0 for step in range(10_000)) / 10_000 == pytest.approx(AT_PEAK, abs=1e-3)
