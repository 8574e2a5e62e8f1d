"""Finds the processes of a run by parent and command line. Linux only: it reads ``/proc``."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from sluicegate.errors import EnvironmentLacks


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    state: str
    command: str

    def send(self, what: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, what)


def below(root: int) -> list[Process]:
    """All live descendants of a process."""
    if not Path("/proc/self/stat").exists():
        raise EnvironmentLacks("chaos finds processes by /proc, which this system does not have: run it on Linux")
    children: dict[int, list[Process]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            found = _read(folder)
            if found is not None:
                children[found.parent].append(found)
    seen, todo = list[Process](), [root]
    while todo:
        born = children[todo.pop()]
        seen += born
        todo += [process.pid for process in born]
    return seen


def _read(folder: Path) -> Process | None:
    try:
        # The name in parentheses may hold any character; after it come the state and the parent.
        state, parent, *_ = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (OSError, ValueError):
        return None
    return Process(int(folder.name), int(parent), state, command) if state not in "ZX" else None


def java_of(driver: int) -> list[Process]:
    """The Java process of a driver."""
    return [p for p in below(driver) if "org.apache.spark.deploy.SparkSubmit" in p.command]


def controllers_of(driver: int) -> list[Process]:
    return [p for p in below(driver) if "sluicegate.spark.controller" in p.command and p.parent == driver]


def executors_of(root: int) -> list[Process]:
    """The executors of a cluster node."""
    return [p for p in below(root) if "CoarseGrainedExecutorBackend" in p.command and "java" in p.command]


def daemons_of(root: int) -> list[Process]:
    """The processes that fork Python workers: one for each Java process that runs tasks."""
    # match the -m argument: the command line of Java also names the module, among its settings
    found = [p for p in below(root) if re.search(r"python\S* -m \S*(?:python_daemon|pyspark\.daemon)\b", p.command)]
    numbers = {p.pid for p in found}
    return [p for p in found if p.parent not in numbers]


def workers_of(root: int) -> list[Process]:
    """The Python workers that run tasks."""
    daemons = {p.pid for p in daemons_of(root)}
    return [p for p in below(root) if p.parent in daemons]
