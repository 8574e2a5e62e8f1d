"""Es-Stream, stateful operators scaled in two dimensions: Fig 1 to 3, 9, 10, 13, 15 to 18, 20 and 21.

The paper gives no service rates, no beta and no thresholds: ours are stated where they are used. Not reproduced: Fig 4
(resources grow with instances, which is an input here), 11 and 12 (printed without numbers), 14 (starting point not
given), 19 (time grows with the size of the state, Eq 25 by its form).
"""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate.lab.reproduce import (
    es_stream_highest,
    es_stream_latency,
    es_stream_parallelism,
    es_stream_scaling,
    es_stream_state,
)
from sluicegate.lab.reproduce.row import Progress, Row


def rows(progress: Progress) -> Iterator[Row]:
    """Yield one row per claim, computed lazily."""
    figures = (es_stream_parallelism, es_stream_latency, es_stream_highest, es_stream_scaling, es_stream_state)
    for part in figures:
        yield from part.rows(progress)
