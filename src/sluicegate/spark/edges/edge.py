"""The interface of an edge to its writer, readers and observers, independent of where its rows are stored.

An edge is a chain of manifests in a folder, one for each batch of its writer; a manifest names the rows of its batch.
Only what a manifest names is on the edge, and it appears by one rename: that makes delivery exactly once, for files and
for records of a topic alike. ``topic`` says where the rows are: ``None`` for Parquet files beside the manifests.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from sluicegate.domain.births import Births
from sluicegate.spark.edges.manifest import DataFile, Manifest
from sluicegate.spark.edges.topic import KafkaTopic


class DurableEdge(Protocol):
    """One process writes; any number may read."""

    @property
    def folder(self) -> Path: ...

    @property
    def topic(self) -> KafkaTopic | None: ...

    @property
    def schema_json(self) -> str: ...

    def create(self, schema_json: str) -> None:
        """Create the edge, or check that an existing one has the same columns, in the same place."""

    def publish(
        self, number: int, files: Iterable[DataFile], born: Births, at_s: float, watermark_ms: int | None = None
    ) -> Manifest:
        """Put a batch on the edge; one that is already published stays unchanged."""

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
        """Delete manifests before ``until``, which every reader has committed; returns how many."""

    def sweep(self, needed: Container[str] = ()) -> int:
        """Delete data that no manifest names; returns how much."""
