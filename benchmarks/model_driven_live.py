"""Model-driven scheduling on real Spark: linear, diamond and star under four pairs of planner and mapper.

    python benchmarks/model_driven_live.py [--rates 60,180] [--seconds 25] [--rounds 1] [--profiles DIR]
                                           [--within MINUTES]

Slots are executors (``local-cluster``) of ``--run-tasks`` task slots, more than a mapping puts on one: as in the paper
CPU and memory bound what a slot takes, not a number of threads. Every task is pinned to the executor that its thread is
mapped to. Profiles of the five tasks are measured first (``sluicegate profile``, ``--minutes`` each) where
DIR lacks them. Of each cell: slots, the planned rate, the rate that the model predicts for even routing (at most the
planned one, and what the mapping would sustain), the rate that leaves the pipeline while the planned one comes in, the
mean latency, the batches of the slowest operator (predictions hold while they are below 2 s, as in the profiles), and
the share of tasks that ran where they were mapped. A recorded line a cell; the dataflow that was measured fewest times
is the next, so that calls add up. Profiles that are in DIR are taken as they are: delete it to have them measured.

The tasks are the waiting variants: blob and table wait for a store, pi and parse wait instead of computing, batch
writes. Waiting threads may be more than there are cores; what is left to compute, batches of five queries, may not.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from pyspark.sql import SparkSession

import results
from sluicegate.config.profile_file import ProfileFile, read_profiles, with_profiles
from sluicegate.control.planning import Plan, make_plan
from sluicegate.domain import Operator, Topology
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.profile.slot import executor_folder
from sluicegate.lab.reproduce.dataflows import micro
from sluicegate.lab.running.app import App
from sluicegate.lab.running.feeding import Feeder
from sluicegate.lab.running.load import constant
from sluicegate.lab.running.run_app import warm_up
from sluicegate.runlog.batch_log import BatchRecord, mapped_share
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.observe import task_times
from sluicegate.spark.pipeline.observing import sojourn_of
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session, stop_spark
from turns import Turns, end_as_by_ctrl_c, to_its_end

TASKS = ("blob", "table", "pi", "parse", "batch")
PAIRS = (("lsa", "rsm"), ("mba", "dsm"), ("mba", "rsm"), ("mba", "sam"))
ROWS_OUT = {"linear": 1, "diamond": 4, "star": 4}
VM_SLOTS = (1, 2)
_AROUND_S = 6.0
"""What a cell takes besides its load: the last rows, the log."""
_SETTLE_SHARE, _FEWEST = 0.4, 3
"""What is cut as warm-up; batches that a rate is of, even if the last of them end after the feed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One dataflow under one pair."""

    dataflow: str
    pair: str
    slots: int
    extra_slots: int
    threads: int
    planned_per_s: float
    predicted_per_s: float
    sustains_per_s: float
    reached_per_s: float | None
    mean_s: float | None
    batch_s: float | None
    pinned_share: float | None
    note: str = ""


def main() -> None:
    given = _arguments()
    end_as_by_ctrl_c()
    until_s = time.monotonic() + 60 * given.within
    _measure(given.profiles, given.minutes, given.slot_tasks)
    known = {name: one for name, one in read_profiles(given.profiles).items() if name in TASKS}
    task_times._SINGLE_TASKS_EVERY_S = 1.0
    master = f"local-cluster[{given.executors},{given.run_tasks},1024]"
    settings = {"spark.executor.memory": "512m", "spark.locality.wait": "10s", "spark.driver.memory": "1g"}
    seen = Counter(line["dataflow"] for line in results.read("model_driven") if line["seconds"] == given.seconds)
    each_s = len(given.rates) * len(PAIRS) * (given.seconds + _AROUND_S)
    turns = Turns(given.dataflows, seen, given.rounds, (until_s - time.monotonic()) / 60, each_s)
    spark = spark_session(master, settings, "model-driven live")
    try:
        slots = Executors(spark)
        slots.wait_for(given.executors, 120.0)
        places = [f"executor_{one.host}_{one.id}" for one in slots.all()]
        for turn, name in enumerate(turns):
            with turns.playing(name):
                _dataflow(spark, name, known, places, given, turn)
    finally:
        work = executor_folder(spark)
        stop_spark(spark)
        shutil.rmtree(work, ignore_errors=True)
    turns.end()


def _dataflow(
    spark: SparkSession,
    name: str,
    known: Mapping[str, ProfileFile],
    places: Sequence[str],
    given: argparse.Namespace,
    turn: int,
) -> None:
    """One dataflow at all rates under all pairs, on the same queries."""
    app = app_named(f"{name}_waiting")
    with (
        tempfile.TemporaryDirectory() as folder,
        app.brought_up() as ready,
        start(ready.build(), spark, folder, fuse=False) as running,
    ):
        warm_up(ready, running)
        for at, rate in enumerate(given.rates):
            for cell in _cells(name, ready, running, known, places, rate, given.seconds, turn + at):
                results.record("model_driven", rate=rate, seconds=given.seconds, **asdict(cell))
                print(asdict(cell), flush=True)


def _cells(
    name: str,
    app: App,
    running: Running,
    known: Mapping[str, ProfileFile],
    places: Sequence[str],
    rate: float,
    seconds: float,
    turn: int,
) -> Iterator[Cell]:
    """All pairs on the same queries: k and places change at the next batch. Every turn another pair is the first, after
    which the queries are warm at that rate."""
    topology = with_profiles(_bare(micro()[name]), known, needed=True)
    first = turn % len(PAIRS)
    for policy, mapper in (*PAIRS[first:], *PAIRS[:first]):
        plan = make_plan(topology, rate, policy, mapper=mapper, vm_sizes=VM_SLOTS)
        told = Cell(
            name,
            f"{policy}+{mapper}".upper(),
            plan.slots,
            plan.extra_slots,
            sum(plan.proposal.processors.values()),
            rate,
            round(min(plan.predicted.rate_per_s, rate), 1),
            round(plan.predicted.rate_per_s, 1),
            None,
            None,
            None,
            None,
        )
        if plan.slots > len(places) or not plan.mapping:
            yield replace_note(told, f"needs {plan.slots} slots, there are {len(places)}")
            continue
        where = _where(plan, places)
        running.set_processors({op: len(on) for op, on in where.items()})
        running.place(where)
        yield _measured(told, app, running, where, seconds)


def _bare(topology: Topology) -> Topology:
    """The graph alone: the paper's own figures do not count here."""
    return Topology(topology.name, tuple(Operator(o.name, 1.0) for o in topology.operators), topology.edges)


def _where(plan: Plan, places: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The executor of every thread of every operator; sources and sinks have no task of their own."""
    found: dict[str, list[str]] = {name: [] for name in plan.topology.names}
    for place, groups in zip(places, plan.mapping.values(), strict=False):
        for name, threads in groups:
            if name in found:
                found[name] += [place] * threads
    return {name: tuple(on) for name, on in found.items()}


def _measured(told: Cell, app: App, running: Running, where: Mapping[str, Sequence[str]], seconds: float) -> Cell:
    began_s = time.time()
    feeder = Feeder(app, {n: running.feed(n) for n in running.graph.sources}, constant(told.planned_per_s), seconds)
    feeder.start()
    while not feeder.join(0.5):
        running.check()
    running.drain()
    time.sleep(1.0)  # until the last batches are in the logs
    since_s = began_s + _SETTLE_SHARE * seconds
    last = [r for node in running.graph.nodes if node.terminal for r in running.records(node.name)]
    reached = out_per_s(last, since_s, began_s + seconds) / ROWS_OUT[told.dataflow]
    seen = sojourn_of(r for r in last if r.published_s > since_s)
    share = mapped_share(r for name in where for r in running.records(name) if r.started_s > began_s)
    return Cell(
        **{
            **asdict(told),
            "reached_per_s": round(min(reached, told.planned_per_s), 1),
            "mean_s": None if seen is None else round(seen.mean_s, 2),
            "batch_s": _longest_s(running, where, since_s),
            "pinned_share": None if share is None else round(share, 3),
        }
    )


def out_per_s(records: Sequence[BatchRecord], since_s: float, fed_s: float) -> float:
    """Rows a second that leave while rows come: from a query's first batch after ``since_s`` to its first one after
    ``fed_s``, the end of the feed.

    What comes later is left out: the last rows pass the operators in ever smaller batches that cost as much time, so
    that a pipeline that keeps up would seem to fall short. One that does not keep up is no quicker then.
    """
    total = 0.0
    for group in _by_query(records):
        ended = sorted((r.published_s, r.rows_out) for r in group if r.published_s >= since_s)
        count = max(sum(at_s <= fed_s for at_s, _ in ended) + 1, _FEWEST)
        inside = ended[:count]
        if len(inside) > 1:
            total += sum(rows for _, rows in inside[1:]) / (inside[-1][0] - inside[0][0])
    return total


def _longest_s(running: Running, names: Iterable[str], since_s: float) -> float | None:
    """The mean duration of the batches of the operator where it is longest; predictions are for 2 s at most."""
    of = [[r.duration_s for r in running.records(name) if r.started_s >= since_s and r.rows] for name in names]
    return round(max(fmean(one) for one in of if one), 2) if any(of) else None


def _by_query(records: Sequence[BatchRecord]) -> list[list[BatchRecord]]:
    """Batches of one query after the other: their numbers rise."""
    groups: list[list[BatchRecord]] = []
    for record in records:
        if not groups or record.batch <= groups[-1][-1].batch:
            groups.append([])
        groups[-1].append(record)
    return groups


def replace_note(told: Cell, note: str) -> Cell:
    return Cell(**{**asdict(told), "note": note})


def _measure(folder: Path, minutes: float, slot_tasks: int) -> None:
    """The profiles that are not there yet, with the waiting variants of the tasks."""
    for task in TASKS:
        if not (folder / f"{task}.toml").exists():
            command = ["profile", "linear_waiting", task, "--minutes", str(minutes), "--out", str(folder)]
            words = [str(Path(sys.executable).parent / "sluicegate"), *command, "--slot-tasks", str(slot_tasks)]
            if to_its_end(words):
                raise SystemExit(f"{task} was not profiled; what was measured is kept in {folder}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataflows", type=lambda text: text.split(","), default=["linear", "diamond", "star"])
    parser.add_argument("--rates", type=lambda text: [float(r) for r in text.split(",")], default=[60.0, 180.0])
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--executors", type=int, default=6)
    parser.add_argument("--slot-tasks", type=int, default=4, help="of the profiles: the most threads that are tried")
    parser.add_argument("--run-tasks", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=0.7, help="of one profile, once Spark is warm")
    parser.add_argument("--profiles", type=Path, default=Path("task-profiles"))
    parser.add_argument("--within", type=float, default=float("inf"), help="minutes, for all of it")
    return parser.parse_args()


if __name__ == "__main__":
    main()
