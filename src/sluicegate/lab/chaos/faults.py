"""The kinds of faults that chaos injects; what each does is in ``harm``."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.errors import BadInput
from sluicegate.lab.chaos import harm


@dataclass(frozen=True, slots=True)
class ChaosFault:
    name: str
    about: str
    do: harm.Do
    cluster: bool = False
    """Whether it needs a cluster, with executors and nodes as separate processes."""
    network: bool = False
    """Whether it needs a cluster whose nodes are network namespaces."""
    often: int = 1
    """How often it is injected per round; faults that end no driver recover fast and are injected more often."""


NOTHING = "nothing"
"""The baseline: its recovery time is how long rows take without any fault."""
FAULTS: tuple[ChaosFault, ...] = (
    ChaosFault(NOTHING, "no fault, for comparison", harm.nothing),
    ChaosFault("python-worker", "SIGKILL of a Python worker", harm.killed(harm.workers), often=6),
    ChaosFault(
        "python-worker-stop", "SIGSTOP of a Python worker for some seconds", harm.stopped(harm.workers), often=3
    ),
    ChaosFault("python-daemon", "SIGKILL of what forks Python workers", harm.killed(harm.daemons), often=4),
    ChaosFault("controller", "SIGKILL of the controller", harm.killed(harm.controllers), often=6),
    ChaosFault("controller-stop", "SIGSTOP of the controller", harm.stopped(harm.controllers), often=4),
    ChaosFault("driver", "SIGKILL of the driver (Python), started again", harm.killed(harm.driver)),
    ChaosFault("driver-stop", "SIGSTOP of the driver (Python)", harm.stopped(harm.driver), often=4),
    ChaosFault("java", "SIGKILL of the driver's Java process, started again", harm.killed(harm.java)),
    ChaosFault("java-stop", "SIGSTOP of the driver's Java process", harm.stopped(harm.java), often=4),
    ChaosFault("everything", "SIGKILL of the driver and all its processes at once", harm.kill_everything),
    ChaosFault("written", "driver killed before a batch is published", harm.killed_at("written")),
    ChaosFault("published", "driver killed between publishing and committing", harm.killed_at("published")),
    ChaosFault(
        "between-manifests", "driver killed between the manifests of a split", harm.killed_at("between-manifests")
    ),
    ChaosFault(
        "change-of-k", "driver killed in a batch with another number of tasks", harm.killed_at("written", move=True)
    ),
    ChaosFault("repartition", "driver killed while state is brought into other key groups", harm.kill_repartition),
    ChaosFault("written-fails", "a batch fails before it is published", harm.fails_at("written"), often=5),
    ChaosFault(
        "published-fails", "a batch fails between publishing and committing", harm.fails_at("published"), often=5
    ),
    ChaosFault("between-fails", "a batch fails between two manifests", harm.fails_at("between-manifests"), often=5),
    ChaosFault("repartition-fails", "a change of key groups fails half way", harm.fail_repartition, often=3),
    ChaosFault("stop", "driver told to stop, killed before it has", harm.kill_stopping),
    ChaosFault("stop-storm", "driver told to stop 10 to 40 times at once", harm.stop_often),
    ChaosFault("full-disk", "no room on the disk for some seconds", harm.fill_disk, often=3),
    ChaosFault("out-of-files", "room on the disk, but no inode left, for some seconds", harm.use_up_files, often=3),
    ChaosFault(
        "out-of-handles",
        "the driver (Python) can open no file and no socket for some seconds",
        harm.use_up_handles,
        often=3,
    ),
    ChaosFault("failing-disk", "files cannot be made, renamed or synced for some seconds", harm.fail_disk, often=4),
    ChaosFault("slow-disk", "every file takes up to 0.4 s longer for some seconds", harm.slow_disk, often=3),
    ChaosFault("clock-step", "the driver's clock stepped by up to two hours, forth or back", harm.step_clock, often=4),
    ChaosFault("plan", "the plan emptied, torn, overwritten, absurd, or changed by hand", harm.spoil_plan, often=4),
    ChaosFault("log", "a log or report of the run overwritten", harm.spoil_log, often=4),
    ChaosFault(
        "postgres", "SIGKILL of the PostgreSQL that a sink writes to, started again", harm.kill_database, often=6
    ),
    ChaosFault("postgres-stop", "SIGSTOP of that PostgreSQL for some seconds", harm.stop_database, often=3),
    ChaosFault("spoiled-file", "driver killed, a file spoiled; refused, or exact", harm.spoil_file, often=2),
    ChaosFault("executor", "SIGKILL of an executor", harm.killed(harm.executors), cluster=True, often=4),
    ChaosFault("executor-stop", "SIGSTOP of an executor", harm.stopped(harm.executors), cluster=True, often=3),
    ChaosFault(
        "drain", "driver or executor killed while an executor leaves", harm.kill_draining, cluster=True, often=2
    ),
    ChaosFault("node-stop", "SIGSTOP of a node for some seconds", harm.stopped(harm.nodes), cluster=True, often=2),
    ChaosFault(
        "node-freeze",
        "SIGSTOP of a node and all that runs on it, for seconds or until it counts as lost",
        harm.freeze_node,
        cluster=True,
        often=2,
    ),
    ChaosFault("node", "SIGKILL of a node, a new one comes", harm.kill_node, cluster=True, often=2),
    ChaosFault(
        "network-cut", "a node cut off the network for some seconds", harm.cut_node, cluster=True, network=True, often=4
    ),
)


def chosen(names: str, cluster: bool, network: bool = False) -> tuple[ChaosFault, ...]:
    """The faults of a comma-separated list; ``all`` leaves out those that need a cluster or network that is lacking."""
    if names == "all":
        return tuple(one for one in FAULTS if (cluster or not one.cluster) and (network or not one.network))
    by_name = {fault.name: fault for fault in FAULTS}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in by_name:
            raise BadInput(f"no fault {name!r}: there is {', '.join(by_name)}, or all")
        if by_name[name].cluster and not cluster:
            raise BadInput(f"fault {name!r} needs executors of their own: give --master cluster")
        if by_name[name].network and not network:
            raise BadInput(f"fault {name!r} needs nodes that are network namespaces: give --master netns (as root)")
    if not wanted:
        raise BadInput("--faults names none: give names with commas between, or all")
    return tuple(by_name[name] for name in dict.fromkeys(wanted))
