"""Compiles the simulator's inner functions with numba.

They get the state as a tuple of arrays and allocate nothing, so numba's reference counting is not needed: its atomic
additions around every access take seven eighths of the running time. ``_nrt=False`` leaves them out, as numba does for
its own strings. A function compiled this way must neither create nor return an array.

Compiled code is cached in ``__pycache__``, keyed by the file of the outermost function: after editing an inner function
delete the cache there (``*.nbi``, ``*.nbc``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first use and cache on disk."""
    made: Callable[P, R] = njit(**_OPTIONS)(function)
    return made


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Inline into its callers, since the state is too large to be passed at every step."""
    made: Callable[P, R] = njit(forceinline=True, **_OPTIONS)(function)
    return made
