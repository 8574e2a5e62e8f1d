"""Spark's Python daemon, made so that a task costs little: imports done, nothing to collect, no archive to read again.

Every task needs a Python process. Three Arrow functions in one query at k = 12 on two cores, as measured by
benchmarks/python_tasks.py: with Spark's own daemon a batch lasts 1.1 s longer than its rows, and the first one after k
was raised 13 s; with this one 0.3 s and 0.7 s. What makes the difference:

- A process that starts from nothing imports Arrow for a second; forked from here it has it.
- Spark collects garbage after every task: over all that was imported that takes 40 ms, and in a fresh process it
  touches, and so copies, every page that was shared. What is frozen is not looked at.
- Every process reads the directories of its zip archives again at its first task, 18 times for pyspark.zip, 0.2 s.
  Where pyspark is installed, the archive is not needed.
"""

import gc
import importlib.util
import sys


def leave_archives() -> None:
    """Take the archives of Spark's own code from the path, if that code is installed beside them."""
    archives = {entry for entry in sys.path if entry.endswith((".zip", ".jar"))}
    before, sys.path[:] = list(sys.path), [entry for entry in sys.path if entry not in archives]
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("py4j") is None:
        sys.path[:] = before
        return
    for entry in archives:
        sys.path_importer_cache.pop(entry, None)


def preload() -> None:
    import pandas
    import pyarrow
    import pyspark.sql.pandas.serializers
    import pyspark.worker

    del pandas, pyarrow, pyspark


if __name__ == "__main__":
    leave_archives()
    preload()
    gc.collect()
    gc.freeze()
    from pyspark.daemon import manager

    manager()
