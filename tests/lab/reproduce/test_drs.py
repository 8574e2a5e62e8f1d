from __future__ import annotations

from collections.abc import Callable

import pytest

from sluicegate.domain import Limits, Topology
from sluicegate.lab.agreement import pairs_in_order
from sluicegate.lab.reproduce import drs
from sluicegate.lab.reproduce.drs_apps import (
    FPD,
    FPD_BEST,
    FPD_ROWS_PER_S,
    VLD,
    VLD_BEST,
    VLD_SPLITS,
    Split,
    frames,
    split_of,
)
from sluicegate.lab.reproduce.drs_models import held, models
from sluicegate.lab.reproduce.drs_moves import DrsMove, DrsRun, convergence, follow, one_move_a_change
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.papers.drs import Drs, assign_processors

LONG = (*[6.0] * 6, *[12.0] * 15, *[6.0] * 13, *[18.0] * 6)


def silent(what: str) -> None:
    assert what


@pytest.mark.parametrize(("topology", "rate", "best"), [(VLD, 13.0, VLD_BEST), (FPD, FPD_ROWS_PER_S, FPD_BEST)])
def test_the_stated_rates_give_the_papers_recommendation(topology: Topology, rate: float, best: Split) -> None:
    _, proposal = Drs().propose(None, situation_at(topology, rate, limits=Limits(budget=22)))
    assert split_of(topology, proposal.processors) == best


def test_every_split_shown_keeps_up() -> None:
    stations = stations_of(situation_at(VLD, 13.0)).markovian()
    assert all((stations.offered < split).all() for split in VLD_SPLITS)


def test_simulated_times_keep_the_predicted_order() -> None:
    found = held(VLD, 13.0, [VLD_BEST, (9, 11, 2), (8, 12, 2)], frames(10_000, 1), 10_000)
    assert pairs_in_order([(one.predicted_s, one.measured_s) for one in found]) == (3, 3)


def test_a_poor_allocation_becomes_the_best_in_one_move() -> None:
    row = convergence("VLD", VLD, VLD_BEST, ((8, 12, 2),), range(1))
    assert row.holds
    assert "from 8:12:2 to 10:11:1 at 15 (1 of 1)" in row.ours


def test_a_start_that_is_not_the_best_is_not_passed_off_as_it() -> None:
    assert convergence("VLD", VLD, (9, 12, 1), ((8, 12, 2),), range(1)).holds is False


def test_each_change_of_the_rate_is_followed_by_one_move() -> None:
    moves = follow(LONG, 6, seed=0).moves
    assert [move.added > 0 for move in moves] == [True, False, True]
    assert all(change < move.minute <= change + 7 for change, move in zip((6, 21, 34), moves, strict=True))


def test_runs_with_other_moves_do_not_hold() -> None:
    up = DrsRun((DrsMove(12, (3, 3, 1), (4, 3, 1)),), (0.5,) * 40)
    assert one_move_a_change([up, up, up]).holds is False


def test_varied_service_turns_the_choice_around() -> None:
    few, many = (models(6.0, (1 / 9, 1 / 3), split, 30_000.0) for split in ((2, 4, 1), (3, 3, 1)))
    assert many.markovian_s < few.markovian_s
    assert few.general_s < many.general_s
    assert few.measured_s < many.measured_s


def ticking(step_of: Callable[[int], float]) -> Callable[[], float]:
    """A clock that moves on by ``step_of`` the number of times it was read."""
    now, reads = 0.0, 0

    def read() -> float:
        nonlocal now, reads
        now, reads = now + step_of(reads), reads + 1
        return now

    return read


def test_a_time_that_does_not_grow_with_k_is_not_called_linear() -> None:
    decision, measuring = drs.table_2_rows(silent, ticking(lambda reads: 1e-3))
    assert decision.holds is False
    assert measuring.holds is False


def test_a_time_that_grows_with_k_is_called_linear() -> None:
    sizes = (12, 24, 48, 96, 192, 768, 3072, 12_288)
    # read before and after each of the calls, which come in turn
    decision, _ = drs.table_2_rows(silent, ticking(lambda reads: 1e-6 * (10 + sizes[reads // 2 % 8])))
    assert decision.holds
    assert "0.022 0.034 0.058 0.106 0.202 ms" in decision.ours


def test_a_decision_uses_all_of_a_large_budget() -> None:
    assert int(assign_processors(stations_of(situation_at(VLD, 6.0)).markovian(), 12_288).sum()) == 12_288


@pytest.mark.slow
def test_all_of_the_paper_but_the_network_and_the_size_of_a_pause_comes_out() -> None:
    told: list[str] = []
    found = list(drs.rows(told.append))
    assert told
    assert all(row.what and row.paper and row.ours and row.note for row in found)
    assert all("Holds" in row.note for row in found if row.holds is not None), "each says how near it has to come"
    # how long a decision takes is the machine's affair
    fails = {row.what for row in found if row.holds is False and not row.what.startswith("Table II")}
    assert fails == {
        "Fig 7: the model underestimates, FPD more than VLD",
        "Fig 9a: adding costs more than removing",
    }
    assert [row.what for row in found if row.holds is None] == ["Fig 10: GI/G/k is closer than M/M/k at 5 frames/s"]
