"""The user's options for a live control loop: validated, and converted to and from controller process arguments."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluicegate.config.capacity_file import CapacityFile, read_capacity_file
from sluicegate.config.trace_file import read_trace
from sluicegate.config.typed import goal_from, policy_options
from sluicegate.control.settings import Known, Timing, policy_for
from sluicegate.errors import BadInput
from sluicegate.model.mapping_rate import Routing
from sluicegate.place.catalogue import placer
from sluicegate.policy.catalogue import live_policy_entry

_TIMES = ("interval_s", "cooldown_s", "settle_down_s", "startup_s", "cycle_s")


@dataclass(frozen=True, slots=True)
class Control:
    """Options of the control loop. ``budget`` is the number of slots; with ``dry_run`` it only advises.

    ``startup_s`` is the start-up time of an executor, where more processors need more executors. If it is 0, a change
    of k is in force at the next batch, that is by the next tick. ``cycle_s`` is the cycle of policies that decide in
    cycles, and DRS's T_ra unless ``cooldown_s`` is given.
    ``profiles`` is a folder of profile files. With a ``mapper``, executors are the slots of LSA and MBA: their threads
    are pinned to them, and rows are distributed by ``routing``.
    ``slots_per_node`` is given if nodes are added and removed, for policies that decide their number; ``capacity`` is
    the file of measured node throughput. ``options`` are those of the policy, as typed. ``history`` is a trace of the
    load before the run, one rate for each step of the policy's forecaster, which is initialised with it.
    """

    policy: str = "sluicegate"
    slo: tuple[str, ...] = ()
    budget: int | None = None
    interval_s: float = 2.0
    cooldown_s: float | None = None
    settle_down_s: float | None = None
    dry_run: bool = False
    startup_s: float = 0.0
    cycle_s: float = 60.0
    mapper: str | None = None
    routing: str = Routing.EVEN.value
    profiles: str | None = None
    slots_per_node: int | None = None
    capacity: str | None = None
    options: tuple[str, ...] = ()
    history: str | None = None

    def __post_init__(self) -> None:
        _check_control(self)

    @property
    def timing(self) -> Timing:
        """The intervals in the form that the loop takes."""
        startup_s = max(self.startup_s, self.look_s)
        return Timing(
            self.look_s, startup_s, self.cycle_s, cooldown_s=self.cooldown_s, settle_down_s=self.settle_down_s
        )

    @property
    def look_s(self) -> float:
        """Seconds between two ticks: the policy option ``t_m_s`` (DRS's T_m) if given, else ``interval_s``."""
        told = policy_options(self.options).get("t_m_s")
        return float(told) if isinstance(told, int | float) and told > 0 else self.interval_s

    def arguments(self) -> list[str]:
        """The options as command-line arguments of the controller process."""
        budget = [] if self.budget is None else [f"--budget={self.budget}"]
        slo = [f"--slo={text}" for text in self.slo]
        dry = ["--dry-run"] if self.dry_run else []
        chosen = {what: getattr(self, what) for what in _TIMES}
        times = [f"--{what.replace('_', '-')}={value}" for what, value in chosen.items() if value is not None]
        mapper = [] if self.mapper is None else [f"--mapper={self.mapper}", f"--routing={self.routing}"]
        profiles = [] if self.profiles is None else [f"--profiles={self.profiles}"]
        nodes = [] if self.slots_per_node is None else [f"--slots-per-node={self.slots_per_node}"]
        curve = [] if self.capacity is None else [f"--capacity={self.capacity}"]
        options = [f"--policy-option={text}" for text in self.options]
        before = [] if self.history is None else [f"--history={self.history}"]
        return [
            f"--policy={self.policy}",
            *(*slo, *budget, *times, *dry, *mapper, *profiles, *nodes, *curve, *options, *before),
        ]

    def history_per_s(self) -> tuple[float, ...]:
        """The load before the run; empty if none was given."""
        return () if self.history is None else tuple(read_trace(Path(self.history)).values.tolist())

    def known(self) -> Known:
        """Slots per node, the most nodes, and the measured node throughput, for policies that decide nodes."""
        if not live_policy_entry(self.policy).nodes:
            return Known()
        slots, file = self.slots_per_node, self._file()
        most = self.budget // slots if slots and self.budget else None
        if file is None:
            return Known(slots_per_node=slots, most=most)
        training, judges = file.samples("training"), file.samples("validation")
        return Known(training=training, validation=judges, most=most, slots_per_node=slots)

    def _file(self) -> CapacityFile | None:
        return None if self.capacity is None else read_capacity_file(Path(self.capacity))


def _check_control(given: Control) -> None:
    """Refuse invalid options before a controller process is started with them."""
    if not isinstance(given.policy, str):
        raise BadInput(f"policy is {given.policy!r}: give its name, see `sluicegate policies`")
    live_policy_entry(given.policy)
    promise: object = given.slo
    if not isinstance(promise, tuple | list) or not all(isinstance(text, str) for text in promise):
        raise BadInput(f"slo is {given.slo!r}: give texts such as ('mean=3s', 'p95=8s')")
    goal_from(list(given.slo))
    if given.budget is not None and (not isinstance(given.budget, int) or given.budget < 1):
        raise BadInput(f"budget is {given.budget}: give at least 1 processor")
    for what in _TIMES:
        value = getattr(given, what)
        if value is None and what in ("cooldown_s", "settle_down_s"):
            continue
        if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise BadInput(f"{what} is {value}: give seconds, 0 or more")
    if given.mapper is not None:
        placer(given.mapper)
    if given.routing not in [one.value for one in Routing]:
        raise BadInput(f"routing is {given.routing!r}: give one of {', '.join(one.value for one in Routing)}")
    policy_for(given.policy, options=policy_options(given.options))
    if not given.interval_s > 0:
        raise BadInput("interval_s is 0: give the seconds between two ticks, above 0")
    given.history_per_s()


def given_to(arguments: Sequence[str]) -> tuple[Path, Control, int]:
    """Parse the controller process's arguments: the folder, the options, and the parent process to end with.

    >>> given_to(["run", *Control(slo=("p95=5s",), cycle_s=30.0).arguments()])[1].cycle_s
    30.0
    """
    parser = argparse.ArgumentParser(prog="sluicegate.spark.controller")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--policy", default="sluicegate")
    parser.add_argument("--slo", action="append", default=[])
    parser.add_argument("--budget", type=int)
    parser.add_argument("--interval-s", type=float, default=2.0)
    parser.add_argument("--cooldown-s", type=float)
    parser.add_argument("--settle-down-s", type=float)
    parser.add_argument("--startup-s", type=float, default=0.0)
    parser.add_argument("--cycle-s", type=float, default=60.0)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--mapper")
    parser.add_argument("--routing", default=Routing.EVEN.value)
    parser.add_argument("--profiles")
    parser.add_argument("--slots-per-node", type=int)
    parser.add_argument("--capacity")
    parser.add_argument("--policy-option", action="append", default=[])
    parser.add_argument("--history")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="ends when that process is gone")
    given = parser.parse_args(arguments)
    control = Control(
        given.policy,
        tuple(given.slo),
        given.budget,
        given.interval_s,
        given.cooldown_s,
        given.settle_down_s,
        given.dry_run,
        given.startup_s,
        given.cycle_s,
        given.mapper,
        given.routing,
        given.profiles,
        given.slots_per_node,
        given.capacity,
        tuple(given.policy_option),
        given.history,
    )
    return given.folder, control, given.parent
