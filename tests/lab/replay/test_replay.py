from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sluicegate.errors import BadInput
from sluicegate.forecast.catalogue import forecaster
from sluicegate.lab.replay.jobs import Job, backlog, facts_of, record, run_one, scored, yardstick
from sluicegate.lab.replay.players import ALL, ReplayLane, names_from, player
from sluicegate.lab.replay.replay import ReplayOptions, Result, TraceReport, jobs_of, play, replay
from sluicegate.lab.replay.world import DEFAULT_POINTS, PROTOCOLS, protocol_named, truth_of
from sluicegate.policy.peers.recent_peak_grid import cheapest_recent_peak

Floats = NDArray[np.float64]

TRUTH = truth_of(DEFAULT_POINTS)
CYCLE, FREE = PROTOCOLS["cycle"], PROTOCOLS["free"]


def load(steps: int = 300, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return 8000 + 4000 * np.sin(np.arange(steps) / 60) + rng.normal(0, 200, steps)


def job_of(policy: str, protocol: str = "cycle", steps: int = 300) -> Job:
    return Job("t", policy, load(steps), TRUTH, PROTOCOLS[protocol], runs=(0,))


def report_of(policies: tuple[str, ...], protocol: str = "cycle", steps: int = 300, runs: int = 2) -> TraceReport:
    return replay([("t", load(steps))], TRUTH, ReplayOptions(policies, PROTOCOLS[protocol], runs=runs))[0]


def figures(result: Result) -> tuple[object, ...]:
    return result.policy, result.qos_by_run, result.cost_by_run, result.rescales, result.backlog_peak, result.coverage


@pytest.mark.parametrize("protocol", ["cycle", "free"])
def test_every_policy_plays_and_stays_within_the_machines_there_are(protocol: str) -> None:
    for result in report_of(ALL, protocol, steps=160, runs=1).results:
        assert 0 <= result.qos <= 1
        assert result.cost_vs_hindsight > 0
        assert result.backlog_peak >= 0
        assert 1 <= result.serving.min() <= result.serving.max() <= TRUTH.most
        assert len(result.serving) == 160


def test_hindsight_is_always_on_time_at_cost_one() -> None:
    result = report_of(("hindsight",)).results[0]
    assert (result.qos, result.cost_vs_hindsight, result.backlog_peak) == (1.0, 1.0, 0.0)
    assert result.cost_vs_hindsight_minute > 1


def test_static_peak_is_always_on_time_and_never_moves() -> None:
    result = report_of(("static-peak",)).results[0]
    assert (result.qos, result.cost_vs_static, result.rescales) == (1.0, 1.0, 0.0)


def test_the_same_seed_gives_the_same_figures_on_any_number_of_cores() -> None:
    options = ReplayOptions(("recent-peak", "uncertainty-4"), CYCLE, runs=2)
    one = replay([("t", load())], TRUTH, options, workers=1)[0]
    two = replay([("t", load())], TRUTH, options, workers=2)[0]
    assert [figures(r) for r in one.results] == [figures(r) for r in two.results]
    other = replay([("t", load())], TRUTH, replace(options, seed=1))[0]
    assert [figures(r) for r in one.results] != [figures(r) for r in other.results]


def test_results_come_in_the_order_the_policies_were_given() -> None:
    names = ("ds2", "hindsight", "sluicegate", "recent-peak")
    assert tuple(result.policy for result in report_of(names).results) == names


def test_a_job_and_its_outcome_can_be_sent_elsewhere() -> None:
    job = job_of("ds2")
    here, there = run_one(job), run_one(pickle.loads(pickle.dumps(job)))
    assert pickle.loads(pickle.dumps(there)).scores == here.scores


def test_recorded_forecasts_give_what_live_ones_give() -> None:
    job = job_of("uncertainty-7")
    track = record("arma", job.rates_per_s, job.protocol.bound[1])
    assert track is not None
    live, recorded = run_one(job), run_one(replace(job, track=track))
    assert live.scores == recorded.scores
    assert live.serving.tolist() == recorded.serving.tolist()


def test_a_track_holds_what_the_forecaster_says_after_each_step() -> None:
    rates = load(130)
    track, arma = record("arma", rates, 12), forecaster("arma")
    assert track is not None
    memory = arma.start()
    for t, rate in enumerate(rates.tolist()):
        memory = arma.learn(memory, rate)
        live, kept = arma.forecast(memory, 12), track.at(t)
        assert (live is None) == (kept is None)
        assert live is None or kept is None or live.mean_per_s.tolist() == kept.mean_per_s.tolist()


def test_forecasts_with_scores_are_not_recorded() -> None:
    assert record("calibrated", load(50), 12) is None


def test_lanes_that_cannot_differ_are_played_once_and_judged_on_every_run() -> None:
    restless = replace(job_of("recent-peak"), rates_per_s=np.random.default_rng(0).uniform(0, 20_000, 300))
    together = run_one(replace(restless, runs=(0, 1)))
    apart = [run_one(replace(restless, runs=(run,))).scores[0] for run in (0, 1)]
    assert list(together.scores) == apart
    assert apart[0].machine_steps == apart[1].machine_steps
    assert apart[0].backlog_peak != apart[1].backlog_peak


def test_recent_peak_serves_what_the_grid_says_it_serves() -> None:
    for protocol in (CYCLE, FREE):
        job = replace(job_of("recent-peak-hindsight", protocol.name, steps=400), target=0.9)
        facts = facts_of(job, 0)
        point = cheapest_recent_peak(
            facts.rates_per_s,
            TRUTH.rising(),
            0.9,
            protocol="free" if protocol.free else "cycle",
            noise=1 + 0.05 * facts.draws,
            first_step=10,
        ).cheapest
        assert point is not None
        late = protocol.startup_steps - protocol.lead_steps
        lane = ReplayLane(player(job.policy, facts), facts, None)
        for t in range(400):
            lane.step(t)
        asked = lane.asked_for()
        carried = TRUTH.at(protocol.serving(asked, late), facts.draws)
        assert asked[10:].sum() == point.machine_steps
        assert np.mean(carried[10:] > facts.rates_per_s[10:]) == point.on_time


def test_machines_asked_for_serve_two_minutes_later_and_stop_at_once() -> None:
    asked = np.array([3, 3, 6, 6, 6, 2, 2])
    assert FREE.serving(asked, 2).tolist() == [3, 3, 3, 3, 6, 2, 2]


def test_a_cycle_is_decided_two_minutes_ahead_and_holds_for_ten() -> None:
    assert [t for t in range(31) if CYCLE.decides(t, CYCLE.lead_steps)] == [8, 18, 28]
    assert CYCLE.bound == (3, 12)
    serving = run_one(job_of("uncertainty-4")).serving
    assert all(len(set(serving[i : i + 10].tolist())) == 1 for i in range(0, 300, 10))


def test_policies_0_to_3_have_new_machines_two_minutes_late() -> None:
    serving = run_one(job_of("uncertainty-0")).serving
    changes = np.flatnonzero(np.diff(serving)) + 1
    rising = [int(t) % 10 for t in changes if serving[t] > serving[t - 1]]
    falling = [int(t) % 10 for t in changes if serving[t] < serving[t - 1]]
    assert set(rising) == {2}
    assert set(falling) == {0}


def test_a_policy_sees_finished_minutes_only() -> None:
    rates = load()
    later = rates.copy()
    later[150:] *= 3
    for name in ("recent-peak", "uncertainty-0", "uncertainty-7", "ds2", "hpa"):
        job = Job("t", name, rates, TRUTH, FREE, runs=(0,))
        calm, jump = run_one(job).serving, run_one(replace(job, rates_per_s=later)).serving
        assert calm[:151].tolist() == jump[:151].tolist(), name


def test_online_learning_finds_a_capacity_that_training_overstates() -> None:
    job = job_of("uncertainty-0", steps=600)
    wrong = replace(facts_of(job, 0), training=((3, 9000.0), (4, 12000.0), (6, 18000.0), (8, 24000.0)))
    late: dict[str, float] = {}
    for name in ("uncertainty-0", "uncertainty-2"):
        one = player(name, wrong)
        lane = ReplayLane(one, wrong, None)
        for t in range(600):
            lane.step(t)
        late[name] = 1 - scored(wrong, 0, lane.asked_for(), one.late_steps).qos
    assert late["uncertainty-2"] < late["uncertainty-0"]


def test_a_backlog_is_measured_until_it_is_drained() -> None:
    peak, drain = backlog(np.array([10.0, 30.0, 30.0, 10.0, 10.0, 10.0]), np.full(6, 20.0), 60.0)
    assert (peak, drain) == (1200.0, 240.0)


def test_costs_are_held_against_hindsight_per_cycle_in_both_protocols() -> None:
    for protocol in ("cycle", "free"):
        job = job_of("hindsight", protocol)
        yards = yardstick(facts_of(job, 0))
        assert run_one(job).scores[0].machine_steps == yards.hindsight
        assert yards.hindsight_minute <= yards.hindsight <= yards.static


def test_only_policies_that_forecast_have_a_coverage() -> None:
    by_name = {r.policy: r.coverage for r in report_of(("recent-peak", "uncertainty-3", "uncertainty-4")).results}
    assert by_name["recent-peak"] is None
    assert by_name["uncertainty-3"] is None
    assert by_name["uncertainty-4"] is not None


def test_a_partial_last_cycle_counts_too() -> None:
    result = report_of(("uncertainty-4",), steps=137).results[0]
    assert len(result.serving) == 137


def test_the_peak_is_scaled_to_thirty_two_machines_or_as_told() -> None:
    options = ReplayOptions(("static-peak",), CYCLE, runs=1)
    report = replay([("t", load() * 1e-6)], TRUTH, options)[0]
    assert TRUTH.needs(float(report.rates_per_s.max())) == 32
    assert "needs 32 machines" in report.notes[0]
    told = replay([("t", load())], TRUTH, replace(options, peak_per_s=5000.0))[0]
    assert told.rates_per_s.max() == pytest.approx(5000.0)


@pytest.mark.parametrize(
    ("values", "peak", "problem"),
    [
        (np.zeros(100), None, "the load is 0 throughout"),
        (np.ones(19), None, "19 minutes are too few"),
        (np.ones(100), 1e9, "exceeds all capacity"),
    ],
)
def test_traces_that_cannot_be_replayed_are_refused(values: Floats, peak: float | None, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        replay([("t", values)], TRUTH, ReplayOptions(("ds2",), CYCLE, peak_per_s=peak))


def test_a_trace_with_silent_hours_is_replayed() -> None:
    values = load()
    values[100:200] = 0.0
    options = ReplayOptions(ALL, FREE, runs=1)
    assert all(0 <= result.qos <= 1 for result in replay([("t", values)], TRUTH, options)[0].results)


@pytest.mark.parametrize(
    ("given", "problem"),
    [("slucegate", "did you mean 'sluicegate'"), (" , ", "no policies"), ("ds2,nothing-like-it", "unknown policy")],
)
def test_unknown_policies_are_refused(given: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        names_from(given)


def test_all_names_every_policy_once() -> None:
    assert names_from("all") == ALL
    assert names_from("ds2,all")[0] == "ds2"
    assert len(names_from("ds2,all")) == len(ALL)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ReplayOptions(("ds2",), CYCLE, target=1.0),
        lambda: ReplayOptions(("ds2",), CYCLE, rho=0.4),
        lambda: ReplayOptions(("ds2",), CYCLE, runs=0),
        lambda: ReplayOptions(("ds2",), CYCLE, seed=-1),
        lambda: ReplayOptions(("ds2",), CYCLE, peak_per_s=0.0),
        lambda: ReplayOptions(("ds2",), CYCLE, training_sizes=()),
    ],
)
def test_options_out_of_range_are_refused(make: Callable[[], ReplayOptions]) -> None:
    with pytest.raises(BadInput):
        make()


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(BadInput, match="choose cycle or free"):
        protocol_named("fere")


def test_progress_is_told_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    jobs = jobs_of("t", load(60), TRUTH, ReplayOptions(("hindsight", "ds2"), CYCLE, runs=2))
    play(jobs, 1, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(jobs), len(jobs))
