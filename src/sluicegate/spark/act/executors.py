"""Resizes the executors of a running application while its queries run.

Scale-out: Spark is asked for a total, which standalone, YARN and Kubernetes all support. Dynamic allocation must be off
(it scales on pending tasks, and a stream that keeps up has none). Scale-in: the total is lowered first, so that the
master does not replace the executors, which are then decommissioned host by host: they finish their tasks, migrate
their blocks to the others and exit. No task fails, provided the session was built with ``DECOMMISSION_CONF``.

On a standalone master an application initially takes all it may (``spark.cores.max``); ``resize`` reduces it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import SparkSession

from sluicegate.domain import Refusal
from sluicegate.errors import BadInput, EnvironmentLacks, Infeasible
from sluicegate.runlog.fault_point import fault_point
from sluicegate.spark.act.scheduler import Executor, Scheduler

_POLL_S = 0.25

DECOMMISSION_CONF: Mapping[str, str] = MappingProxyType(
    {
        "spark.decommission.enabled": "true",
        # A decommissioned executor migrates its shuffle files and cached blocks; else an in-flight batch that needs
        # them would have to recompute them.
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        # How often it checks for blocks left to migrate; at Spark's 30 s even an idle executor needs that long to exit.
        "spark.storage.decommission.replicationReattemptInterval": "2s",
        # A block that was migrated before the driver knew of it must not count as lost.
        "spark.storage.decommission.shuffleBlocks.bufferRacingMigrations": "true",
        "spark.stage.ignoreDecommissionFetchFailure": "true",
    }
)


@dataclass(frozen=True, slots=True)
class Resize:
    """Result of a resize: executors requested, drained (their ids), or the refusal."""

    have: int
    want: int
    reason: str
    drained: tuple[str, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """Outcome of a wait; if the number was not reached, ``why`` gives the likely cause."""

    reached: bool
    have: int
    draining: int
    waited_s: float
    why: str = ""


class Executors:
    """The executors of a session's application."""

    def __init__(self, spark: SparkSession) -> None:
        self._scheduler = Scheduler(spark)

    def all(self) -> tuple[Executor, ...]:
        """Every registered executor with host and cores, including draining ones; none in local mode."""
        return tuple(self._scheduler.executors()) if self._scheduler.has_executors else ()

    def count(self) -> int:
        """The number of executors that take tasks."""
        return len(self._active())

    def failed_tasks(self) -> int:
        """Tasks that failed since the application began."""
        return self._scheduler.failed_tasks()

    def resize(self, want: int, reason: str, first: Collection[str] = ()) -> Resize:
        """Request more executors or drain some, on the hosts ``first`` if possible; does not wait, see ``wait_for``."""
        if want < 1:
            raise BadInput(f"{want} executors wanted: give at least 1, or stop the application")
        active = self._active()
        refusal = self._refusal(fewer=want < len(active))
        if refusal is not None:
            return Resize(len(active), want, reason, refusal=refusal)
        return self._set(want, active, leaving(active, len(active) - want, first), reason)

    def drain_host(self, host: str, reason: str = "its node stops", timeout_s: float = 300.0) -> tuple[str, ...]:
        """Drain all executors of a host before its node stops, without replacing them; returns their ids once gone.

        Raises if the host cannot be drained: the caller must then keep the node.
        """
        active = self._active()
        leaving = [executor for executor in active if executor.host == host]
        if leaving:
            want = len(active) - len(leaving)
            refusal = (
                self._refusal(fewer=True)
                or _last(want, len(active))
                or self._set(want, active, leaving, reason).refusal
            )
            if refusal is not None:
                raise Infeasible(f"host {host} is not drained: {refusal.why}")
        waited = self._wait(lambda now: not any(executor.host == host for executor in now), timeout_s)
        if not waited.reached:
            raise EnvironmentLacks(
                f"host {host} still has executors after {timeout_s:g} s of draining; they take nothing new: "
                "drain it again later, and keep the node until then"
            )
        return tuple(executor.id for executor in leaving)

    def wait_for(self, want: int, timeout_s: float) -> Waited:
        """Wait until ``want`` executors take tasks and none is draining."""
        if not self._scheduler.has_executors:
            return Waited(False, 0, 0, 0.0, self._local().why)
        return self._wait(lambda now: len(now) == want and not any(e.draining for e in now), timeout_s, want)

    def why_fewer(self, want: int) -> str:
        """The likely cause if fewer than ``want`` executors start; Spark's masters do not report the reason."""
        cap = self._scheduler.setting("spark.cores.max")
        limit = f", or spark.cores.max={cap} allows no more" if cap else ""
        return f"the master has no free cores or memory for {want} executors{limit}"

    def _active(self) -> list[Executor]:
        return [executor for executor in self.all() if not executor.draining]

    def _refusal(self, *, fewer: bool) -> Refusal | None:
        if not self._scheduler.has_executors:
            return self._local()
        if self._scheduler.setting("spark.dynamicAllocation.enabled") == "true":
            return Refusal(
                "dynamic-allocation",
                "spark.dynamicAllocation.enabled is true: Spark decides on executors too; set it to false",
            )
        if fewer and self._scheduler.setting("spark.decommission.enabled") != "true":
            return Refusal("no-draining", "spark.decommission.enabled is not true: an executor could only be killed")
        return None

    def _local(self) -> Refusal:
        return Refusal("no-executors", f"master {self._scheduler.master} has no executors to resize")

    def _set(self, want: int, active: Sequence[Executor], leaving: Sequence[Executor], reason: str) -> Resize:
        if not self._scheduler.ask_for(want):
            why = f"master {self._scheduler.master} did not take the request for {want} executors"
            return Resize(len(active), want, reason, refusal=Refusal("not-taken", why))
        drained = tuple(executor.id for executor in leaving if self._scheduler.drain(executor.id, reason))
        if drained:
            fault_point("draining")
        return Resize(len(active), want, reason, drained)

    def _wait(self, done: Callable[[Sequence[Executor]], bool], timeout_s: float, want: int | None = None) -> Waited:
        began = time.monotonic()
        while True:
            now, waited_s = self.all(), time.monotonic() - began
            leaving = sum(executor.draining for executor in now)
            have = len(now) - leaving
            if done(now):
                return Waited(True, have, leaving, waited_s)
            if waited_s >= timeout_s:
                return Waited(False, have, leaving, waited_s, self._why_not(have, leaving, want, timeout_s))
            time.sleep(_POLL_S)

    def _why_not(self, have: int, leaving: int, want: int | None, timeout_s: float) -> str:
        so_far = f"{have} executors and {leaving} leaving after {timeout_s:g} s"
        if want is None or have >= want:
            return so_far
        return f"{so_far}, {want} wanted: {self.why_fewer(want)}"


def leaving(active: Sequence[Executor], count: int, first: Collection[str] = ()) -> list[Executor]:
    """Choose ``count`` executors to drain, host by host, so that whole nodes become free.

    Order of hosts: those in ``first``, then fewest executors, then fewest active tasks. On ties the newest go first,
    since the oldest hold the warmest state.
    """
    hosts: dict[str, list[Executor]] = {}
    for executor in active:
        hosts.setdefault(executor.host, []).append(executor)
    emptiest = sorted(
        hosts.values(),
        key=lambda here: (
            here[0].host not in first,
            len(here),
            sum(one.active_tasks for one in here),
            -max(one.added_ms for one in here),
        ),
    )
    idlest = (sorted(here, key=lambda one: (one.active_tasks, -one.added_ms)) for here in emptiest)
    return [executor for here in idlest for executor in here][: max(count, 0)]


def _last(left: int, active: int) -> Refusal | None:
    if left == 0:
        return Refusal("last-executors", f"all {active} executors run there; add some elsewhere first")
    return None
