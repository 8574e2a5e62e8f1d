"""Spark's Python daemon with a lower cost per task: imports preloaded, objects frozen for the GC, no zip archives.

Every task needs a Python process; benchmarks/python_tasks.py compares this daemon with Spark's own. The differences:

- A new process has to import Arrow; one forked from here has it already.
- Spark runs the garbage collector after every task. It visits all imported objects, and in a forked process it touches,
  and so copies, every shared page. Frozen objects (``gc.freeze``) are skipped.
- Every process reads the directories of its zip archives at its first task, several times for pyspark.zip. If pyspark
  is installed, the archive is not needed.
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
