"""The bench for sustainable throughput: runs an application flat out on a private cluster of local workers.

A master, workers and a Spark session are started for the measurement and end with it, also when it is interrupted. The
sources are kept filled ahead of the readers, so that no operator at a source waits for rows. Nodes are requested as in
a run: through the plan, by the same ``Fleet``, which also measures how long they take to be warm.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from sluicegate.domain import Edge, FleetSeen, Limits, Operator, Shape, Topology
from sluicegate.errors import BadInput, EnvironmentLacks, Infeasible, SluicegateError
from sluicegate.lab.profile.slot import below, own_bytes
from sluicegate.lab.running.app import App
from sluicegate.lab.running.run_app import warm_up
from sluicegate.policy.spread import spread, sustained_per_s
from sluicegate.runlog.batch_log import BatchRecord, Tail
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile
from sluicegate.spark.act.fleet import read_fleet
from sluicegate.spark.act.nodes import LocalNodes
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.ground import Ground
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session, stop_spark

NODES_S = 240.0
"""Deadline for nodes to start; on two busy cores four took 40 s."""
_WORKER_MEMORY, _EXECUTOR_MEMORY = "1g", "512m"
NODE_MB = 3072
"""Memory limit of a node's executor with its Python workers; beyond it the executor is killed. With four waiting tasks
it uses a third of that; an application whose memory keeps growing would take all of the machine's."""
_MEMORY_EVERY_S = 1.0
_POLL_S = 0.25
_WARM_UP_ROWS = (20, 20, 20, 60, 120, 240)
_AHEAD_BATCHES = 3
"""Batches kept waiting at the sources: with one, the next could be late; more only use disk space."""
_BEHIND_BATCHES = 2
"""An operator pauses when its readers are this many batches behind; otherwise the first would use slots for rows that
the last cannot process."""
_LEAST_ROWS = 20
Starting = Callable[[], AbstractContextManager[object]]
"""Creates a context that is open while Spark starts."""
SAMPLE_BATCHES = 3
"""A sample is the throughput over the duration of this many batches; single batches vary by a tenth, depending on
whether batches of different operators overlap."""


@dataclass(slots=True)
class MemoryGuard:
    """Kills executors that exceed a node's memory. It runs in a thread, so that it also works during the warm-up.

    Linux only: reads ``/proc``.
    """

    app: str
    cluster: Cluster
    most_bytes: int = field(default_factory=lambda: NODE_MB * 2**20)
    _problem: Infeasible | None = None
    _done: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch within the block; a failure caused by killed executors is raised as the memory problem."""
        thread = threading.Thread(target=self._watch, name="sluicegate-memory", daemon=True)
        thread.start()
        try:
            yield
        except Exception:
            self.check()
            raise
        finally:
            self._done.set()
            thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_MEMORY_EVERY_S) and self._problem is None:
            for worker in self.cluster.worker_pids():
                executors = list(below(worker))
                used = own_bytes(executors)
                if used > self.most_bytes:
                    self._problem = Infeasible(
                        f"application {self.app!r} uses {used / 2**20:,.0f} MB on one node, more than the "
                        f"{self.most_bytes / 2**20:,.0f} MB there may be: an operator of it holds on to rows; what was "
                        "measured is kept"
                    )
                    for pid in executors:
                        with suppress(OSError):
                            os.kill(pid, signal.SIGKILL)


@dataclass(slots=True)
class MstBench:
    """A running application, the feeds of its sources, and its batch records so far."""

    app: App
    running: Running
    slots_per_node: int
    batch_s: float
    leave: threading.Event
    tails: dict[str, Tail] = field(default_factory=dict)
    records: dict[str, list[BatchRecord]] = field(default_factory=dict)
    feeds: dict[str, Feed] = field(default_factory=dict)
    chunk: int = 100
    """Rows of one batch."""
    began_s: float = 0.0
    """Batches that started earlier do not count."""
    guard: MemoryGuard | None = None

    @property
    def doors(self) -> tuple[str, ...]:
        return self.running.graph.doors

    def look(self) -> None:
        """Read new batch records and refill the sources; raise if a stop was asked for or something failed."""
        if self.leave.is_set():
            raise KeyboardInterrupt
        if self.guard is not None:
            self.guard.check()
        self.running.check()
        for name, tail in self.tails.items():
            self.records[name] += (BatchRecord.from_json(line) for line in tail.lines())
        for source, feed in self.feeds.items():
            readers = [sum(r.rows for r in self.records[name]) for name in self.running.graph.readers(source)]
            while feed.rows - min(readers) < _AHEAD_BATCHES * self.chunk and self.app.rows is not None:
                feed.append(self.app.rows(source, feed.rows, max(self.chunk // 4, 1)))

    def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Poll until ``done()`` or the timeout; return whether it was done."""
        until_s = time.monotonic() + timeout_s
        while True:
            self.look()
            if done():
                return True
            if time.monotonic() >= until_s:
                return False
            time.sleep(_POLL_S)

    def set_nodes(self, nodes: int) -> FleetSeen:
        """Request this many nodes and wait until they are warm."""
        plan = PlanFile(self.running.layout.plan)
        now = plan.read()
        plan.write(replace(now, version=now.version + 1, executors=nodes, nodes=nodes, leaving=()))

        def there() -> bool:
            seen = self.fleet()
            return seen is not None and seen.requested == nodes and seen.complete

        if not self.wait(there, NODES_S):
            seen = self.fleet()
            here = len(seen.warm) if seen else 0
            why = f" ({seen.problem})" if seen and seen.problem else ""
            raise EnvironmentLacks(
                f"{nodes} nodes asked for, {here} came within {NODES_S:g} s{why}: give fewer with --nodes, or free "
                "memory and cores; what was measured is kept"
            )
        seen = self.fleet()
        assert seen is not None
        return seen

    def fleet(self) -> FleetSeen | None:
        return read_fleet(self.running.layout.fleet_seen, time.time())

    def spread_over(self, slots: int) -> dict[str, int]:
        """Allocate ``slots`` and set batch sizes from the measured operator costs; batches count from now on."""
        topology, limits = self.topology(), self._limits()
        processors = spread(topology, slots, limits)
        self.chunk = max(int(sustained_per_s(topology, processors) * self.batch_s), _LEAST_ROWS)
        share = self.visits()
        plans = {
            name: OperatorPlan(
                k, most_rows=max(int(self.chunk * share.get(name, 1.0)), 1), most_behind=self._most_behind(name, share)
            )
            for name, k in processors.items()
        }
        PlanFile(self.running.layout.plan).change(plans)
        self.began_s = time.time()
        return processors

    def visits(self) -> dict[str, float]:
        """Rows that each operator read per row of a source."""
        rows = {name: sum(r.rows for r in found) for name, found in self.records.items()}
        fed = sum(rows[name] for name in self.doors) / max(len(self.doors), 1)
        return {name: count / fed for name, count in rows.items() if count and fed}

    def topology(self) -> Topology:
        """Each operator with its measured rate, connected straight to the source with its visits as selectivity."""
        visits = self.visits()
        operators = tuple(Operator(name, self._service_per_s(name)) for name in self.records)
        edges = tuple(Edge("source", name, visits.get(name, 0.0)) for name in self.records)
        return Topology(self.app.name, operators, edges)

    def rates(self) -> dict[str, list[float]]:
        """Throughput samples since ``began_s``, in source rows, of each operator that is fed continuously.

        All samples cover the same time span: batches downstream of a stateful operator alternate between many rows and
        few, so that throughput over a few batches would show that alternation. The first batch is left out, as it may
        have the former size. Operators with less than half as many batches as those at the sources get few rows and
        are left out.
        """
        visits = self.visits()
        counted = {n: [r for r in of if r.started_s >= self.began_s and r.rows][1:] for n, of in self.records.items()}
        known = min((len(counted[door]) for door in self.doors), default=0)
        busy = {n: of for n, of in counted.items() if len(of) > SAMPLE_BATCHES and 2 * len(of) >= known}
        if not all(door in busy for door in self.doors):
            return {}
        span_s = SAMPLE_BATCHES * max(_apart_s(of) for of in busy.values())
        return {name: [rate / visits[name] for rate in throughputs(of, span_s)] for name, of in busy.items()}

    def _service_per_s(self, name: str) -> float:
        """Rows per second and task, from the six largest batches so far: small batches measure overhead."""
        told = sorted((r for r in self.records[name][1:] if r.rows), key=lambda r: r.rows)[-6:]
        work_s = sum(r.work_s if r.work_s is not None else r.duration_s * r.processors for r in told)
        return sum(r.rows for r in told) / work_s if work_s > 0 else 1000.0

    def _most_behind(self, name: str, share: Mapping[str, float]) -> int:
        graph = self.running.graph
        readers = [r for stream in graph.node(name).writes for r in graph.readers(stream)]
        rows = [int(_BEHIND_BATCHES * self.chunk * share.get(reader, 1.0)) for reader in readers]
        return max(min(rows, default=0), 1)

    def _limits(self) -> Limits:
        return Limits(most_of={n.name: n.key_groups for n in self.running.graph.nodes if n.stateful})


@contextmanager
def bench(
    app: App,
    most_nodes: int,
    slots_per_node: int,
    batch_s: float,
    folder: Path,
    leave: threading.Event,
    starting: Starting = nullcontext,
) -> Iterator[MstBench]:
    """Run the application on one node, warmed up; everything that was started for it ends with the block."""
    if app.rows is None:
        raise BadInput(f"application {app.name!r} makes no rows of its own, so that its source cannot be filled")
    if leave.is_set():
        raise KeyboardInterrupt
    cluster = Cluster(folder / "cluster")
    try:
        status = cluster.up(1, slots_per_node, _WORKER_MEMORY)
        shape = Shape(slots_per_node, 1, most_nodes)
        settings = {
            "spark.driver.memory": "1g",
            "spark.executor.memory": _EXECUTOR_MEMORY,
            "spark.executor.cores": str(slots_per_node),
            "spark.executor.instances": "1",
            "spark.cores.max": str(shape.slots),
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            **cluster.settings(),
        }
        ground = Ground(status.url, settings, shape, LocalNodes(cluster, slots_per_node, _WORKER_MEMORY))
        try:
            with _ctrl_c_as_it_was(), starting():
                spark = spark_session(ground.master, ground.settings, f"sluicegate mst {app.name}")
        except SluicegateError:
            if leave.is_set():  # Ctrl-C has ended Java too
                raise KeyboardInterrupt from None
            raise
        try:
            follow = ground.fleet(spark)
            assert follow is not None
            guard = MemoryGuard(app.name, cluster)
            with (
                guard.watching(),
                app.brought_up() as ready,
                start(ready.build(), spark, folder / "run", retry_for_s=0.0, when_stopped="raise") as running,
                follow(running),
            ):
                warm_up(ready, running, leave, _WARM_UP_ROWS)
                yield _of(ready, running, slots_per_node, batch_s, leave, guard)
        finally:
            stop_spark(spark)
    finally:
        cluster.down()


@contextmanager
def _ctrl_c_as_it_was() -> Iterator[None]:
    """Restore the SIGINT handler after the block: Spark installs its own when it starts."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread() and before is not None:
        signal.signal(signal.SIGINT, before)


def throughputs(batches: Sequence[BatchRecord], span_s: float) -> list[float]:
    """Rows per second in consecutive spans; rows of a batch are spread evenly from the end of the one before."""
    ends = np.array([batch.published_s for batch in batches])
    done = np.cumsum([0.0, *(float(batch.rows) for batch in batches[1:])])
    borders = ends[0] + span_s * np.arange(int((ends[-1] - ends[0]) / span_s) + 1)
    found: list[float] = (np.diff(np.interp(borders, ends, done)) / span_s).tolist()
    return found


def _apart_s(batches: Sequence[BatchRecord]) -> float:
    """Median time between the ends of consecutive batches."""
    return max(median(after.published_s - one.published_s for one, after in pairwise(batches)), 1e-3)


def _of(app: App, running: Running, slots: int, batch_s: float, leave: threading.Event, guard: MemoryGuard) -> MstBench:
    names = [node.name for node in running.graph.nodes]
    found = MstBench(
        app,
        running,
        slots,
        batch_s,
        leave,
        {name: Tail(running.layout.batches(name)) for name in names},
        {name: [] for name in names},
        {name: running.feed(name) for name in running.graph.sources},
        guard=guard,
    )
    found.look()
    return found
