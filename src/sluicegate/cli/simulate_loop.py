"""`sluicegate simulate --policy`: the loop on a simulated pipeline, with the policy and options that `run` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluicegate.config.goal_text import number_from
from sluicegate.control.settings import Timing, settings_for
from sluicegate.domain import Goal, Limits, Topology
from sluicegate.errors import BadInput
from sluicegate.lab.simulate.episode import Course, Episode, run_episode
from sluicegate.policy.catalogue import live_policy_entry
from sluicegate.report.figures import seconds

_INTERVAL_S, _CYCLE_S = 10.0, 60.0
_MOST_LOOKS = 1_000_000


@dataclass(frozen=True, slots=True)
class LoopAsked:
    """What is simulated: the load in equal steps, the policy, and the initial allocation."""

    rates_per_s: tuple[float, ...]
    length_s: float
    policy: str
    begins: Mapping[str, int]
    goal: Goal = field(default_factory=Goal)
    budget: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    interval_s: float = _INTERVAL_S
    seed: int = 1

    @property
    def look_s(self) -> float:
        """Seconds between two ticks: by the policy's options (DRS's T_m), else the interval."""
        told = self.options.get("t_m_s")
        return float(told) if isinstance(told, int | float) and told > 0 else self.interval_s


def rates_in_steps(text: str) -> tuple[float, ...]:
    """
    >>> rates_in_steps("6/12/18")
    (6.0, 12.0, 18.0)
    """
    return tuple(number_from(part, "rate") for part in text.split("/"))


def play(topology: Topology, asked: LoopAsked) -> Episode:
    """Simulate the whole run; the same seed gives the same result."""
    live_policy_entry(asked.policy)  # refuses a policy that must know the future load: it cannot run in a loop
    if asked.length_s < asked.look_s:
        raise BadInput(f"{asked.length_s:g} s are less than one look of {asked.look_s:g} s: give --seconds more")
    if asked.look_s > 0 and asked.length_s / asked.look_s > _MOST_LOOKS:
        raise BadInput(
            f"{asked.length_s:g} s are more than {_MOST_LOOKS:,} looks of {asked.look_s:g} s: "
            "give a longer --interval or fewer --seconds"
        )
    timing = Timing(asked.look_s, cycle_s=max(_CYCLE_S, asked.look_s))
    settings = settings_for(
        asked.policy, topology, asked.goal, Limits(budget=asked.budget), timing, options=dict(asked.options)
    )
    step_s = asked.length_s / len(asked.rates_per_s)
    course = Course(asked.rates_per_s, step_s, asked.look_s, mode="declared")
    return run_episode(settings, course, asked.begins, asked.seed)


def mean_s(episode: Episode) -> float | None:
    """Mean latency of all rows: the means of the ticks, weighted by their throughput."""
    seen = [m.observation for m in episode.moments if m.observation.sojourn is not None]
    rows = [one.throughput_per_s or 0.0 for one in seen]
    if not sum(rows):
        return None
    return sum(n * one.sojourn.mean_s for n, one in zip(rows, seen, strict=True) if one.sojourn) / sum(rows)


def as_document(episode: Episode, asked: LoopAsked) -> dict[str, object]:
    """The JSON of the command line."""
    moved = [m.decision for m in episode.moments if m.decision.moves]
    return {
        "policy": asked.policy,
        "options": dict(asked.options),
        "rates_per_s": list(asked.rates_per_s),
        "seconds": asked.length_s,
        "mean_s": mean_s(episode),
        "kept_share": episode.kept_share,
        "slot_seconds": episode.slot_seconds,
        "rows_in": episode.rows_in,
        "rows_out": episode.rows_out,
        "rows_inside": episode.rows_inside,
        "moves": [
            {"at_s": one.at_s, "running": dict(one.running), "rescales": [asdict(r) for r in one.rescales]}
            for one in moved
        ],
        "running": dict(episode.moments[-1].decision.running),
    }


def show(topology: Topology, episode: Episode, asked: LoopAsked, out: Console) -> None:
    load = ", then ".join(f"{rate:,.6g}" for rate in asked.rates_per_s)
    out.print(f"[bold]{escape(topology.name)}[/] under {asked.policy}: {load} rows/s, {asked.length_s:g} s in all\n")
    table = Table("at", "processors", "mean", "why", box=None, pad_edge=False)
    table.add_row("0 s", _told(asked.begins), "", "as it begins")
    for moment in episode.moments:
        if moment.decision.moves:
            seen = moment.observation.sojourn
            then = "" if seen is None else seconds(seen.mean_s)
            why = escape(moment.decision.rescales[0].reason)
            table.add_row(f"{moment.decision.at_s:g} s", _told(moment.decision.running), then, why)
    out.print(table)
    whole, kept = mean_s(episode), episode.kept_share
    parts = [f"{episode.rescales} moves"]
    parts += [] if whole is None else [f"mean {seconds(whole)}"]
    parts += [] if kept is None else [f"promise kept for {kept:.1%} of the rows"]
    parts += [f"{episode.slot_seconds:,.0f} processor-seconds"]
    out.print(f"\n{', '.join(parts)}")


def _told(running: Mapping[str, int]) -> str:
    return escape(", ".join(f"{name} {k}" for name, k in running.items()))
