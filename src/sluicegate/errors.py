"""The errors a user may see, each with the exit code the command line gives it."""

from __future__ import annotations

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""


class SluicegateError(Exception):
    """Root of every error sluicegate raises on purpose. Its text is one line that says what to do."""

    exit_code = 2


class BadInput(SluicegateError):
    """A file, an option or a value that cannot be used as it is."""


class Infeasible(SluicegateError):
    """The goal cannot be reached; the text gives the best that can be."""

    exit_code = 1


class StillWaiting(SluicegateError):
    """A wait timed out, for example for rows to leave the pipeline or for a batch to end."""


class EnvironmentLacks(SluicegateError):
    """The machine lacks something: Java, a port, memory."""

    exit_code = 3
