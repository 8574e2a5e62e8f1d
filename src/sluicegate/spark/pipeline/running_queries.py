"""The Spark queries of a running pipeline: starts and stops them, finds those that are between two batches."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Mapping
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate.errors import SluicegateError
from sluicegate.spark.edges.offsets import between_batches, last_batch
from sluicegate.spark.pipeline.queries import Prepared, start_query
from sluicegate.spark.pipeline.stable import STABLE_S

_LETS_GO_WITHIN_S = 30.0
"""How long Spark may take to stop a query. Code in the driver that hangs (a sink's ``write``) is never interrupted."""


class RunningQueries:
    """The query of each operator that was started, by the operator's name."""

    def __init__(self, pipeline: str, spark: SparkSession, prepared: Mapping[str, Prepared]) -> None:
        self._pipeline, self._spark, self._prepared = pipeline, spark, prepared
        self._queries: dict[str, StreamingQuery] = {}

    def __getitem__(self, name: str) -> StreamingQuery:
        return self._queries[name]

    def get(self, name: str) -> StreamingQuery | None:
        """The query of an operator as it runs now; ``None`` before its first start."""
        return self._queries.get(name)

    def start(self, name: str) -> None:
        self._queries[name] = start_query(self._spark, self._prepared[name], f"{self._pipeline}.{name}")

    def stop(self, name: str) -> None:
        self._queries[name].stop()

    def stop_all(self) -> list[str]:
        """Stop all queries; those that hang in the user's code are given up and returned: they publish nothing more."""
        until = time.monotonic() + _LETS_GO_WITHIN_S
        stopping = {
            name: threading.Thread(target=_stopped, args=(q,), daemon=True) for name, q in self._queries.items()
        }
        for thread in stopping.values():
            thread.start()
        given_up = []
        for name, thread in stopping.items():
            thread.join(max(until - time.monotonic(), 0.0))
            if thread.is_alive():
                self._prepared[name].writer.check_folder = partial(_refuse_late, name)
                given_up.append(name)
        return given_up

    def one_has_ended(self, known: Collection[str]) -> bool:
        """Whether a query has ended by itself that is not among the ``known`` ones."""
        return any(not query.isActive for name, query in list(self._queries.items()) if name not in known)

    def initializes(self, name: str) -> bool:
        """Whether a query was started and has not planned its first batch yet."""
        query = self._queries[name]
        return query.isActive and "Initializing" in query.status["message"]

    def between_batches(self) -> bool:
        """Whether no query runs a batch or initializes."""
        return all(self._settled(name) for name in self._queries)

    def rests(self, name: str) -> bool:
        """Whether an operator is between two batches and stays so for ``STABLE_S``."""
        before = self._last_batch(name)
        if not self._settled(name):
            time.sleep(0.05)
            return False
        time.sleep(STABLE_S)
        return self._settled(name) and self._last_batch(name) == before

    def last_batches(self) -> list[int | None]:
        """The number of each operator's last batch: changes whenever a batch starts."""
        return [self._last_batch(name) for name in self._prepared]

    def _last_batch(self, name: str) -> int | None:
        return last_batch(self._prepared[name].writer.checkpoint)

    def _settled(self, name: str) -> bool:
        """Whether a query is between batches and not initializing; one that has ended counts as settled."""
        try:
            writer = self._prepared[name].writer
            settled = between_batches(writer.checkpoint) and not writer.another_is_due()
            return not self._queries[name].isActive or (settled and not self.initializes(name))
        except (Py4JError, OSError):  # Spark itself is gone
            return True


def _stopped(query: StreamingQuery) -> None:
    with contextlib.suppress(PySparkException, Py4JError, OSError):  # Spark itself may be gone
        query.stop()


def _refuse_late(name: str) -> None:
    raise SluicegateError(f"operator {name!r} was stopped before this batch ended: nothing of it is published")
