"""What people type."""

from sluicegate.cli.app import main

__all__ = ["main"]
