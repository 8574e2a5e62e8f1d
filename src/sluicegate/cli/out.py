"""Standard output: one JSON document, or tables for people."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from sluicegate.errors import BadInput


def finite(value: object) -> object:
    """The value with every infinity and NaN as null, since JSON has neither; numpy numbers as plain ones."""
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def print_json(document: Mapping[str, object]) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(finite(document), indent=2) + "\n")
    sys.stdout.flush()


def write_page(path: Path, text: str) -> None:
    """Write a page where the user wants it."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise BadInput(f"{path}: cannot be written ({problem.strerror or problem}); choose another place") from None


def place_for(path: Path) -> Path:
    """The path of a page, refused before the work starts if it cannot be written."""
    there = path if path.exists() else path.absolute().parent
    if path.is_dir() or not os.access(there, os.W_OK):
        raise BadInput(f"{path}: cannot be written (no such folder, or no right to); choose another place")
    return path


def console() -> Console:
    """Tables; plain text where standard output is no terminal."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 140)


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[float], None]]:
    """A progress bar on standard error, called with the share done; nothing without a terminal."""
    bar = Console(stderr=True)
    if quiet or not bar.is_terminal:
        yield lambda share: None
        return
    with Progress(TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=bar) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)


@contextmanager
def status(what: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A line on standard error that shows the current step; nothing without a terminal."""
    out = Console(stderr=True)
    if quiet or not out.is_terminal:
        yield lambda step: None
        return
    with out.status(what) as spinner:
        yield lambda step: spinner.update(f"{what}: {step}")
