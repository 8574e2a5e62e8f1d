"""Spark's Python daemon with its imports done: a worker forked from it is ready in milliseconds.

Each task needs a Python process, and a process that starts from nothing spends a second importing Arrow before it sees
a row. Raising k would pay that for every new task; forked from here it pays nothing.
"""

import pandas
import pyarrow
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark.daemon import manager

PRELOADED = (
    pandas,
    pyarrow,
    pyspark.sql.pandas.serializers,
    pyspark.worker,
)

if __name__ == "__main__":
    manager()
