"""A batch in k tasks, each with the host it should run on.

The tasks of a coalesced batch may have preferred locations: ``headgate.Places`` in our jar is the rule by which Spark
forms the k tasks, and names a host for each. It is a preference: where a host has no free slot for
``spark.locality.wait``, or is gone, Spark runs the task elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from pyspark.sql import DataFrame


def in_tasks(batch: DataFrame, k: int, hosts: Sequence[str] = ()) -> DataFrame:
    """The batch in ``k`` tasks on ``hosts``, taken in turn; where none is named, Spark chooses."""
    if not hosts:
        return batch.coalesce(k)
    jvm: Any = batch.sparkSession.sparkContext._jvm
    return DataFrame(jvm.headgate.Places.on(batch._jdf, list(islice(cycle(hosts), k))), batch.sparkSession)
