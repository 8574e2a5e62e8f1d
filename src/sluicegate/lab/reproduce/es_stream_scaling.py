"""Es-Stream Fig 15 to 17: instances and nodes that follow the rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sluicegate.control.loop import Settings
from sluicegate.control.rules import Rules
from sluicegate.domain import Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.lab.reproduce import es_stream_apps as apps
from sluicegate.lab.reproduce.es_stream_apps import APPS, PaperApp, drs_split, instances, shown
from sluicegate.lab.reproduce.row import Progress, Row
from sluicegate.lab.simulate.episode import Course, Episode, run_episode
from sluicegate.measure.smoothing import Smoothing
from sluicegate.place.dsm import Dsm
from sluicegate.place.es_stream import EsStreamPlacer
from sluicegate.place.placer import DoesNotFit, Placer
from sluicegate.place.rsm import Rsm
from sluicegate.policy.allotment import bundles_of
from sluicegate.policy.papers.es_stream import EsStream

_RATES = (1800.0, 3600.0, 2700.0)
_STEP_S = 20.0
_COURSE = Course((*[1800.0] * 5, *[3600.0] * 3, *[2700.0] * 3), step_s=_STEP_S, interval_s=5.0)
_LAST_TICK_OF = (19, 31, 43)
"""The last tick, counted from 0, before 100 s, 160 s and 220 s."""


def rows(progress: Progress) -> Iterator[Row]:
    for app in APPS:
        progress(f"Es-Stream Fig 15: instances of {app.name}")
        yield planned(app)
        yield followed(app, seed=1)
    for app in APPS:
        progress(f"Es-Stream Fig 16, 17: nodes of {app.name}")
        yield nodes(app)


def planned(app: PaperApp) -> Row:
    """The plans for the exact rates."""
    plans = [instances(app.topology, rate) for rate in _RATES]
    totals = tuple(sum(plan.values()) for plan in plans)
    return Row(
        f"Fig 15 {app.name}: instances planned for 1,800 -> 3,600 -> 2,700 rows/s",
        _arrows(app.instances),
        f"{_arrows(totals)}: {', '.join(map(shown, plans))}",
        totals == app.instances,
        f"Holds if all three totals are the paper's. {apps.FITTED}",
    )


def followed(app: PaperApp, seed: int) -> Row:
    """The same in a simulated run, from measurements: the rate changes at 100 s and at 160 s."""
    episode = _episode(app, seed)
    totals = tuple(sum(episode.moments[tick].decision.running.values()) for tick in _LAST_TICK_OF)
    moves = [moment.observation.at_s for moment in episode.moments if moment.decision.moves]
    off = max(abs(ours - theirs) for ours, theirs in zip(totals, app.instances, strict=True))
    return Row(
        f"Fig 15 {app.name}: instances in a run whose rate changes at 100 s and 160 s",
        _arrows(app.instances),
        f"{_arrows(totals)}, changed at {', '.join(f'{at:g}' for at in moves)} s; "
        f"{episode.rows_in - episode.rows_out - episode.rows_inside} rows lost",
        totals[0] < totals[2] < totals[1] and off <= 1,
        "Holds if the shape does and each count is within 1 of the paper's: rates are measured here, over 5 s and "
        "smoothed. The run starts with the plan for 900 rows/s; state moves at no cost, as in the paper's run.",
    )


def _episode(app: PaperApp, seed: int) -> Episode:
    settings = Settings(app.topology, EsStream(), rules=Rules.none(), smoothing=Smoothing(window=2))
    start = instances(app.topology, _RATES[0] / 2)
    return run_episode(settings, _COURSE, start, seed)


def nodes_used(placer: Placer, topology: Topology, counts: Mapping[str, int], fleet: Sequence[Vm] = apps.FLEET) -> int:
    """Nodes of the paper's cluster that run something."""
    placed = placer.place(topology, bundles_of(topology, counts), fleet)
    if isinstance(placed, DoesNotFit):
        raise Infeasible(placed.why)
    return len({slot.rpartition("/")[0] for slot, groups in placed.slots.items() if groups})


def nodes(app: PaperApp) -> Row:
    topology = app.topology
    plans = [instances(topology, rate) for rate in _RATES]
    ours = [nodes_used(EsStreamPlacer(), topology, plan) for plan in plans]
    budget = max(sum(plan.values()) for plan in plans)
    drs = [nodes_used(Dsm(), topology, drs_split(topology, rate, budget), apps.ROUND_ROBIN) for rate in _RATES]
    packed = nodes_used(Rsm(), topology, plans[0])
    return Row(
        f"Fig 16, 17 {app.name}: nodes at 1,800 -> 3,600 -> 2,700 rows/s",
        "Es-Stream's follow the rate; DRS and R-Storm keep theirs, R-Storm the fewest (counts are not printed)",
        f"Es-Stream {_arrows(ours)}, DRS {_arrows(drs)}, R-Storm {packed} throughout",
        ours[0] < ours[2] < ours[1] and len(set(drs)) == 1 and packed <= min(ours) and packed <= min(drs),
        "Holds if in that order at every rate. "
        "Es-Stream placed anew for each plan, thresholds ours (eta 0.5, phi 0.7). Assumed: DRS has as many processors "
        "as "
        "Es-Stream at its most, dealt out in turn by Storm; R-Storm keeps the instances of 1,800 rows/s, as it never "
        "asks.",
    )


def _arrows(counts: Sequence[int]) -> str:
    return " -> ".join(map(str, counts))
