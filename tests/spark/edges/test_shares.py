from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.spark.edges.shares import LARGE_ROWS, cut

SIZES = st.lists(st.integers(0, 300), max_size=8)


def named(sizes: list[int]) -> list[tuple[str, int]]:
    return [(f"file{index}", rows) for index, rows in enumerate(sizes)]


@given(SIZES, st.integers(-2, 12), st.lists(st.floats(allow_nan=True), max_size=12))
def test_every_row_is_in_exactly_one_share_whatever_shares_are_asked_for(
    sizes: list[int], k: int, shares: list[float]
) -> None:
    files = named(sizes)
    taken = [(s.path, row) for share in cut(files, k, shares) for s in share for row in range(s.first, s.end)]
    assert taken == [(path, row) for path, rows in files for row in range(rows)]


@given(SIZES, st.integers(1, 12), st.lists(st.floats(0, 10), max_size=12))
def test_no_share_is_empty_and_there_are_at_most_k(sizes: list[int], k: int, shares: list[float]) -> None:
    found = cut(named(sizes), k, shares)
    assert len(found) <= k
    assert all(s.end > s.first for share in found for s in share)
    assert all(found)


@given(st.integers(0, 5000), st.lists(st.integers(1, 100), min_size=1, max_size=10))
def test_shares_are_in_proportion_to_what_is_asked_within_a_row(rows: int, weights: list[int]) -> None:
    found = cut([("file", rows)], len(weights), [float(w) for w in weights])
    if len(found) == len(weights):
        for share, weight in zip(found, weights, strict=True):
            assert abs(sum(s.end - s.first for s in share) - rows * weight / sum(weights)) <= 1 + 1e-6


@given(st.integers(1, 10_000), st.integers(1, 40))
def test_without_shares_the_largest_has_at_most_a_row_more_than_the_smallest(rows: int, k: int) -> None:
    sizes = [sum(s.end - s.first for s in share) for share in cut([("file", rows)], k)]
    assert len(sizes) == min(k, rows)
    assert max(sizes) - min(sizes) <= 1


def test_an_instance_that_may_take_nothing_gets_no_task() -> None:
    found = cut([("file", 10)], 3, [1.0, 0.0, 1.0])
    assert [sum(s.end - s.first for s in share) for share in found] == [5, 5]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 4), st.integers(1, 30_000))
def test_cutting_at_groups_loses_no_row_and_moves_a_border_little(groups: list[int], k: int, odd: int) -> None:
    layout = {f"file{i}": [30_000] * n + [odd] for i, n in enumerate(groups)}
    files = [(path, sum(rows)) for path, rows in layout.items()]
    shares = cut(files, k, groups=layout.__getitem__)
    at = dict.fromkeys(layout, 0)
    for piece in (piece for share in shares for piece in share):
        assert piece.first == at[piece.path]
        at[piece.path] = piece.end
    assert at == dict(files)
    sizes = [sum(s.end - s.first for s in share) for share in shares]
    assert max(sizes) <= 1.13 * sum(sizes) / k + 1


def test_large_shares_end_where_a_group_ends() -> None:
    def groups(path: str) -> list[int]:
        return [LARGE_ROWS - 1000, LARGE_ROWS + 1000]

    assert [share[0].end for share in cut([("a", 2 * LARGE_ROWS)], 2, groups=groups)] == [49_000, 100_000]
