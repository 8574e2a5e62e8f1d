"""Es-Stream Fig 15 to 18, 20 and 21: instances and nodes that follow the rate, and what moving their state takes.

Fig 15 to 17 are the instances and nodes, Fig 20 the time to repartition state, Fig 18 and 21 to repair an instance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from sluicegate.control.loop import Settings
from sluicegate.control.rules import Rules
from sluicegate.domain import Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.lab.reproduce import es_stream_apps as apps
from sluicegate.lab.reproduce.claims import Progress, Row
from sluicegate.lab.reproduce.es_stream_apps import APPS, PaperApp, drs_split, instances, shown
from sluicegate.lab.simulate.episode import Course, Episode, run_episode
from sluicegate.lab.simulate.stepping import advance, apply, begin, fail
from sluicegate.lab.simulate.world import OperatorState
from sluicegate.measure import Smoothing
from sluicegate.model.state_move import Holder, Replay, repair_s, repartition_s
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


def following_rows(progress: Progress) -> Iterator[Row]:
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
        "as Es-Stream at its most, dealt out in turn by Storm; R-Storm keeps the instances of 1,800 rows/s, as it "
        "never asks.",
    )


def _arrows(counts: Sequence[int]) -> str:
    return " -> ".join(map(str, counts))


_STATE_BYTES = 42e6
_LINK = Holder(compute_bytes_per_s=1e9, bandwidth_bytes_per_s=12.5e6)
_FLOOR_S, _CHECKPOINT_S = 0.225, (0.71, 0.75)
_RATE_PER_S = 1800.0
_INTERVALS_S = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
_TRIAL_COUNTERS = 13
_MOST_ROWS = 1e6
_LINKS = "Speeds are ours: the paper's links of 100 Mbit/s, state cut up at 1 GB/s."


def state_rows(progress: Progress) -> Iterator[Row]:
    progress("Es-Stream Fig 20: repartition time")
    yield from repartition()
    progress("Es-Stream Fig 20: a rescale of a stateful operator, simulated")
    yield simulated_move(seed=1)
    progress("Es-Stream Fig 18, 21: repair time")
    yield from repair()
    yield simulated_repair(seed=1)


def repartition() -> Iterator[Row]:
    """Eq 25 for 42 MB."""
    took = {k: repartition_s(_STATE_BYTES, k, [_LINK] * 3) for k in range(2, 21)}
    floor = min(list(took)[:-1], key=lambda k: abs(took[k] - _FLOOR_S))
    faster = min((k for k in took if took[k] < _CHECKPOINT_S[0]), default=None)
    yield Row(
        "Fig 20: time to part 42 MB anew falls with the parallelism",
        "falls",
        ", ".join(f"{k}: {took[k]:.3f} s" for k in (3, 6, 9, 15, 20)),
        all(took[a] > took[b] for a, b in pairwise(took)),
        f"Holds if every instance more takes less. {_LINKS} Eq 25.",
    )
    yield Row(
        "Fig 20: the time stays at its floor",
        f"at {_FLOOR_S} s",
        f"{took[floor]:.3f} s at {floor} instances, {took[floor + 1]:.3f} s at {floor + 1}, {took[20]:.3f} s at 20",
        abs(took[floor] - _FLOOR_S) < 0.01 and took[floor + 1] > 0.95 * took[floor] and took[20] > 0.95 * took[floor],
        "Holds if within 0.01 s of it once and never 5% below. "
        "The value is met, but Eq 25 has no floor: time goes as 1/k. Perhaps a cost of parting does not "
        "shrink, or it is the largest parallelism, which the paper does not print.",
    )
    whole_s = _STATE_BYTES / _LINK.bandwidth_bytes_per_s
    yield Row(
        "Fig 20: parting in parallel is faster than a checkpoint",
        f"checkpoint {_CHECKPOINT_S[0]} to {_CHECKPOINT_S[1]} s at any parallelism",
        f"from {faster} instances on below the paper's {_CHECKPOINT_S[0]} s; all 42 MB over one link take "
        f"{whole_s:.2f} s",
        faster is not None and took[20] < _CHECKPOINT_S[0] < whole_s,
        "Holds if 20 instances take less. "
        "The checkpoint has no model here: its time is the paper's. It cannot have gone over one link of that cluster.",
    )


def simulated_move(seed: int) -> Row:
    """COMMCount rescaled while it runs, its counters with 42 MB of state."""
    topology, counts = apps.COMMODITY_COUNT, instances(apps.COMMODITY_COUNT, _RATE_PER_S)
    world = begin(topology, _RATE_PER_S, counts, seed, state={"count": OperatorState(_STATE_BYTES)})
    usual = advance(world, 30.0)
    apply(world, {**counts, "count": 15})
    paused_s = max(world.paused_until.values(), default=world.now_s) - world.now_s
    during, after = advance(world, 31.0), advance(world, 61.0)
    means = [seen.sojourn.mean_s if seen.sojourn else 0.0 for seen in (usual, during, after)]
    return Row(
        "Fig 20: counters 9 -> 15 under 1,800 rows/s, 42 MB of state, simulated",
        "not shown",
        f"they stand still for {paused_s:.3f} s; mean latency {means[0] * 1e3:.2f} ms before, {means[1] * 1e3:.0f} ms "
        f"in that second, {means[2] * 1e3:.2f} ms after",
        None,
        f"{_LINKS} Not judged, as the paper shows no such run.",
    )


def repair() -> Iterator[Row]:
    """Eq 26, one failed counter of COMMCount."""
    service = apps.COMMODITY_COUNT.operator("count").service_per_s
    planned = instances(apps.COMMODITY_COUNT, _RATE_PER_S)["count"]
    took = {
        k: [repair_s(ci, [Replay(_RATE_PER_S / k, 1e5, service)], _MOST_ROWS) for ci in _INTERVALS_S]
        for k in (planned, _TRIAL_COUNTERS)
    }
    yield Row(
        "Fig 18, 21: repair time grows with the checkpoint interval",
        "grows",
        ", ".join(f"{ci:g} s: {s:.2f} s" for ci, s in zip(_INTERVALS_S, took[planned], strict=True)),
        all(a < b for a, b in pairwise(took[planned])),
        "Holds if every longer interval takes longer. "
        f"Eq 26 with {planned} counters, as planned. It has no part for fetching the state itself.",
    )
    at_2 = {k: found[_INTERVALS_S.index(2.0)] for k, found in took.items()}
    yield Row(
        "Fig 21: repair at a checkpoint interval of 2 s",
        "0.7 s, by checkpoint 1.9 s",
        " and ".join(f"{seconds:.2f} s with {k} counters" for k, seconds in at_2.items()),
        abs(at_2[_TRIAL_COUNTERS] / 0.7 - 1) <= 0.15,
        f"Holds if within 15% of 0.7 s with {_TRIAL_COUNTERS} counters, its best by trial at this rate, not the "
        f"{planned} that Es-Stream plans; the paper gives no number. A checkpoint's rollback is not modelled.",
    )


def simulated_repair(seed: int) -> Row:
    """One counter fails at 30 s; its downtime for each backup interval."""
    away = []
    for interval_s in _INTERVALS_S:
        topology, counts = apps.COMMODITY_COUNT, instances(apps.COMMODITY_COUNT, _RATE_PER_S)
        state = {"count": OperatorState(_STATE_BYTES, backup_interval_s=interval_s)}
        world = begin(topology, _RATE_PER_S, counts, seed, state=state)
        advance(world, 30.0)
        fail(world, {"count": 1})
        away.append(max(world.down_until.values()) - world.now_s)
    return Row(
        "Fig 21: a counter fails in a simulated run",
        "grows with the interval",
        ", ".join(f"{ci:g} s: {s:.2f} s" for ci, s in zip(_INTERVALS_S, away, strict=True)),
        all(a < b for a, b in pairwise(away)),
        "Holds if every longer interval takes longer. "
        "By Eq 26 from the arrivals of the run; the other counters go on meanwhile.",
    )
