"""Spark's Python daemon with a lower cost per task: imports preloaded, objects frozen for the GC, no zip archives.

Every task needs a Python process. Three Arrow functions in one query at k = 12 on two cores, as measured by
benchmarks/python_tasks.py: with Spark's own daemon a batch takes 1.1 s more than its rows need, and the first one after
k was raised 13 s more; with this daemon 0.3 s and 0.7 s. What makes the difference:

- A new process spends a second importing Arrow; one forked from here has it already.
- Spark runs the garbage collector after every task. Over all imported objects that takes 40 ms, and in a forked process
  it touches, and so copies, every shared page. Frozen objects (``gc.freeze``) are skipped.
- Every process reads the directories of its zip archives again at its first task, 18 times for pyspark.zip, 0.2 s.
  If pyspark is installed, the archive is not needed.
"""

import gc
import importlib.util
import sys


def leave_archives() -> None:
    """Remove zip and jar archives from ``sys.path`` if pyspark and py4j can be imported without them."""
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
