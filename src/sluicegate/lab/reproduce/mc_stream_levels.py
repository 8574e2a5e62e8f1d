"""Mc-Stream's claim that one level alone gives limited gains: each against all of them."""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate.lab.reproduce.four_levels import ALL, ALONE, DEFAULT, Levels, run
from sluicegate.lab.reproduce.row import Row
from sluicegate.lab.reproduce.top_n import Performance

CLEARLY = 0.02
"""The least difference, as a share, that counts as one."""
MODEL = "simulated; service times, the cost of remote rows and the user's instances are ours"


def level_rows(applications: int, rate_per_s: float, nodes: int) -> Iterator[Row]:
    found = {one.name: run(one, applications, rate_per_s, nodes) for one in (DEFAULT, *ALONE, ALL)}
    together, told = found[ALL.name], f"{applications} applications, {rate_per_s:,.0f}/s, {nodes} nodes"
    alone = [found[one.name] for one in ALONE]
    rates = "; ".join(f"{name} {one.per_s:,.0f}/s" for name, one in found.items())
    most = all(together.per_s > one.per_s * (1 + CLEARLY) for one in alone)
    why = MODEL if most else "too few instances are all that is wrong here: the level that sets them needs no other"
    yield Row(f"throughput, one level alone against all: {told}", "one level gives limited gains", rates, most, why)
    latencies = "; ".join(f"{name} {one.latency_s * 1000:.0f} ms" for name, one in found.items())
    least = all(together.latency_s < one.latency_s * (1 - CLEARLY) for one in alone)
    why = MODEL if least else _who_is_faster(found, together)
    yield Row(f"latency, one level alone against all: {told}", "one level gives limited gains", latencies, least, why)


def _who_is_faster(found: dict[str, Performance], together: Performance) -> str:
    rivals = [one for one in ALONE if found[one.name].latency_s * (1 - CLEARLY) <= together.latency_s]
    less = [_less(one, found, together) for one in rivals]
    return f"as fast or faster alone: {', '.join(less)}; latency counts the rows let in only"


def _less(one: Levels, found: dict[str, Performance], together: Performance) -> str:
    return f"{one.name}, with {found[one.name].per_s / together.per_s:.1%} of the throughput"
