from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain.births import Births
from sluicegate.spark.edges.manifest import DataFile, Manifest

FILES = st.lists(st.builds(DataFile, st.text(max_size=20), st.integers(0, 10**9)), max_size=5).map(tuple)
BORN = st.lists(st.tuples(st.integers(0, 2 * 10**9).map(float), st.integers(1, 10**6).map(float)), max_size=5)
MANIFESTS = st.builds(
    Manifest,
    st.integers(0, 10**11),
    FILES,
    st.integers(0, 10**12),
    BORN.map(lambda points: Births(tuple(points))),
    st.floats(0, 2e9),
)


@given(MANIFESTS)
def test_a_manifest_comes_back_as_it_was_written(manifest: Manifest) -> None:
    assert Manifest.from_json(manifest.to_json()) == manifest


@given(MANIFESTS)
def test_rows_after_are_the_rows_before_and_its_own(manifest: Manifest) -> None:
    assert manifest.rows_after == manifest.rows_before + sum(file.rows for file in manifest.files)
