"""How the simulator's inner functions are compiled.

They are handed the state as a tuple of arrays and allocate nothing, so numba's reference counts would count for
nothing: atomic additions around every access, which take seven eighths of the running time. ``_nrt=False`` leaves
them out, as numba does for its own strings. A function compiled so must neither make an array nor return one.

Compiled code is kept in ``__pycache__``, by the file of the outermost function: who edits an inner one must delete it
there (``*.nbi``, ``*.nbc``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first use; kept on disk from then on."""
    made: Callable[P, R] = njit(**_OPTIONS)(function)
    return made


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into its callers: the state is far too many words to be passed for every step."""
    made: Callable[P, R] = njit(forceinline=True, **_OPTIONS)(function)
    return made
