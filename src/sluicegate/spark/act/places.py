"""A batch in k tasks: which key groups each takes, and the host or the one executor it should run on.

The rule by which Spark forms the k tasks of a coalesced batch may be given; ``sluicegate.Places`` in our jar is ours. A
host, or an executor ("executor_HOST_ID", as Spark writes it), is a preference: where it has no free slot for
``spark.locality.wait``, or is gone, Spark runs the task elsewhere.
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
    """The batch in ``k`` tasks on ``hosts``, taken in turn; Spark chooses what is not said.

    ``groups`` are those of a stateful operator: they go to the tasks that are ``planned``.
    """
    if not hosts and groups is None:
        return batch.coalesce(k)
    jvm: Any = batch.sparkSession.sparkContext._jvm
    owners = list(groups.owners(k, planned)) if groups is not None else []
    times = groups.times(batch.sparkSession) if groups is not None else None
    wanted = list(islice(cycle(hosts), k)) if hosts else []
    return DataFrame(jvm.sluicegate.Places.on(batch._jdf, k, wanted, owners, times), batch.sparkSession)
