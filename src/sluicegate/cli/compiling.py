"""Says on a terminal that models are being compiled: the first command after an installation would seem to hang."""

from __future__ import annotations

import sys

import typer


def say_when_compiling() -> None:
    """One line on standard error when numba compiles a function that is not in its cache; nothing without a terminal.

    Commands that compute nothing have not imported numba, and need not.
    """
    if "numba" not in sys.modules or not sys.stderr.isatty():
        return
    from numba.core import event

    class Told(event.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said:
                typer.echo("compiling the models: once after an installation, up to half a minute", err=True)
            self.said = True

        def on_end(self, event: object) -> None: ...

    event.register("numba:compile", Told())  # type: ignore[no-untyped-call]
