"""The command line: commands in files of their own, errors in one line, exit codes as documented.

0 done; 1 ran, but a stated check failed; 2 bad input or usage; 3 the environment lacks something.

Every command has one line of help here, and a module that is imported when it is called. The help of `sluicegate`
itself is this table, so that asking for it loads nothing that computes.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, Protocol, runtime_checkable

import typer
from typer.core import TyperGroup

from sluicegate import __version__
from sluicegate.errors import INTERRUPTED, BadInput, SluicegateError

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


_LACKS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EADDRINUSE,
    errno.EADDRNOTAVAIL,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EIO,
}
"""Errors of the system that are the machine's fault and not that of a path the user gave."""
_COMPLETED = "_TYPER_COMPLETE_ARGS"
"""Environment variable in which a shell that completes a line puts the words so far."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sluicegate {__version__}")
        raise typer.Exit


def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Keep a latency promise for Spark Structured Streaming with the fewest processors, with reasons."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise BadInput("no command: give one of those above, such as `sluicegate demo`")


class Interrupted(SluicegateError):
    """Ctrl-C in the middle of a command."""

    exit_code = INTERRUPTED


class Commands(TyperGroup):
    """Ctrl-C in a command is an error of ours: typer would end it without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("stopped") from None


def commands(arguments: list[str]) -> typer.Typer:
    """All commands; only the one that is called is imported, so that each takes no more memory than it needs.

    `status`, `top` and `explain` run on the machine of a run, which needs its memory.
    """
    app = typer.Typer(name="sluicegate", cls=Commands, invoke_without_command=True, pretty_exceptions_enable=False)
    app.callback()(options)
    words = [*arguments, *os.environ.get(_COMPLETED, "").split()]
    add_commands(app, next((word for word in words if word in COMMANDS), None))
    return app


@runtime_checkable
class UsageProblem(Protocol):
    """Usage errors of the parser; typer bundles its own copy of click, so the class has no fixed import path."""

    exit_code: int

    def format_message(self) -> str: ...


def main() -> None:
    """Entry point: turns every error into one line on standard error and the documented exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was started ends too
    logging.getLogger().addFilter(_is_no_ctrl_c)
    _give_what_is_closed()
    try:
        Path.home()
    except RuntimeError:  # HOME is not set and this user has no entry: what containers set for such a user
        os.environ["HOME"] = "/"
    sys.exit(run(sys.argv[1:]))


def _give_what_is_closed() -> None:
    """Open what a parent has closed of the standard streams, or the next file would get its number, and its text."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, mode))


def _is_no_ctrl_c(record: logging.LogRecord) -> bool:
    """Whether a log entry is not the one, with a trace, that Spark's bridge to Java writes for a Ctrl-C."""
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    try:
        app = commands(arguments)
        say_when_compiling()
        code = app(args=arguments, standalone_mode=False, prog_name="sluicegate")
        return code if isinstance(code, int) else 0
    except SluicegateError as problem:
        return _say(str(problem), problem.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _say("stopped", INTERRUPTED)
    except BrokenPipeError:
        # The reader of the pipe is gone (a pager, head): no error, but Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as left:
        if isinstance(
            left.__context__, BrokenPipeError
        ):  # how rich leaves, with code 1, which is that of a failed check
            return 0
        raise
    except MemoryError:
        return _say("not enough memory for a problem of this size: make it smaller", 3)
    except OverflowError:
        return _say("a number is too large for what is computed with it: give a smaller one", 2)
    except OSError as problem:  # a path that no command checks: too long, without rights, a folder for a file
        return _say(_of_system(problem), 3 if problem.errno in _LACKS else 2)
    except Exception as problem:
        if isinstance(problem, UsageProblem):
            return _say(_of_usage(problem), 2)
        raise


def _of_usage(problem: UsageProblem) -> str:
    said = " ".join(problem.format_message().split()).removesuffix(".")
    if said.endswith("is not readable"):
        return f"{said}; check its rights"
    command = getattr(getattr(problem, "ctx", None), "command_path", "sluicegate")
    return f"{said}{' See' if said.endswith('?') else '; see'} `{command} --help`"


def _of_system(problem: OSError) -> str:
    what = problem.strerror or str(problem) or type(problem).__name__
    return what if problem.filename is None else f"{problem.filename}: {what}; check the path and its rights"


def _say(text: str, code: int) -> int:
    typer.echo(f"sluicegate: {one_line(text)}", err=True)
    return code


def one_line(text: str) -> str:
    r"""The text on one line: a name from a file or the command line may hold line ends and control characters.

    >>> one_line("no run in a\nb")
    'no run in a\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def say_when_compiling() -> None:
    """One line on standard error when numba compiles a function that is not in its cache; nothing without a terminal.

    Commands that compute nothing have not imported numba, and need not.
    """
    if "numba" not in sys.modules or not sys.stderr.isatty():
        return
    from numba.core import event

    register: Any = event.register  # numba gives it no types

    class Told(event.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said:
                typer.echo("compiling the models: once after an installation, up to half a minute", err=True)
            self.said = True

        def on_end(self, event: object) -> None: ...

    register("numba:compile", Told())
