"""The command line: commands in files of their own, errors in one line, exit codes as documented.

0 done; 1 ran, but a stated check failed; 2 bad input or usage; 3 the environment lacks something.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Protocol, runtime_checkable

import typer

from sluicegate import __version__
from sluicegate.cli.commands import COMMANDS, add_commands
from sluicegate.errors import BadInput, SluicegateError

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


def commands(arguments: list[str]) -> typer.Typer:
    """All commands; only the one that is called is imported, so that each takes no more memory than it needs.

    `status`, `top` and `explain` run on the machine of a run, which needs its memory.
    """
    app = typer.Typer(name="sluicegate", invoke_without_command=True, pretty_exceptions_enable=False)
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
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    try:
        code = commands(arguments)(args=arguments, standalone_mode=False, prog_name="sluicegate")
        return code if isinstance(code, int) else 0
    except SluicegateError as problem:
        return _say(str(problem), problem.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _say("stopped", 130)
    except BrokenPipeError:
        # The reader of the pipe is gone (a pager, head): no error, but Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _say("not enough memory for a problem of this size: make it smaller", 3)
    except OSError as problem:  # a path that no command checks: too long, without rights, a folder for a file
        return _say(_of_system(problem), 3 if problem.errno in _LACKS else 2)
    except Exception as problem:
        if isinstance(problem, UsageProblem):
            return _say(" ".join(problem.format_message().split()), 2)
        raise


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
