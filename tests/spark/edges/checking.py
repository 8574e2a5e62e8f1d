"""All data files of an edge against their checksums."""

from __future__ import annotations

from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.file_sums import check_file


def check_data(edge: DurableEdge) -> int:
    """How many data files there are, once all of them were read and are as they were written."""
    files = [(manifest.number, file) for manifest in edge.whole() for file in manifest.files]
    for number, file in files:
        check_file(edge.folder, number, file)
    return len(files)
