"""Cuts a batch into k tasks, with the key groups and the preferred host or executor of each task.

Spark accepts a custom coalescer for a batch; ours is ``sluicegate.Places`` in the jar. A host, or an executor
("executor_HOST_ID" in Spark's notation), is a preference: if it is gone, or has no free slot for
``spark.locality.wait``, Spark runs the task elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from pyspark.sql import DataFrame

from sluicegate.spark.act.group_loads import GroupLoads


def in_tasks(
    batch: DataFrame,
    k: int,
    hosts: Sequence[str] = (),
    groups: GroupLoads | None = None,
    planned: Sequence[int] = (),
) -> DataFrame:
    """The batch in ``k`` tasks on ``hosts``, assigned round-robin; without hosts Spark chooses.

    ``groups`` are the key groups of a stateful operator, ``planned`` the task of each.
    """
    if not hosts and groups is None:
        return batch.coalesce(k)
    jvm: Any = batch.sparkSession.sparkContext._jvm
    owners = list(groups.owners(k, planned)) if groups is not None else []
    times = groups.times(batch.sparkSession) if groups is not None else None
    wanted = list(islice(cycle(hosts), k)) if hosts else []
    return DataFrame(jvm.sluicegate.Places.on(batch._jdf, k, wanted, owners, times), batch.sparkSession)
