"""The study's tables in Markdown, from the rows of its cells by cell name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from frontier_bounds import BOUNDS, PRICES
from frontier_cells import OURS, PAPERS, PEAK_TOLD, PEERS, TARGETS, TOLD, Row
from sluicegate.lab.replay.players import BEST_RECENT_PEAK
from sluicegate.lab.replay.world import PROTOCOLS

Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Place:
    """One trace under one protocol: what was told a target by policy and target, everything else by policy."""

    trace: str
    protocol: str
    told: Mapping[tuple[str, float], Row]
    others: Mapping[str, Row]

    def __str__(self) -> str:
        return f"{self.trace} | {self.protocol}"

    def ours(self) -> list[Row]:
        return [self.told[OURS, target] for target in TOLD]

    def bound(self, name: str) -> list[Row]:
        return [self.others[f"{name} at {price:g}"] for price in PRICES]


def tables(traces: Sequence[str], rows: Rows) -> Iterator[list[str]]:
    """All tables, each as its lines."""
    places = [_place(trace, protocol, rows) for trace in traces for protocol in PROTOCOLS]
    yield _table("target | on-time | recent peak in hindsight | reached | no dearer | half", places, _compared)
    yield [_counted(places)]
    yield _table("on time at most", places, lambda p: [f"{p.others['perfect after the start'].qos:.3%}"])
    yield _table("who | " + " | ".join(f"{target:.1%}" for target in TOLD), places, _frontier)
    yield _table(" | ".join(str(number) for number in range(8)), places, lambda p: [_brief(p, PAPERS)])
    yield _table("order 7, 5, 4, single techniques, 0", places, _order)
    yield [_mean_order([place for place in places if place.protocol == protocol]) for protocol in PROTOCOLS]
    yield _table(" | ".join(PEERS), places, lambda p: [_brief(p, PEERS)])
    rivals = (*PAPERS, *PEERS)
    yield _table(" | ".join(rivals), places, lambda p: [" | ".join(_held_against(p, p.others[r]) for r in rivals)])
    yield _table("recent peak in hindsight, " + " | ".join(f"{target:.1%}" for target in PEAK_TOLD), places, _peaks)


def cost_at(qos: float, points: Sequence[Row]) -> Row | None:
    """The cheapest way to be on time that often, between the two points around it; ``None`` if none is that often.

    By the logarithm of the late share, of which cost is nearly a straight line.
    """
    reaching = [point for point in points if point.qos >= qos]
    if not reaching:
        return None
    above = min(reaching, key=lambda point: point.cost)
    cheaper = [point for point in points if point.qos < qos and point.cost < above.cost]
    if not cheaper or above.qos >= 1:
        return above
    below = max(cheaper, key=lambda point: point.qos)
    part = math.log((1 - qos) / (1 - above.qos)) / math.log((1 - below.qos) / (1 - above.qos))
    rescales = above.rescales + part * (below.rescales - above.rescales)
    return Row(above.policy, qos, above.cost + part * (below.cost - above.cost), rescales)


def _place(trace: str, protocol: str, rows: Rows) -> Place:
    start = f"{trace} {protocol} "
    told = {
        (name, target): row
        for name in (OURS, BEST_RECENT_PEAK)
        for target in TOLD
        for row in rows.get(f"{start}{name} told {target:.1%}", ())
    }
    names = (name for name in rows if name.startswith(start) and " told " not in name)
    return Place(trace, protocol, told, {row.policy: row for name in names for row in rows[name]})


def _table(heads: str, places: Sequence[Place], lines: Callable[[Place], Sequence[str]]) -> list[str]:
    head = f"| trace | protocol | {heads} |"
    rows = [f"| {place} | {line} |" for place in places for line in _known(place, lines)]
    return [head, "|---" * (head.count("|") - 1) + "|", *rows]


def _known(place: Place, lines: Callable[[Place], Sequence[str]]) -> Sequence[str]:
    try:
        return lines(place)
    except KeyError as lacking:
        return [f"not run yet: {lacking}"]


def _compared(place: Place) -> list[str]:
    lines = []
    for target in TARGETS:
        ours, peak = place.told[OURS, target], place.told[BEST_RECENT_PEAK, target]
        held = _aims(ours, peak, target)
        misses = "" if _reached(peak, target) else " (peak misses)"
        said = ["yes" if aim else "no" for aim in held]
        lines.append(f"{target:.1%} | {_full(ours)} | {_full(peak)} | {said[0]} | {said[1]}{misses} | {said[2]}")
    return lines


def _aims(ours: Row, peak: Row, target: float) -> tuple[bool, bool, bool]:
    return _reached(ours, target), ours.cost <= peak.cost, 2 * ours.rescales <= peak.rescales


def _reached(row: Row, target: float) -> bool:
    return round(row.qos, 4) >= target  # as printed


def _counted(places: Sequence[Place]) -> str:
    names = (OURS, BEST_RECENT_PEAK)
    known = [(p, t) for p in places for t in TARGETS if all((name, t) in p.told for name in names)]
    pairs = [(p.told[OURS, t], p.told[BEST_RECENT_PEAK, t], t) for p, t in known]
    aims = [_aims(*pair) for pair in pairs]
    reached, dearer, half = (sum(aim[i] for aim in aims) for i in range(3))
    missed = sum(not _reached(peak, target) for _, peak, target in pairs)
    return (
        f"Of {len(aims)} cases: target reached {reached}, no dearer {dearer}, at most half the rescales {half}, "
        f"all three {sum(map(all, aims))}; recent peak misses the target in {missed}."
    )


def _frontier(place: Place) -> list[str]:
    lines = [f"{OURS} | " + " | ".join(map(_full, place.ours()))]
    for name in BOUNDS:
        found = [cost_at(target, place.bound(name)) for target in TOLD]
        lines.append(f"{name} | " + " | ".join("not reached" if r is None else _priced(r) for r in found))
    return lines


def _order(place: Place) -> list[str]:
    return ["kept" if _kept([place.others[name].qos for name in PAPERS]) else "broken"]


def _kept(qos: Sequence[float]) -> bool:
    """Whether the paper's order of shares on time is kept: 7, 5, 4, the single techniques (1 and 2), 0."""
    return qos[7] >= qos[5] >= qos[4] >= max(qos[1], qos[2]) and min(qos[1], qos[2]) >= qos[0]


def _mean_order(places: Sequence[Place]) -> str:
    """The order of the means over the traces, which is what the paper prints."""
    known = [place for place in places if all(name in place.others for name in PAPERS)]
    if not known:
        return "Means over all traces: not run yet."
    qos = [fmean(place.others[name].qos for place in known) for name in PAPERS]
    means = ", ".join(f"{number} {qos[number]:.1%}" for number in reversed(range(len(PAPERS))))
    order = "kept" if _kept(qos) else "broken"
    return f"Means over all traces run ({len(known)}), {known[0].protocol}: {means}; order {order}."


def _held_against(place: Place, rival: Row) -> str:
    """our cost where we are on time as often, over the rival's; below what on-time goes down to, a dash."""
    ours = place.ours()
    found = cost_at(rival.qos, ours)
    if found is None or rival.qos < min(row.qos for row in ours):
        return "later" if found else "not reached"
    return f"{found.cost / rival.cost:.3f}"


def _peaks(place: Place) -> list[str]:
    return [" | ".join(_held_against(place, place.told[BEST_RECENT_PEAK, target]) for target in PEAK_TOLD)]


def _brief(place: Place, names: Sequence[str]) -> str:
    return " | ".join(f"{place.others[name].qos:.1%} {place.others[name].cost:.2f}" for name in names)


def _full(row: Row) -> str:
    return f"{row.qos:.2%} {_priced(row)}"


def _priced(row: Row) -> str:
    return f"{row.cost:.3f} ({row.rescales:.0f})"
