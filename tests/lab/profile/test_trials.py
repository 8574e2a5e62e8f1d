"""Trials on the disk: an interrupted measurement goes on, one of something else is refused, in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.config.profile_file import ProfileFile, read_profile_file, write_profile
from sluicegate.domain import BatchCosts, ProfilePoint, TaskProfile
from sluicegate.errors import BadInput, Infeasible
from sluicegate.lab.profile.batch_law import batch_figures, overhead_of
from sluicegate.lab.profile.choosing import Bracket
from sluicegate.lab.profile.operator import Idle, OperatorMeasured
from sluicegate.lab.profile.page import profile_page
from sluicegate.lab.profile.result import processor_time, profile_from
from sluicegate.lab.profile.slot import SlotSize
from sluicegate.lab.profile.trials import Trial, TrialFile

WHAT = {"app": "shop", "operator": "parse", "machine": "x", "spark": "4.3.0"}
SIZE = SlotSize(tasks=4, memory_mb=1000)
OVERHEAD_S, TASK_S, MU = 0.15, 0.02, 100.0


def trial(threads: int, rate: float, slope: float | None = -0.1) -> Trial:
    """Batches by the law, processor time of 0.05 s a batch, 0.01 s a task and 1 ms a row."""
    rows = (round(rate), round(2 * rate))
    batches = tuple((n, threads, OVERHEAD_S + TASK_S * threads + n / (threads * MU)) for n in rows)
    cpu_s = 2 * 0.05 + 2 * threads * 0.01 + sum(rows) * 0.001
    return Trial(threads, rate, slope, 1.0, 0.4, 500 * 2**20, cpu_s, batches, seconds=0.0)


def test_trials_survive_a_crash_in_the_middle_of_a_line(tmp_path: Path) -> None:
    file = TrialFile(tmp_path / "parse.trials.jsonl", WHAT)
    assert file.read() == []
    file.add(trial(1, 80.0))
    with (tmp_path / "parse.trials.jsonl").open("a") as half:
        half.write('{"threads": 2, "ra')
    assert file.read() == [trial(1, 80.0)]
    file.add(trial(2, 150.0))
    assert file.read() == [trial(1, 80.0), trial(2, 150.0)]


@pytest.mark.parametrize(("key", "other"), [("operator", "count"), ("machine", "y"), ("spark", "5.0.0")])
def test_trials_of_another_operator_machine_or_version_are_refused(tmp_path: Path, key: str, other: str) -> None:
    path = tmp_path / "parse.trials.jsonl"
    TrialFile(path, WHAT).read()
    with pytest.raises(BadInput, match=f"was measured with {key}"):
        TrialFile(path, {**WHAT, key: other}).read()


def test_trials_of_a_file_that_was_changed_since_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "parse.trials.jsonl"
    TrialFile(path, {**WHAT, "source": "5c1f"}).read()
    assert TrialFile(path, {**WHAT, "source": "5c1f"}).read() == []
    with pytest.raises(BadInput, match="before the application's file was changed"):
        TrialFile(path, {**WHAT, "source": "77aa"}).read()


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("no trials\n")
    with pytest.raises(BadInput, match="holds no trials"):
        TrialFile(tmp_path / "x.jsonl", WHAT).read()


def measured() -> OperatorMeasured:
    trials = (trial(1, 80.0), trial(1, 90.0, slope=0.2), trial(2, 150.0), trial(4, 260.0), trial(4, 300.0, slope=None))
    known = (Bracket(1, 80.0, 90.0), Bracket(2, 150.0), Bracket(4, 260.0, 300.0))
    return OperatorMeasured(trials, Idle(0.02, 200 * 2**20, 0.17), known, False, 1, "flat", True)


def test_points_are_the_highest_stable_rates_with_shares_above_the_idle_base() -> None:
    found, _ = profile_from("parse", measured(), SIZE, {"app": "shop"})
    assert [(p.threads, p.rate_per_s) for p in found.profile.points] == [(1, 80.0), (2, 150.0), (4, 260.0)]
    assert found.highest == {1: 90.0, 4: 300.0}
    assert found.profile.points[0].memory == pytest.approx((0.5 - 0.2) / 0.8)
    assert found.profile.points[0].cpu == pytest.approx((0.4 - 0.02) / 0.98)


def test_the_batch_law_and_the_processor_time_come_out_of_the_same_trials() -> None:
    law = batch_figures("parse", measured().trials)
    assert law.service_per_s == pytest.approx(MU, rel=0.05)
    assert law.overhead_s == pytest.approx(OVERHEAD_S, abs=0.03)
    assert law.r2 > 0.99
    costs = processor_time(measured())
    assert costs["per_row_s"] == pytest.approx(0.001, rel=0.05)
    assert costs["per_batch_s"] == pytest.approx(0.05, rel=0.1)


def test_the_time_beside_the_rows_is_the_laws_once_enough_batches_fit_it() -> None:
    few, many = [trial(1, 80.0)], [trial(k, rate * k) for k in (1, 2, 4) for rate in (40.0, 80.0)]
    assert overhead_of("parse", few, 4, idle_s=0.7) == 0.7
    assert overhead_of("parse", many, 4, idle_s=0.7) == pytest.approx(OVERHEAD_S + 4 * TASK_S, abs=0.04)


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    found, _ = profile_from("parse", measured(), SIZE, {"app": "shop", "machine": "x", "spark": "4.3.0"})
    path = tmp_path / "parse.toml"
    path.write_text(write_profile(found))
    read = read_profile_file(path)
    assert [(p.threads, p.rate_per_s) for p in read.profile.points] == [(1, 80.0), (2, 150.0), (4, 260.0)]
    assert read.highest == found.highest
    assert read.slot_tasks == 4
    assert read.profile.service_per_s == pytest.approx(found.profile.service_per_s, rel=1e-3)
    assert isinstance(read.batch, BatchCosts)
    assert read.measured["assumed"] == found.measured["assumed"]
    assert "parse" in profile_page(read, measured())


def test_the_page_has_a_bar_of_cpu_and_memory_where_several_trials_were_near_the_peak() -> None:
    again = replace(trial(2, 145.0), cpu=0.5)
    seen = replace(measured(), trials=(*measured().trials, again, trial(1, 20.0)))
    found, _ = profile_from("parse", seen, SIZE, {"app": "shop"})
    text = profile_page(found, seen)
    assert text.count('class="between cpu"') == text.count('class="between memory"') == 1
    assert text.count('class="between"') == 2


def test_without_a_stable_trial_of_one_task_there_is_no_profile() -> None:
    nothing = OperatorMeasured((), Idle(0.0, 0, 0.2), (Bracket(1),), False, 1, "the 1 minutes were over", False)
    with pytest.raises(Infeasible, match="no trial of 'parse' with 1 task was stable"):
        profile_from("parse", nothing, SIZE, {})


def test_a_profile_people_write_needs_points_only(tmp_path: Path) -> None:
    path = tmp_path / "xml.toml"
    path.write_text(write_profile(ProfileFile(TaskProfile("xml", (ProfilePoint(1, 310.0, 0.95, 0.24),)))))
    assert read_profile_file(path).batch is None


def test_a_first_line_that_a_crash_cut_off_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "rank.trials.jsonl"
    path.write_text('{"app": "sho', encoding="utf-8")
    file, trial = TrialFile(path, {"app": "shop"}), Trial(1, 90.0, 0.0, 1.0, 0.5, 0, 1.0, ((9, 1, 0.5),))
    assert file.read() == []
    file.add(trial)
    assert TrialFile(path, {"app": "shop"}).read() == [trial]
