"""Runs the models as plain Python until another process has compiled them, so that no decision waits for a compiler.

After an installation compiling takes some 20 s of processor time, minutes where other processes take the cores. The
same functions give the same figures uncompiled; one application needs few enough of them for that to be fast.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from numba.core import event
from numba.core.dispatcher import Dispatcher


class _NotCompiled(Exception):
    """A function is not in the cache of compiled code."""


class _NoCompiling(event.Listener):
    def on_start(self, event: object) -> None:
        raise _NotCompiled

    def on_end(self, event: object) -> None: ...


class CompiledMeanwhile:
    """Use it in a ``with`` block, whose end stops the compiler, and call ``renew`` between two decisions.

    ``rehearse`` runs the models once; ``command`` starts a process that does the same and so fills the cache.
    """

    def __init__(self, rehearse: Callable[[], object], command: Sequence[str]) -> None:
        self._rehearse, self._command = rehearse, command
        self._compiler: subprocess.Popen[bytes] | None = None
        self._interpreted: list[tuple[dict[str, Any], str, Dispatcher]] = []

    def __enter__(self) -> CompiledMeanwhile:
        if not _are_compiled(self._rehearse):
            self._interpreted = _compiled_functions()
            for names, name, function in self._interpreted:
                names[name] = function.py_func
            with contextlib.suppress(OSError):  # no process to be had: plain Python it is
                self._compiler = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._compiler is not None:
            self._compiler.kill()
            self._compiler.wait()
        self._restore()

    def renew(self) -> None:
        """Use the compiled functions as soon as they are in the cache; after a compiler that failed Python stays."""
        if self._compiler is not None and self._compiler.poll() == 0:
            self._restore()

    def _restore(self) -> None:
        for names, name, function in self._interpreted:
            names[name] = function
        self._compiler, self._interpreted = None, []


def _are_compiled(rehearse: Callable[[], object]) -> bool:
    """Whether ``rehearse`` finds all functions in the cache; if so, it has loaded them."""
    with event.install_listener("numba:compile", _NoCompiling()), contextlib.suppress(_NotCompiled):
        rehearse()
        return True
    return False


def _compiled_functions() -> list[tuple[dict[str, Any], str, Dispatcher]]:
    """Every name of our modules that stands for a compiled function: imported ones are there more than once."""
    ours = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("sluicegate.")]
    return [(names, name, one) for names in ours for name, one in list(names.items()) if isinstance(one, Dispatcher)]
