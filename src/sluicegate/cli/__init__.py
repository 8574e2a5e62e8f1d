"""The command line."""

from sluicegate.cli.app import main

__all__ = ["main"]
