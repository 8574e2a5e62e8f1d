"""The command line: commands in files of their own, errors in one line, exit codes as documented.

0 done; 1 ran, but a stated check failed; 2 bad input or usage; 3 the environment lacks something.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Protocol, runtime_checkable

import typer

from sluicegate import __version__
from sluicegate.cli.dashboard import dashboard
from sluicegate.cli.doctor import doctor
from sluicegate.cli.explain import explain
from sluicegate.cli.report import report
from sluicegate.cli.status import status
from sluicegate.cli.top import top
from sluicegate.errors import SluicegateError

LOOKING: dict[str, Callable[..., int]] = {
    "status": status,
    "top": top,
    "explain": explain,
    "report": report,
    "dashboard": dashboard,
    "doctor": doctor,
}
"""Commands that stand beside a run: they load neither Spark nor compiled code, so they take no memory from it."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sluicegate {__version__}")
        raise typer.Exit


def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Keep a streaming pipeline's latency promise with the fewest processors, and say why."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def commands(arguments: list[str]) -> typer.Typer:
    """The commands there are; of the others only those that a call can mean are loaded."""
    app = typer.Typer(name="sluicegate", invoke_without_command=True, pretty_exceptions_enable=False)
    app.callback()(options)
    if not arguments or arguments[0] not in LOOKING:
        from sluicegate.cli.working import add_working

        add_working(app)
    for name, command in LOOKING.items():
        app.command(name)(command)
    return app


@runtime_checkable
class UsageProblem(Protocol):
    """What the parser raises; typer brings its own copy of click along, so the class itself has no fixed name."""

    exit_code: int

    def format_message(self) -> str: ...


def main() -> None:
    """Entry point: turns every error into one line on standard error and the documented exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of one call."""
    try:
        code = commands(arguments)(args=arguments, standalone_mode=False, prog_name="sluicegate")
        return code if isinstance(code, int) else 0
    except SluicegateError as problem:
        return _say(str(problem), problem.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _say("stopped", 130)
    except BrokenPipeError:
        # The reader left (a pager, head): nothing is wrong, but Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _say("not enough memory for a problem of this size: make it smaller", 3)
    except Exception as problem:
        if isinstance(problem, UsageProblem):
            return _say(" ".join(problem.format_message().split()), 2)
        raise


def _say(text: str, code: int) -> int:
    typer.echo(f"sluicegate: {text}", err=True)
    return code
