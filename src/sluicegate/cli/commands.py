"""Every command by name: its one line of help, and the module that is imported when it is called.

The help of `sluicegate` itself is this table, so that asking for it loads nothing that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType

import typer

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "demo": "Run a shop's top-N on Spark under a load that triples and falls back, and show every move with its "
        "reason.",
        "conf": "Print the options that attach an application: spark-submit $(sluicegate conf ...) app.py",
        "run": "Run an application on Spark; its parallelism follows the load.",
        "status": "Show the state of a run: promise, load, latency, processors, and the last decision with its reason.",
        "top": "Watch a run: operators, load and latency against the promise, the last decisions. Exit with q or "
        "Ctrl-C.",
        "explain": "Explain a decision: what was measured and forecast, every reason and refusal, and its effect.",
        "report": "Write the page of a run: what was promised, kept and paid, with pictures and every decision.",
        "dashboard": "Show a run in the browser: topology, latency, load, processors, every decision, and plans for "
        "other loads.",
        "profile": "Measure the sustainable rate of an operator in one slot, or of an application on some nodes.",
        "plan": "Plan processors, slots and machines for a pipeline before it runs, with reasons.",
        "simulate": "Simulate a pipeline at a steady load against the models' prediction, or under a policy.",
        "replay": "Replay load traces against policies: on time, cost, backlog, rescales, forecast coverage.",
        "advise": "Estimate what the streaming queries of an event log would have needed, and what that saves.",
        "repartition": "Change the number of state partitions of a stopped query, checked row by row; can be undone.",
        "reproduce": "Reproduce a paper's tables and figures and report which claims hold.",
        "fidelity": "Measure an application's operators, predict allocations, run them, and compare.",
        "verify": "Check a pipeline's folder: manifests, checksums, checkpoints against edges, state against commits.",
        "chaos": "Kill, stop and corrupt parts of a running application at random, and compare its result with the "
        "right one.",
        "cluster": "A standalone Spark cluster on this machine, from pip's PySpark alone.",
        "apps": "List the applications, what each does, its promise and load, and the paper it comes from.",
        "policies": "List the policies, what each does and where it comes from; or the options of one.",
        "doctor": "Check Java, Spark, libraries, memory, disk and ports, and list what to do if something is missing.",
    }
)
"""In the order in which the help shows them. Command NAME is function NAME of ``sluicegate.cli.NAME``."""
GROUPS = frozenset({"cluster"})
"""Commands with subcommands: ``app`` in their module."""


def add_commands(app: typer.Typer, wanted: str | None) -> None:
    """Add all commands, but only the ``wanted`` one with its options: the others are only listed."""
    for name, summary in COMMANDS.items():
        if name != wanted:
            app.command(name, help=summary)(_listed_only)
        elif name in GROUPS:
            app.add_typer(_module(name).app, name=name)
        else:
            app.command(name)(command_of(name))


def command_of(name: str) -> Callable[..., object]:
    """The function behind a command; imports its module."""
    found: Callable[..., object] = getattr(_module(name), name)
    return found


def _module(name: str) -> ModuleType:
    return import_module(f"sluicegate.cli.{name}")


def _listed_only() -> None:
    raise AssertionError("a command that was only listed was called")
