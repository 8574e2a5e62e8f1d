"""Slots of the micro dataflows of model-driven scheduling: linear, diamond, star at 50, 100 and 200 rows/s.

    python benchmarks/slots_of_the_micro_dataflows.py TASK_TABLE.csv

The table has the columns task, threads, peak_rate_tuples_per_s, cpu_pct, mem_pct, reading; rows whose reading starts
with ``net`` count. Printed beside the paper's figures: slots by LSA and MBA with the extra slots each mapper needs, and
on 5 VMs of 4 slots the highest rate each pair plans and the model predicts. Which task is where on the star is partly
ours. The paper gives source and sink some memory too; its figures are lost, so two guesses are shown.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sluicegate.domain import (
    Edge,
    Observation,
    Operator,
    Placement,
    ProfilePoint,
    Proposal,
    Situation,
    TaskProfile,
    Topology,
    Vm,
)
from sluicegate.model.mapping_rate import Routing, mapping_rate
from sluicegate.model.traffic import visits
from sluicegate.place.dsm import Dsm
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.placer import Placer
from sluicegate.place.rsm import Rsm
from sluicegate.place.sam import Sam
from sluicegate.policy.papers.lsa import Lsa
from sluicegate.policy.papers.mba import Mba

TASKS = {"blob": "azure_blob", "table": "azure_table", "pi": "pi", "parse": "xml_parse", "batch": "batch_file_write"}
FAN = ("blob", "table", "parse", "batch")
EDGES = {
    "linear": [*pairwise(("source", "blob", "table", "pi", "parse", "batch", "sink"))],
    "diamond": [*(("source", t) for t in FAN), *((t, "pi") for t in FAN), ("pi", "sink")],
    "star": [
        *(("source", "blob"), ("source", "table"), ("blob", "pi"), ("table", "pi")),
        *(("pi", "parse"), ("pi", "batch"), ("parse", "sink"), ("batch", "sink")),
    ],
}
RATES = (50.0, 100.0, 200.0)
PAPER_LINEAR = {"lsa": (7, 13, 28), "mba": (4, 7, 15)}
MAPPERS: tuple[Placer, ...] = (Dsm(), Rsm(), Sam())
Planner = Lsa | Mba


@dataclass(frozen=True, slots=True)
class Case:
    dataflow: str
    rate_per_s: float
    planner: str
    proposal: Proposal
    extra: dict[str, int]


def profiles(table: Path) -> dict[str, TaskProfile]:
    """The net rows of the task table, percent to shares."""
    points: dict[str, list[ProfilePoint]] = {}
    with table.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["reading"].startswith("net"):
                rate, cpu, memory = (float(row[c]) for c in ("peak_rate_tuples_per_s", "cpu_pct", "mem_pct"))
                points.setdefault(row["task"], []).append(
                    ProfilePoint(int(row["threads"]), rate, cpu / 100, memory / 100)
                )
    return {name: TaskProfile(name, tuple(points[task])) for name, task in TASKS.items()}


def dataflows(known: dict[str, TaskProfile]) -> dict[str, Topology]:
    operators = tuple(Operator(name, p.points[0].rate_per_s, profile=p) for name, p in known.items())
    return {name: Topology(name, operators, tuple(Edge(a, b) for a, b in edges)) for name, edges in EDGES.items()}


def plan(planner: Planner, topology: Topology, rate_per_s: float) -> Proposal:
    rates = dict(zip(topology.names, (visits(topology) * rate_per_s).tolist(), strict=True))
    situation = Situation(0.0, topology, Observation(0.0, rate_per_s, {}), rate_per_s, rates)
    return planner.propose(None, situation)[1]


def slots_of(proposal: Proposal) -> int:
    return proposal.slots or 0


def cases(flows: dict[str, Topology], planners: tuple[Planner, ...]) -> Iterator[Case]:
    for name, topology in flows.items():
        for rate in RATES:
            for planner in planners:
                made = plan(planner, topology, rate)
                extra = {
                    m.name: place_with_extra_slots(m, topology, made.bundles, slots_of(made)).extra_slots
                    for m in MAPPERS
                }
                yield Case(name, rate, planner.name, made, extra)


def print_slots(found: list[Case]) -> None:
    print("dataflow  rows/s  planner  threads  slots  paper  extra slots: dsm rsm sam")
    for case in found:
        figures = PAPER_LINEAR[case.planner] if case.dataflow == "linear" else None
        paper = str(figures[RATES.index(case.rate_per_s)]) if figures else "-"
        extra = " ".join(f"{case.extra[m.name]:>3}" for m in MAPPERS)
        print(
            f"{case.dataflow:8}  {case.rate_per_s:6g}  {case.planner:7}  {case.proposal.total:7}  "
            f"{slots_of(case.proposal):5}  {paper:>5}  {extra:>24}"
        )


def print_claims(found: list[Case], memory: float) -> None:
    rsm = sum(case.extra["rsm"] > 0 for case in found if case.planner == "lsa")
    sam = sum(case.extra["sam"] > 0 for case in found if case.planner == "mba")
    print(
        f"with {memory:.0%} memory for source and sink: LSA+RSM needs extra slots in {rsm} of 9 cases (paper: 6), "
        f"MBA+SAM in {sam} (paper: 1): {'the order holds' if rsm > sam else 'THE ORDER DOES NOT HOLD'}"
    )


def highest(fits: Callable[[float], Placement | None]) -> tuple[float, Placement]:
    """The last rate in steps of 10/s before the first that does not fit, with its placement."""
    rate, last = 0.0, fits(0.0)
    while (found := fits(rate + 10.0)) is not None:
        rate, last = rate + 10.0, found
    if last is None:
        raise SystemExit("not even an idle dataflow fits on 5 VMs of 4 slots")
    return rate, last


def on_five_vms(planner: Planner, mapper: Placer, topology: Topology) -> tuple[float, float, float]:
    """Planned rate, predicted under slot-aware routing (the paper's sum), predicted under even routing."""
    fleet = [Vm(f"vm-{number}", 4) for number in range(1, 6)]

    def fits(rate: float) -> Placement | None:
        made = plan(planner, topology, rate)
        found = mapper.place(topology, made.bundles, fleet) if slots_of(made) <= 20 else None
        return found if isinstance(found, Placement) else None

    rate, placement = highest(fits)
    predicted = mapping_rate(topology, placement)
    return rate, predicted.rate_per_s(Routing.SLOT_AWARE), predicted.rate_per_s(Routing.EVEN)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        print("give the path of the task table: slots_of_the_micro_dataflows.py TASK_TABLE.csv", file=sys.stderr)
        return 2
    flows = dataflows(profiles(Path(arguments[0])))
    found = list(cases(flows, (Lsa(), Mba())))
    print_slots(found)
    print_claims(found, 0.0)
    print_claims(list(cases(flows, (Lsa(endpoint_memory=0.15), Mba(endpoint_memory=0.15)))), 0.15)
    print("\non 5 VMs x 4 slots, rows/s  planned  predicted: slot-aware  even")
    planners: tuple[Planner, ...] = (Lsa(), Mba())
    for name, topology in flows.items():
        for planner in planners:
            for mapper in MAPPERS[: 2 if planner.name == "lsa" else 3]:
                planned, aware, even = on_five_vms(planner, mapper, topology)
                print(f"{name:8} {planner.name}+{mapper.name:15}  {planned:7.0f}  {aware:21.0f}  {even:4.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
