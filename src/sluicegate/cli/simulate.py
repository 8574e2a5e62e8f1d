"""`sluicegate simulate`: an allocation under a load, row by row, against what the models predict; or a policy."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.out import console, print_json, progress_bar
from sluicegate.cli.plan import profiled, rates_from
from sluicegate.cli.simulate_loop import LoopAsked, as_document, play, rates_in_steps, show
from sluicegate.config.goal_text import duration_s, goal_from, pairs_from
from sluicegate.config.policy_options import policy_options
from sluicegate.config.topology_file import read_topology
from sluicegate.control.planning import predict_allocation
from sluicegate.domain import Prediction, Topology
from sluicegate.errors import BadInput
from sluicegate.lab.simulate.arrivals import poisson
from sluicegate.lab.simulate.microbatch import SPARK_BATCH
from sluicegate.lab.simulate.scenario import Load
from sluicegate.lab.simulate.simulation import SimulationResult
from sluicegate.lab.simulate.simulation import simulate as run
from sluicegate.model.ways import in_batches
from sluicegate.report.figures import rate, seconds
from sluicegate.runlog.plan_file import MOST_PROCESSORS

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
    interval: Annotated[str, typer.Option(metavar="S", help="Time between two looks (with --policy).")] = "10s",
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
        f"{seconds(wall_s)} ({speed / 1e6:.1f} million a second), the first {seconds(result.warm_up_s)} left out\n"
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
