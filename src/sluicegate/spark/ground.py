"""What a pipeline runs on: this process (``local[N]``), sluicegate's own cluster, or any master Spark knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.config.typed import executors_from
from sluicegate.domain import Shape
from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.act.fleet import Ends, Fleet
from sluicegate.spark.act.nodes import LocalNodes, NodeProvider
from sluicegate.spark.act.warming import Warming
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.state import default_folder
from sluicegate.spark.cluster.status import ClusterStatus
from sluicegate.spark.pipeline.runtime import Running
from sluicegate.spark.session import check_master

OWN_CLUSTER = "cluster"
"""Master name of the cluster that ``sluicegate cluster up`` started; ``cluster:DIR`` if it is in another folder."""
_STARTUP_S = 15.0
"""Seconds from requesting an executor on a new node to its first warm task; measured on two busy cores."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A master, the settings it needs, and the executors and nodes that may be added and removed there."""

    master: str
    settings: Mapping[str, str] = field(default_factory=dict)
    shape: Shape | None = None
    nodes: NodeProvider | None = None

    @property
    def startup_s(self) -> float:
        """Delay until more processors are usable; 0 if no executors have to be started for them."""
        return _STARTUP_S if self.shape and self.shape.most > self.shape.least else 0.0

    @property
    def slots(self) -> int | None:
        """The most processors there can be, if that is known before Spark starts."""
        return self.shape.slots if self.shape else None

    @property
    def slots_per_node(self) -> int | None:
        """Task slots of one more node; ``None`` if nodes are not added and removed."""
        if self.nodes is None or self.shape is None:
            return None
        largest = max((vm.slots for vm in self.nodes.running()), default=self.shape.slots_per_executor)
        return max(self.shape.on([largest]), 1) * self.shape.slots_per_executor

    def fleet(self, spark: SparkSession) -> Callable[[Running], Fleet] | None:
        """A factory of the ``Fleet`` that applies a plan to executors and nodes; ``None`` if executors are fixed."""
        shape, nodes = self.shape, self.nodes
        if shape is None:
            return None

        def follow(running: Running) -> Fleet:
            layout = running.layout
            warm = Warming(spark, layout.warming).warm_of
            ends = Ends(PlanFile(layout.plan), Executors(spark), warm, running.disturbed, nodes)
            return Fleet(ends, shape, layout.fleet, layout.fleet_seen)

        return follow


def ground_of(master: str, executors: str | None = None, executor_cores: int = 1) -> Ground:
    """Build the ground from the user's master and executors; ``executors`` is LEAST:MOST.

    >>> ground_of("local[4]")
    Ground(master='local[4]', settings={}, shape=None, nodes=None)
    >>> ground_of("spark://host:7077", "1:4", 2).slots
    8
    """
    if master.startswith("local"):
        check_master(master)
        if executors is not None:
            raise BadInput(f"{master} has no executors to come and go: leave --executors out, or name a cluster")
        return Ground(master)
    own = _own_cluster(master)
    if own is None:
        check_master(master)
    status = own.status() if own else None
    if own is not None and status is None:
        raise EnvironmentLacks("no cluster runs here: start one with `sluicegate cluster up --workers 2`")
    nodes = _nodes_of(own, status) if own and status else None
    url = status.url if status else master
    basis = {"spark.executor.cores": str(executor_cores)} | (
        {"spark.executor.extraJavaOptions": QUICK_JAVA, **own.settings()} if own else {}
    )
    if executors is None:
        return Ground(url, basis)
    shape = Shape(executor_cores, *executors_from(executors))
    settings = {
        **basis,
        "spark.executor.instances": str(shape.least),
        "spark.cores.max": str(shape.slots),
    }
    return Ground(url, settings, shape, nodes)


def _nodes_of(cluster: Cluster, status: ClusterStatus) -> LocalNodes:
    """More nodes of the size of the largest: a smaller one might have no room for an executor."""
    sizes = [(worker.cores, worker.memory_mb) for worker in status.workers if worker.cores]  # a lost one has none
    if not sizes:
        return LocalNodes(cluster)
    cores, memory_mb = max(sizes)
    return LocalNodes(cluster, cores, f"{memory_mb}m")


def _own_cluster(master: str) -> Cluster | None:
    name, colon, folder = master.partition(":")
    if name == "spark":
        default = Cluster(default_folder())
        status = default.status()
        return default if status and status.url == master else None
    if name != OWN_CLUSTER:
        return None
    return Cluster(Path(folder) if colon else default_folder())
