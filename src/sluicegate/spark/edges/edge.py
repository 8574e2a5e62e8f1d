"""What every edge is to those who write, read and watch it, wherever its rows lie.

An edge is a chain of manifests, one for each batch of its writer, in a folder; a manifest names the rows of its batch.
Only what a manifest names is on the edge, and it appears by one rename: that makes it exactly once, for files and for
records of a topic alike. ``topic`` says where the rows are: ``None`` for Parquet files beside the manifests.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from sluicegate.domain.births import Births
from sluicegate.spark.edges.manifest import DataFile, Manifest
from sluicegate.spark.edges.topic import KafkaTopic


class Edge(Protocol):
    """Any number of processes may read; one writes."""

    @property
    def folder(self) -> Path: ...

    @property
    def topic(self) -> KafkaTopic | None: ...

    @property
    def schema_json(self) -> str: ...

    def create(self, schema_json: str) -> None:
        """Make the edge, or check that the one that is there carries the same columns, in the same place."""

    def publish(
        self, number: int, files: Iterable[DataFile], born: Births, at_s: float, watermark_ms: int | None = None
    ) -> Manifest:
        """Put a batch on the edge; one that is there already stays as it was published first."""

    def manifest(self, number: int) -> Manifest | None: ...

    def need(self, number: int) -> Manifest: ...

    def between(self, first: int, end: int) -> list[Manifest]: ...

    def present(self, number: int) -> Iterator[Manifest]: ...

    def since(self, number: int) -> Iterator[Manifest]: ...

    def whole(self) -> list[Manifest]: ...

    def newest(self) -> Manifest | None: ...

    def has(self, number: int) -> bool: ...

    def has_more(self, number: int) -> bool: ...

    def check_end(self, number: int) -> None: ...

    def serves(self, first: int) -> bool: ...

    def withdraw(self, number: int) -> None: ...

    def clean(self, until: int) -> int:
        """Delete what every reader has committed; how many manifests those were."""

    def sweep(self, needed: Container[str] = ()) -> int:
        """Remove data that no manifest names; how much that was."""
