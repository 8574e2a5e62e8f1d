"""Mc-Stream's figures: Top_N under its four levels against the default scheduler, as load and nodes grow.

The paper's cluster is told only by its CPU names, so absolute times cannot come out; orders and shapes can. What was
assumed is in ``top_n`` and ``four_levels``. ``holds`` asks for a difference of at least 2%.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from sluicegate.lab.reproduce.four_levels import ALL, DEFAULT, run
from sluicegate.lab.reproduce.mc_stream_levels import CLEARLY, MODEL, level_rows
from sluicegate.lab.reproduce.row import Progress, Row
from sluicegate.lab.reproduce.top_n import Performance

RATES_PER_S = (1000.0, 3000.0, 5000.0)
APPLICATIONS = (2, 8, 14, 20)
NODES = (5, 10, 15, 25, 35)
_SUPERVISORS = 32
_BASE_PER_S = 1000.0
_NOT_FULL = (
    "below saturation both let every row through, so there is nothing to gain; the paper's rates lie at half of the "
    "input even on an idle cluster, which it does not explain"
)


@dataclass(frozen=True, eq=False, slots=True)
class Duel:
    """The default scheduler and Mc-Stream under the same load."""

    storm: Performance
    mc: Performance

    @property
    def latencies(self) -> str:
        return f"{self.mc.latency_s * 1000:.0f} vs {self.storm.latency_s * 1000:.0f} ms"

    @property
    def rates(self) -> str:
        return f"{self.mc.per_s:,.0f} vs {self.storm.per_s:,.0f}/s"

    @property
    def faster(self) -> bool:
        return self.mc.latency_s < self.storm.latency_s * (1 - CLEARLY)

    @property
    def more(self) -> bool:
        return self.mc.per_s > self.storm.per_s * (1 + CLEARLY)

    @property
    def saved_s(self) -> float:
        return self.storm.latency_s - self.mc.latency_s


def rows(progress: Progress) -> Iterator[Row]:
    """Every figure of the spec, one row each.

    >>> first = next(rows(lambda what: None))
    >>> first.what, first.holds
    ('latency, 2 applications, 1,000/s: Mc-Stream vs default', True)
    """
    by_rate: list[Duel] = []
    for rate in RATES_PER_S:
        progress(f"Top_N at {rate:,.0f} rows/s")
        by_rate.append(_duel(2, rate, _SUPERVISORS))
        yield from _at_rate(rate, by_rate[-1])
    yield from _as_rates_grow(by_rate)
    by_number: list[Duel] = []
    for number in APPLICATIONS:
        progress(f"{number} applications")
        by_number.append(_duel(number, _BASE_PER_S, _SUPERVISORS))
    yield from _as_applications_grow(by_number)
    by_nodes: list[Duel] = []
    for nodes in NODES:
        progress(f"{nodes} nodes")
        by_nodes.append(_duel(2, _BASE_PER_S, nodes))
    yield from _as_nodes_grow(by_nodes)
    yield from _on_average([*by_rate, *by_number[1:], *by_nodes])
    for applications, rate, nodes in ((2, 3000.0, 15), (14, _BASE_PER_S, _SUPERVISORS)):
        progress(f"levels alone: {applications} applications at {rate:,.0f} rows/s on {nodes} nodes")
        yield from level_rows(applications, rate, nodes)


def _duel(applications: int, rate_per_s: float, nodes: int) -> Duel:
    return Duel(*(run(levels, applications, rate_per_s, nodes) for levels in (DEFAULT, ALL)))


def _at_rate(rate_per_s: float, duel: Duel) -> Iterator[Row]:
    latency = {1000.0: "30 vs 43 ms", 5000.0: "258 vs 391 ms"}.get(rate_per_s, "lower")
    rate = {1000.0: "621 vs 459/s", 5000.0: "3,051 vs 2,231/s"}.get(rate_per_s, "higher")
    told = f"2 applications, {rate_per_s:,.0f}/s: Mc-Stream vs default"
    yield Row(f"latency, {told}", latency, duel.latencies, duel.faster, MODEL)
    yield Row(f"throughput, {told}", rate, duel.rates, duel.more, MODEL if duel.more else _NOT_FULL)


def _as_rates_grow(duels: Sequence[Duel]) -> Iterator[Row]:
    saved = [duel.saved_s * 1000 for duel in duels]
    more = [duel.mc.per_s - duel.storm.per_s for duel in duels]
    told = "/".join(f"{rate:,.0f}" for rate in RATES_PER_S)
    why = "the user's instances were set for 1,000/s and saturate"
    yield Row(
        f"latency gap at {told} rows/s", "13 -> 133 ms", _line(saved, "ms"), saved[-1] > saved[0] * (1 + CLEARLY), why
    )
    yield Row(f"throughput gap at {told} rows/s", "162 -> 820/s", _line(more, "/s"), more[-1] > more[0], why)
    generous = Duel(run(DEFAULT, 2, RATES_PER_S[-1], _SUPERVISORS, users_rate_per_s=RATES_PER_S[-1]), duels[-1].mc)
    yield Row(
        "the same at 5,000/s if the user had set the instances for it",
        "258 vs 391 ms, 3,051 vs 2,231/s",
        f"{generous.latencies}, {generous.rates}",
        generous.faster and generous.more,
        "then the default keeps up as well: the gap in throughput is one of instance numbers, which the paper omits",
    )


def _as_applications_grow(duels: Sequence[Duel]) -> Iterator[Row]:
    last, told = duels[-1], "/".join(map(str, APPLICATIONS))
    latencies = "; ".join(duel.latencies for duel in duels)
    everywhere = all(duel.faster for duel in duels)
    yield Row(f"latency, {told} applications at 1,000/s", "30 vs 43 ms; at 20: 71 vs 106", latencies, everywhere, MODEL)
    rates = "; ".join(duel.rates for duel in duels)
    why = (
        f"at {APPLICATIONS[-1]} the cluster is full for both; Mc-Stream has fewer rows that change nodes "
        f"({last.mc.remote:.0%} vs {last.storm.remote:.0%}) and less even nodes (sd of CPU {last.mc.balance:.2f} vs "
        f"{last.storm.balance:.2f})"
    )
    yield Row(
        f"throughput, {told} applications at 1,000/s",
        "621 vs 459/s; at 20: 411 vs 307",
        rates,
        all(duel.more for duel in duels),
        MODEL if last.more else f"{why}; with few applications, {_NOT_FULL}",
    )
    falls = all(side[-1] < side[0] for side in ([d.mc.per_s for d in duels], [d.storm.per_s for d in duels]))
    yield Row("throughput falls with 20 applications", "both fall by a third", rates, falls, "a full cluster")
    cpu = "; ".join(f"{duel.mc.cpu:.0%} vs {duel.storm.cpu:.0%}" for duel in duels)
    full = duels[APPLICATIONS.index(14)].storm.cpu > 0.9 and last.mc.cpu < last.storm.cpu
    yield Row(
        f"CPU, {told} applications: Mc-Stream vs default",
        "default 100% from 14 on; Mc-Stream 97% at 20",
        cpu,
        full,
        "where the default is full was used to choose the cost of a remote row; that Mc-Stream stays below it was not",
    )
    spread = "; ".join(f"{duel.mc.balance:.2f} vs {duel.storm.balance:.2f}" for duel in duels)
    fair = fmean(duel.mc.balance for duel in duels) < fmean(duel.storm.balance for duel in duels)
    yield Row(
        f"load balance (sd of node CPU), {told} applications", "default above 0.3 from 10 on", spread, fair, MODEL
    )


def _as_nodes_grow(duels: Sequence[Duel]) -> Iterator[Row]:
    told, at_15 = "/".join(map(str, NODES)), NODES.index(15)
    mc, storm = ([getattr(d, side).latency_s * 1000 for d in duels] for side in ("mc", "storm"))
    flat = abs(mc[-1] - mc[at_15]) <= 0.05 * mc[at_15]
    yield Row(f"Mc-Stream's latency on {told} nodes", "falls to 15, then 28 ms", _line(mc, "ms"), flat, MODEL)
    rises = storm[-1] > storm[at_15] * (1 + CLEARLY)
    far = [duels[at].storm.remote for at in (at_15, -1)]
    apart = f"{far[0]:.0%} of its rows change nodes on 15 nodes and {far[1]:.0%} on 35: more nodes make no hop longer"
    yield Row(
        f"default's latency on {told} nodes", "rises to 58 ms", _line(storm, "ms"), rises, MODEL if rises else apart
    )
    falls = mc[0] > mc[at_15] and storm[0] > storm[at_15]
    yield Row("both latencies fall up to 15 nodes", "falls", f"from {mc[0]:.0f} and {storm[0]:.0f} ms", falls, MODEL)
    last = duels[-1]
    yield Row("throughput on 35 nodes", "621 vs 407/s", last.rates, last.more, MODEL if last.more else _NOT_FULL)


def _on_average(duels: Sequence[Duel]) -> Iterator[Row]:
    latency = fmean(1 - duel.mc.latency_s / duel.storm.latency_s for duel in duels)
    rate = fmean(1 - duel.storm.per_s / duel.mc.per_s for duel in duels)
    cpu = fmean(1 - (duel.mc.cpu / duel.mc.per_s) / (duel.storm.cpu / duel.storm.per_s) for duel in duels)
    over = f"mean over the {len(duels)} loads above"
    yield Row("latency, on average", "-32%", f"{-latency:+.0%}", latency > CLEARLY, over)
    yield Row("throughput, on average, (Mc - default)/Mc", "+26%", f"{rate:+.0%}", rate > CLEARLY, over)
    why = (
        f"{over}; the order comes out, the size does not: rows go to all instances of the next vertex, and at most one "
        "of those shares a sender's node: with siblings kept apart few hops become local"
    )
    yield Row("CPU for the same work", "-34%", f"{-cpu:+.0%}", cpu > CLEARLY, why)


def _line(values: Sequence[float], unit: str) -> str:
    return " -> ".join(f"{value:,.0f}" for value in values) + f" {unit}".replace(" /", "/")
