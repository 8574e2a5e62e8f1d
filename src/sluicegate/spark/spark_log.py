"""Redirects the standard error of Spark's Java process to a log file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

from pyspark.errors import PySparkException

from sluicegate.errors import EnvironmentLacks
from sluicegate.runlog.files import owner_only_file, owner_only_folder
from sluicegate.spark.cluster.java import find_java

_TAIL_CHARACTERS = 300


@contextmanager
def quiet_spark(log: Path) -> Iterator[None]:
    """Start Spark's Java process in this block to send its standard error to ``log`` for its whole lifetime.

    The standard error of this process's own Python code is not redirected.
    """
    find_java()
    try:
        owner_only_folder(log.parent)
        file = owner_only_file(log).open("ab")
    except OSError as problem:
        raise EnvironmentLacks(f"{log.parent} cannot be written ({problem.strerror}): choose another folder") from None
    with file, os.fdopen(os.dup(2), "w", encoding="utf-8", buffering=1) as ours, redirect_stderr(ours):
        os.dup2(file.fileno(), 2)
        try:
            yield
        except PySparkException as problem:
            told = _last_words(log) or str(problem)
            raise EnvironmentLacks(f"Spark did not start ({told}): see `sluicegate doctor`") from problem
        finally:
            os.dup2(ours.fileno(), 2)


def _last_words(log: Path) -> str:
    return " ".join(log.read_text(encoding="utf-8", errors="replace").split())[-_TAIL_CHARACTERS:]
