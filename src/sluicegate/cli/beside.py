"""Runs the dashboard next to the demo, and opens it in a browser if there is a desktop."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from sluicegate.dashboard.child import Dashboard


@dataclass(frozen=True, slots=True)
class PageBeside:
    """Whether and where the dashboard is shown; its address is printed to ``out``."""

    dashboard: bool
    port: int
    browser: bool
    out: Console | None

    def __call__(self, folder: Path) -> AbstractContextManager[object]:
        return self._shown(folder)

    @contextmanager
    def _shown(self, folder: Path) -> Iterator[None]:
        if not self.dashboard:
            yield
            return
        with Dashboard(folder, port=self.port) as served:
            self._say(f"watch it at {served.url}")
            if self.browser and has_desktop():
                webbrowser.open(served.url)
            yield

    def _say(self, text: str) -> None:
        if self.out is not None:
            self.out.print(text, soft_wrap=True, markup=False)


def has_desktop() -> bool:
    """Whether there is a desktop: without one, a text browser would take over this terminal."""
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
