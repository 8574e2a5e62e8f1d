"""What people type."""

from headgate.cli.app import main

__all__ = ["main"]
