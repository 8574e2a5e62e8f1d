"""The command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point. What it needs is imported here: Ctrl-C may come while that takes its second on a busy machine."""
    try:
        from sluicegate.cli.app import main as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("sluicegate: stopped\n")
        sys.exit(130)


__all__ = ["main"]
