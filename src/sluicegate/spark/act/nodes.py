"""Providers that start and stop nodes, that is machines or processes on which executors run.

``LocalNodes`` are workers of a local cluster. ``CommandNodes`` run command lines: a cloud's tool, an ssh script, a
container. A node is always drained before it is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluicegate.domain import Vm
from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.spark.cluster.commands import CommandTemplate, is_harmless
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until


class NodeProvider(Protocol):
    """Starts and stops nodes."""

    def start(self, count: int) -> list[str]:
        """Start nodes and wait until they are up; returns their names."""
        ...

    def stop(self, names: Sequence[str]) -> None:
        """Drain nodes, then stop them; names of nodes that are already gone are ignored."""
        ...

    def running(self) -> tuple[Vm, ...]:
        """The nodes that take work, with their slots."""
        ...

    def host(self, name: str) -> str | None:
        """Spark's name of that node's host; ``None`` if unknown."""
        ...


@dataclass(frozen=True, slots=True)
class LocalNodes:
    """Workers of a local cluster, each with ``cores`` slots."""

    cluster: Cluster
    cores: int = 1
    memory: str = "1g"
    drain_limit_s: float = 300.0

    def start(self, count: int) -> list[str]:
        """Start workers and wait until they are registered with the master."""
        return self.cluster.add_workers(count, self.cores, self.memory)

    def stop(self, names: Sequence[str]) -> None:
        """Drain workers, then stop them."""
        status = self.cluster.status()
        known = {worker.name for worker in status.workers} if status else set()
        here = [name for name in names if name in known]
        if here:
            self.cluster.retire_workers(here, self.drain_limit_s)

    def running(self) -> tuple[Vm, ...]:
        """The workers that take work."""
        status = self.cluster.status()
        workers = status.workers if status else ()
        return tuple(Vm(worker.name, worker.cores) for worker in workers if worker.state == "alive")

    def host(self, name: str) -> str | None:
        """The address of a worker."""
        status = self.cluster.status()
        return next((worker.host for worker in status.workers if worker.name == name), None) if status else None


@dataclass(frozen=True, slots=True)
class CommandNodes:
    """Nodes behind three commands, in which ``{name}``, ``{count}`` and ``{master}`` are filled in.

    ``start_command`` is run once for each node if it has ``{name}`` (new names are PREFIX-1, PREFIX-2, ...), else once
    with ``{count}``. ``list_command`` prints one node a line, its name and, after a space, its slots (else ``slots``).
    ``drain`` is called with a node's name before ``stop_command``; pass ``Executors.drain_host`` where nodes are named
    as Spark names their hosts.
    """

    start_command: str
    stop_command: str
    list_command: str
    master: str = ""
    slots: int = 1
    prefix: str = "sluicegate"
    drain: Callable[[str], object] | None = None
    patience_s: float = 600.0
    command_limit_s: float = 300.0
    poll_s: float = 2.0

    def __post_init__(self) -> None:
        if not self._start.uses("name") and not self._start.uses("count"):
            raise BadInput(f"start command {self.start_command!r} has neither {{name}} nor {{count}}: it needs one")
        if not self._stop.uses("name"):
            raise BadInput(f"stop command {self.stop_command!r} lacks {{name}}: it must say which node stops")
        if self._list.uses("name") or self._list.uses("count"):
            raise BadInput(f"list command {self.list_command!r} can only have {{master}}: it names all nodes")

    def start(self, count: int) -> list[str]:
        """Start nodes and wait until the list command names them."""
        if count < 1:
            raise BadInput(f"{count} nodes to start: give at least 1")
        before = self._names()
        if self._start.uses("name"):
            asked = _new_names(self.prefix, before, count)
            for name in asked:
                self._start.run(self.command_limit_s, name=name, count="1", master=self.master)
            return self._came(lambda: [name for name in asked if name in self._names()], count)
        self._start.run(self.command_limit_s, count=str(count), master=self.master)
        return self._came(lambda: [name for name in self._names() if name not in before], count)

    def stop(self, names: Sequence[str]) -> None:
        """Drain and stop nodes one after the other, and wait until the list command no longer names them."""
        here = [name for name in dict.fromkeys(names) if name in self._names()]
        for name in here:
            if self.drain is not None:
                self.drain(name)
            self._stop.run(self.command_limit_s, name=name, count="1", master=self.master)
        if not wait_until(lambda: not set(here) & set(self._names()), self.patience_s, self.poll_s):
            left = ", ".join(name for name in here if name in self._names())
            raise EnvironmentLacks(f"{left} still listed {self.patience_s:g} s after the stop command ended well")

    def running(self) -> tuple[Vm, ...]:
        """The nodes the list command names."""
        lines = self._list.run(self.command_limit_s, master=self.master).splitlines()
        found = {vm.name: vm for vm in (_node(line.split(), self.slots) for line in lines if line.strip())}
        return tuple(found.values())

    def host(self, name: str) -> str | None:
        """The node's name; if Spark uses another name for its host, the node appears to have no executors."""
        return name

    @property
    def _start(self) -> CommandTemplate:
        return CommandTemplate("start command", self.start_command)

    @property
    def _stop(self) -> CommandTemplate:
        return CommandTemplate("stop command", self.stop_command)

    @property
    def _list(self) -> CommandTemplate:
        return CommandTemplate("list command", self.list_command)

    def _names(self) -> list[str]:
        return [vm.name for vm in self.running()]

    def _came(self, arrived: Callable[[], list[str]], count: int) -> list[str]:
        """Wait until all ``count`` nodes are listed; returns their names."""
        if not wait_until(lambda: len(arrived()) >= count, self.patience_s, self.poll_s):
            raise EnvironmentLacks(
                f"{len(arrived())} of {count} nodes came within {self.patience_s:g} s: the start command ended well, "
                f"but {self.list_command!r} does not name the rest; see why they do not come, or wait longer"
            )
        return arrived()


def _new_names(prefix: str, taken: Sequence[str], count: int) -> list[str]:
    free = (name for number in range(1, len(taken) + count + 1) if (name := f"{prefix}-{number}") not in taken)
    return [name for name, _ in zip(free, range(count), strict=False)]


def _node(words: Sequence[str], slots: int) -> Vm:
    known = words[1] if len(words) > 1 else str(slots)
    if not is_harmless(words[0]) or not known.isdecimal() or int(known) < 1:
        raise BadInput(f"list command printed {' '.join(words)!r}: give a name and, if need be, its slots")
    return Vm(words[0], int(known))
