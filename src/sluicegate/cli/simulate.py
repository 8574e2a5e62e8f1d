"""`sluicegate simulate`: an allocation under a load, row by row, against what the models predict; or a policy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.out import console, print_json, progress_bar
from sluicegate.cli.plan import profiled, rates_from
from sluicegate.config.topology_file import read_topology
from sluicegate.config.typed import duration_s, goal_from, number_from, pairs_from, policy_options
from sluicegate.control.planning import predict_allocation
from sluicegate.control.settings import Timing, settings_for
from sluicegate.domain import Goal, Limits, Prediction, Topology
from sluicegate.domain.figures import rate, seconds
from sluicegate.errors import BadInput
from sluicegate.lab.simulate.arrivals import poisson
from sluicegate.lab.simulate.episode import Course, Episode, run_episode
from sluicegate.lab.simulate.microbatch import SPARK_BATCH
from sluicegate.lab.simulate.scenario import Load
from sluicegate.lab.simulate.simulation import SimulationResult
from sluicegate.lab.simulate.simulation import simulate as run
from sluicegate.model.traffic import in_batches
from sluicegate.policy.catalogue import live_policy_entry
from sluicegate.runlog.plan_file import MOST_PROCESSORS

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
        raise BadInput(f"{asked.length_s:g} s are less than one tick of {asked.look_s:g} s: give --seconds more")
    if asked.look_s > 0 and asked.length_s / asked.look_s > _MOST_LOOKS:
        raise BadInput(
            f"{asked.length_s:g} s are more than {_MOST_LOOKS:,} ticks of {asked.look_s:g} s: "
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


_MODES = ("queue", "micro-batch")


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The topology, a TOML file.")],
    rate_text: Annotated[
        str,
        typer.Option(
            "--rate",
            metavar="R",
            help="Rows a second from outside; NAME=R,... for named sources; with --policy also R/R/... in equal steps.",
        ),
    ],
    allocation: Annotated[
        str | None, typer.Option(metavar="A=K,B=K", help="Processors of every operator; with --policy those at first.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="Let the loop decide, every --interval; see `sluicegate policies`.")
    ] = None,
    policy_option: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="An option of the policy; see `sluicegate policies`.")
    ] = None,
    slo: Annotated[
        list[str] | None, typer.Option(metavar="GOAL", help="mean=2s, p95=5s; several with commas (with --policy).")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="K", max=MOST_PROCESSORS, help="Most processors in all (with --policy).")
    ] = None,
    interval: Annotated[str, typer.Option(metavar="S", help="Time between two ticks (with --policy).")] = "10s",
    length: Annotated[str, typer.Option("--seconds", metavar="S", help="Simulated time: 600, 10min, 2h.")] = "3600",
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 1,
    mode: Annotated[str | None, typer.Option(help="queue or micro-batch (default: what the file says).")] = None,
    profiles: Annotated[
        Path | None, typer.Option("--profiles", "--profile", metavar="DIR", help="Profiles of the operators.")
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Simulate a pipeline at a steady load against the models' prediction, or under a policy."""
    topology = profiled(_in_mode(read_topology(file), mode), profiles)
    if policy is not None:
        begins = dict.fromkeys(topology.names, 1) if allocation is None else allocation_from(allocation, topology)
        asked = LoopAsked(
            rates_in_steps(rate_text),
            duration_s(length),
            policy,
            begins,
            goal_from(slo or ()),
            budget,
            policy_options(policy_option or ()),
            duration_s(interval),
            seed,
        )
        return _under_policy(topology, asked, json_out)
    if allocation is None:
        raise BadInput("give --allocation, the processors of every operator, or --policy, who decides them")
    if policy_option or slo or budget is not None:
        raise BadInput("--policy-option, --slo and --budget go with --policy: leave them out, or name one")
    processors = allocation_from(allocation, topology)
    total, by_source = rates_from(rate_text, topology)
    load: Load = total if by_source is None else {source: poisson(r) for source, r in by_source.items()}
    begin = time.perf_counter()
    with progress_bar("simulating", quiet=json_out) as progress:
        result = run(topology, load, processors, duration_s(length), seed, mode="declared", progress=progress)
    wall_s = time.perf_counter() - begin
    if json_out:
        print_json({**asdict(result), "wall_s": wall_s})
    else:
        expected = predict_allocation(topology, total, processors, by_source)
        _show(topology, result, expected, wall_s, console())
    return 0 if result.stable else 1


def _under_policy(topology: Topology, asked: LoopAsked, json_out: bool) -> int:
    episode = play(topology, asked)
    if json_out:
        print_json(as_document(episode, asked))
    else:
        show(topology, episode, asked, console())
    return 0


def _in_mode(topology: Topology, mode: str | None) -> Topology:
    """Set all operators to queues or to batches, for the simulator and the models alike."""
    if mode is None:
        return topology
    if mode not in _MODES:
        raise BadInput(f"mode is {mode!r}: give one of {', '.join(_MODES)}")
    batched = mode == "micro-batch"
    return topology.with_operators(
        tuple(replace(o, batch=(o.batch or SPARK_BATCH) if batched else None) for o in topology.operators)
    )


def allocation_from(text: str, topology: Topology) -> dict[str, int]:
    """``a=3,b=4`` for every operator of the topology."""
    given = pairs_from(text, "allocation")
    for name, count in given.items():
        if name not in topology.index:
            raise BadInput(f"allocation names {name!r}, which is no operator; known are {', '.join(topology.names)}")
        if not 1 <= count <= MOST_PROCESSORS or count != int(count):
            raise BadInput(f"allocation of {name!r} is {count:g}: give a whole number, 1 to {MOST_PROCESSORS}")
    missing = [name for name in topology.names if name not in given]
    if missing:
        raise BadInput(f"allocation lacks {', '.join(missing[:5])}: name every operator, for example {missing[0]}=1")
    return {name: int(count) for name, count in given.items()}


def _show(topology: Topology, result: SimulationResult, expected: Prediction, wall_s: float, out: Console) -> None:
    speed = result.events / wall_s if wall_s > 0 else 0.0
    out.print(
        f"[bold]{escape(topology.name)}[/] at {rate(result.arrivals_per_s)}: {result.events:,} events in "
        f"{seconds(wall_s)} ({speed:,.0f} a second), the first {seconds(result.warm_up_s)} left out\n"
    )
    table = Table("operator", box=None, pad_edge=False)
    for heading in ("processors", "busy", "waiting rows", "mean", "+-", "model's mean"):
        table.add_column(heading, justify="right")
    for name, o in result.operators.items():
        model = seconds(expected.operators[name].mean_s)
        cells = (
            str(o.processors),
            f"{o.utilisation:.0%}",
            f"{o.queue:.1f}",
            seconds(o.mean_s),
            seconds(o.ci95_s),
            model,
        )
        table.add_row(escape(name), *cells)
    out.print(table)
    for reason in result.reasons:
        out.print(f"[red]{escape(reason)}[/]")
    whole = expected.sojourn
    p95 = f"p95 {seconds(result.p95_s)} (model {seconds(whole.p95_s)})"
    added_up = f"{seconds(result.mean_s)} +- {seconds(result.ci95_s)}"
    if in_batches(topology):
        # there the model gives the time of one row's path; all rows that stem from it, added up, are another figure
        mean = f"{seconds(result.completion_mean_s)} (model {seconds(whole.mean_s)})"
        out.print(f"\nfrom source to sink: mean {mean}, {p95}; with all rows that stem from it added up {added_up}")
    else:
        out.print(f"\nfrom source to sink: mean {added_up} (model {seconds(whole.mean_s)}), {p95}")
