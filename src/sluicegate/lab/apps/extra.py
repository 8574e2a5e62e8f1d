"""Libraries that single applications need and sluicegate itself does not."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sluicegate.errors import EnvironmentLacks


def extra(name: str) -> ModuleType:
    """The library ``name``, imported where it is used: whoever runs another application does without it.

    >>> extra("no_such_library")
    Traceback (most recent call last):
    sluicegate.errors.EnvironmentLacks: this application needs no_such_library: pip install "sluicegate[apps]"
    """
    try:
        return import_module(name)
    except ImportError:
        raise EnvironmentLacks(f'this application needs {name}: pip install "sluicegate[apps]"') from None
