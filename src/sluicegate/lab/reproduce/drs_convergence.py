"""DRS Fig 8: from a poor allocation to the best one in a single move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from sluicegate.control.loop import Settings
from sluicegate.domain import Limits, Topology
from sluicegate.lab.reproduce import drs_apps as apps
from sluicegate.lab.reproduce.drs_apps import Split, shown
from sluicegate.lab.reproduce.drs_drive import MINUTE_S, DrsRun, drive, rules
from sluicegate.lab.reproduce.row import Progress, Row
from sluicegate.lab.simulate.scenario import Load
from sluicegate.measure.smoothing import Smoothing
from sluicegate.policy.papers.drs import Drs

_MINUTES, _APART = 27, 14
_PAUSE_S = 1.0


def rows(progress: Progress) -> Iterator[Row]:
    progress("DRS Fig 8: from poor allocations to the best, VLD")
    yield convergence("VLD", apps.VLD, apps.VLD_BEST, ((8, 12, 2), (11, 9, 2)), range(5))
    progress("DRS Fig 8: from poor allocations to the best, FPD")
    yield convergence("FPD", apps.FPD, apps.FPD_BEST, ((8, 12, 2), (7, 13, 2)), range(1))


def convergence(name: str, topology: Topology, best: Split, starts: Sequence[Split], seeds: range) -> Row:
    limits, smoothing = Limits(budget=sum(best)), Smoothing(window=_APART)
    settings = Settings(topology, Drs(), limits=limits, rules=rules(_APART), smoothing=smoothing)
    runs = {
        start: [drive(settings, _load(name, seed), start, _MINUTES, seed, _PAUSE_S, _PAUSE_S) for seed in seeds]
        for start in (best, *starts)
    }
    told = "; ".join(f"from {shown(start)} {_told(found)}" for start, found in runs.items())
    one_move = all(
        [move.after for move in run.moves] == [best] and _tail(run) < _head(run) for s in starts for run in runs[s]
    )
    return Row(
        f"Fig 8 {name}: one re-allocation leads to {shown(best)}",
        f"{' and '.join(map(shown, starts))} move once, at minute 14; the best stays; the times end alike",
        told,
        one_move and not any(run.moves for run in runs[best]),
        f"Holds if every run from a bad start moves once, to the best, and none from the best. Runs of each: "
        f"{len(seeds)}. T_ra is 14 minutes; our cool-down starts at the first tick, minute 1, so the "
        "first "
        f"move may come at 15. Assumed: a window of 14 minutes and a pause of {_PAUSE_S:g} s.",
    )


def _load(name: str, seed: int) -> Load:
    return apps.frames(int(_MINUTES * MINUTE_S), seed) if name == "VLD" else apps.FPD_ROWS_PER_S


def _told(found: Sequence[DrsRun]) -> str:
    counted = Counter(tuple((move.minute, shown(move.after)) for move in run.moves) for run in found)
    moves = " or ".join(
        (", ".join(f"to {after} at {minute}" for minute, after in path) or "no move") + f" ({count} of {len(found)})"
        for path, count in counted.items()
    )
    return f"{moves}, mean {median(map(_head, found)):.3g} -> {median(map(_tail, found)):.3g} s"


def _head(run: DrsRun) -> float:
    return sum(run.minutes_s[:_APART]) / _APART


def _tail(run: DrsRun) -> float:
    """Mean of the last nine minutes, after the backlog is gone."""
    return sum(run.minutes_s[-9:]) / 9
