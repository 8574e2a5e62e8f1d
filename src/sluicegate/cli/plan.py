"""`sluicegate plan`: processors, slots, machines and mapping for a topology under a rate, with the reasons."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.out import console, print_json
from sluicegate.config.profile_file import read_profiles, strange, with_profiles
from sluicegate.config.topology_file import read_topology
from sluicegate.config.typed import goal_from, number_from, pairs_from, policy_options
from sluicegate.control.planning import Plan, make_plan
from sluicegate.domain import Limits, Topology
from sluicegate.domain.figures import rate, seconds
from sluicegate.errors import BadInput
from sluicegate.model.mapping_rate import Routing
from sluicegate.model.traffic import pipeline_rate
from sluicegate.runlog.plain_words import plain
from sluicegate.runlog.plan_file import MOST_PROCESSORS

_SHOWN_SLOTS = 40


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The topology, a TOML file.")],
    rate_text: Annotated[
        str, typer.Option("--rate", metavar="R", help="Rows a second from outside; NAME=R,... for named sources.")
    ],
    policy: Annotated[str, typer.Option(help="The policy; see `sluicegate policies`.")] = "sluicegate",
    policy_option: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="An option of the policy; see `sluicegate policies`.")
    ] = None,
    slo: Annotated[
        list[str] | None, typer.Option(metavar="GOAL", help="mean=2s, p95=5s, cost=1.20; several with commas.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="K", max=MOST_PROCESSORS, help="Most processors in all.")
    ] = None,
    mapper: Annotated[str | None, typer.Option(help="dsm, rsm, sam, mc-stream or es-stream.")] = None,
    vm_sizes: Annotated[str, typer.Option(metavar="SIZES", help="Slots of the machines on offer.")] = "1,2,4",
    price: Annotated[float, typer.Option(help="Price of a slot for an hour.")] = 0.05,
    slots_per_executor: Annotated[
        int, typer.Option(min=1, max=MOST_PROCESSORS, help="sluicegate plans whole executors of this size.")
    ] = 1,
    profiles: Annotated[
        Path | None, typer.Option("--profiles", "--profile", metavar="DIR", help="Profiles of the operators.")
    ] = None,
    routing: Annotated[str, typer.Option(help="Rows over slots: even, or slot-aware.")] = "even",
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Plan processors, slots and machines for a pipeline before it runs, with reasons."""
    topology = profiled(read_topology(file), profiles)
    total, by_source = rates_from(rate_text, topology)
    limits = Limits(budget=budget, price_per_slot_hour=price, slots_per_executor=slots_per_executor)
    goal, sizes = goal_from(slo or ()), sizes_from(vm_sizes)
    chosen, route = policy_options(policy_option or ()), routing_from(routing)
    found = make_plan(topology, total, policy, goal, limits, mapper, sizes, by_source, route, chosen)
    if json_out:
        print_json(as_document(found))
    else:
        show(found, console())
    return 0 if found.feasible else 1


def profiled(topology: Topology, profiles: Path | None) -> Topology:
    """Add the profiles of a folder or file; a line on standard error for those measured elsewhere."""
    if profiles is None:
        return topology
    found = read_profiles(profiles)
    for line in strange(found):
        typer.echo(f"sluicegate: {line}", err=True)
    return with_profiles(topology, found)


def routing_from(text: str) -> Routing:
    try:
        return Routing(text)
    except ValueError:
        raise BadInput(f"--routing is {text!r}: give one of {', '.join(one.value for one in Routing)}") from None


def rates_from(text: str, topology: Topology) -> tuple[float, dict[str, float] | None]:
    """The pipeline's rate, and the rate of each source if sources were named."""
    if "=" not in text:
        return number_from(text, "rate"), None
    given = {key if key in topology.sources else f"source:{key}": r for key, r in pairs_from(text, "rate").items()}
    for source in given:
        if source not in topology.sources:
            raise BadInput(f"rate of {source!r}: no such source; known are {', '.join(topology.sources)}")
    rates = {source: given.get(source, 0.0) for source in topology.sources}
    return pipeline_rate(topology, sum(rates.values())), rates


def sizes_from(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"VM sizes {text!r}: give whole numbers with commas, such as 1,2,4") from None


def as_document(found: Plan) -> dict[str, object]:
    """The JSON of the command-line contract."""
    sojourn = found.predicted.sojourn
    return {
        "policy": found.policy,
        "topology": found.topology.name,
        "rate_per_s": found.rate_per_s,
        "operators": {name: asdict(operator) for name, operator in found.predicted.operators.items()},
        "slots": found.slots,
        "extra_slots": found.extra_slots,
        "vms": list(found.vm_sizes),
        "mapping": {slot: [list(group) for group in groups] for slot, groups in found.mapping.items()},
        "predicted": {**asdict(sojourn), "rate_per_s": found.predicted.rate_per_s},
        "routing": found.routing.value,
        "vm_loads": {name: asdict(load) for name, load in found.vm_loads.items()},
        "pace_s": dict(found.proposal.pace_s),
        "cost_per_hour": found.cost_per_hour,
        "feasible": found.feasible,
        "reasons": list(found.reasons),
    }


def show(found: Plan, out: Console) -> None:
    """Tables for a person."""
    verdict = "[green]keeps its goals[/]" if found.feasible else "[red]does not keep its goals[/]"
    out.print(f"[bold]{escape(found.topology.name)}[/] at {rate(found.rate_per_s)}, policy {found.policy}: {verdict}\n")
    out.print(_operators(found))
    sojourn = found.predicted.sojourn
    out.print(
        f"\nfrom source to sink: mean {seconds(sojourn.mean_s)}, p50 {seconds(sojourn.p50_s)}, "
        f"p95 {seconds(sojourn.p95_s)}, p99 {seconds(sojourn.p99_s)}; carries {rate(found.predicted.rate_per_s)}"
    )
    sizes = ", ".join(f"{found.vm_sizes.count(size)} x {size}" for size in sorted(set(found.vm_sizes), reverse=True))
    extra = f" ({found.extra_slots} extra)" if found.extra_slots else ""
    out.print(
        f"{found.slots} slots{extra} on machines of {sizes} slots, {found.cost_per_hour:.2f} an hour by --price\n"
    )
    if found.mapping:
        out.print(_mapping(found))
    if found.vm_loads:
        out.print(_loads(found))
    out.print("\n[bold]why[/]")
    for reason in found.reasons:
        out.print(f"  - {escape(plain(reason))}")


def _operators(found: Plan) -> Table:
    table = Table("operator", box=None, pad_edge=False)
    for heading in ("processors", "arrivals", "busy", "mean", "p95", "p99"):
        table.add_column(heading, justify="right")
    for name, o in found.predicted.operators.items():
        cells = (str(o.processors), rate(o.arrivals_per_s), f"{o.utilisation:.0%}")
        table.add_row(escape(name), *cells, seconds(o.mean_s), seconds(o.p95_s), seconds(o.p99_s))
    return table


def _loads(found: Plan) -> Table:
    """What each machine is predicted to use, in slots."""
    table = Table("machine", box=None, pad_edge=False)
    for heading in ("slots", "CPU", "memory"):
        table.add_column(heading, justify="right")
    for name, load in list(found.vm_loads.items())[:_SHOWN_SLOTS]:
        table.add_row(name, str(load.slots), f"{load.cpu:.2f}", f"{load.memory:.2f}")
    return table


def _mapping(found: Plan) -> Table:
    table = Table("slot", "threads", box=None, pad_edge=False)
    for slot, groups in list(found.mapping.items())[:_SHOWN_SLOTS]:
        table.add_row(slot, ", ".join(f"{escape(name)} x{threads}" for name, threads in groups) or "-")
    left = len(found.mapping) - _SHOWN_SLOTS
    if left > 0:
        table.add_row("...", f"{left} more slots (all of them with --json)")
    return table
