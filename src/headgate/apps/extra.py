"""Libraries that single applications need and headgate itself does not."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from headgate.errors import EnvironmentLacks


def extra(name: str) -> ModuleType:
    """The library ``name``, imported where it is used: whoever runs another application does without it.

    >>> extra("no_such_library")
    Traceback (most recent call last):
    headgate.errors.EnvironmentLacks: this application needs no_such_library: pip install "headgate[apps]"
    """
    try:
        return import_module(name)
    except ImportError:
        raise EnvironmentLacks(f'this application needs {name}: pip install "headgate[apps]"') from None
