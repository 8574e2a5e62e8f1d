"""Imports optional libraries that only some applications need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sluicegate.errors import EnvironmentLacks


def extra(name: str) -> ModuleType:
    """Import the library ``name`` on first use, so that other applications run without it.

    >>> extra("no_such_library")
    Traceback (most recent call last):
    sluicegate.errors.EnvironmentLacks: this application needs no_such_library: pip install "sluicegate[apps]"
    """
    try:
        return import_module(name)
    except ImportError:
        raise EnvironmentLacks(f'this application needs {name}: pip install "sluicegate[apps]"') from None
