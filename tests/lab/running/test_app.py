from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.lab.apps import fpd, top_n
from sluicegate.lab.apps.catalogue import APPS, LISTED, app_named
from sluicegate.lab.running.app import App, compare
from sluicegate.lab.running.load import from_file, triples

SOURCES = [(app, source) for app in APPS.values() for source, made in app.build().sources.items() if not made.stream]


def made(app: App, source: str, first: int, count: int) -> pa.Table:
    assert app.rows is not None
    return app.rows(source, first, count)


@pytest.mark.parametrize(("app", "source"), SOURCES, ids=lambda one: one if isinstance(one, str) else one.name)
@given(first=st.integers(0, 10**7), cut=st.integers(0, 60))
def test_a_row_depends_on_its_number_alone(app: App, source: str, first: int, cut: int) -> None:
    whole = made(app, source, first, 60)
    parts = [made(app, source, first, cut), made(app, source, first + cut, 60 - cut)]
    assert whole.to_pylist() == [row for part in parts for row in part.to_pylist()]
    assert {part.schema for part in parts if part.num_rows} == {whole.schema}


@pytest.mark.parametrize("app", APPS.values(), ids=lambda app: app.name)
def test_every_application_of_the_catalogue_is_a_pipeline_that_can_run(app: App) -> None:
    app.build().check()
    assert app.about
    assert app.check is not None
    assert app_named(app.name) is app
    listed = LISTED[app.name]
    assert (listed.about, listed.paper, listed.slo, listed.calm_per_s) == (
        app.about,
        app.paper,
        app.slo,
        app.calm_per_s,
    )


def test_a_name_that_is_almost_right_is_told_what_was_meant() -> None:
    with pytest.raises(BadInput, match="did you mean 'wordcount'"):
        app_named("word_count")


def test_equal_counts_are_exact() -> None:
    assert compare({"a": 2, "b": 1}, {"b": 1, "a": 2}, rows_out=3).exact
    assert compare({}, {}, rows_out=0).exact


def test_a_key_that_nobody_expected_counts_as_duplicated() -> None:
    answer = compare({"a": 1}, {"a": 1, "b": 4}, rows_out=5)
    assert (answer.exact, answer.lost, answer.duplicated, answer.note) == (False, 0, 4, "'b': 4 instead of 0")


@given(
    st.dictionaries(st.integers(0, 9), st.integers(1, 50)),
    st.dictionaries(st.integers(0, 9), st.integers(1, 50)),
)
def test_what_is_found_is_what_was_expected_less_the_lost_plus_the_duplicated(
    expected: dict[object, int], found: dict[object, int]
) -> None:
    answer = compare(expected, found, rows_out=0)
    assert sum(found.values()) == sum(expected.values()) - answer.lost + answer.duplicated
    assert answer.exact == (expected == found)
    assert bool(answer.note) != answer.exact


@given(st.floats(0.0, 1.0), st.floats(1.0, 1e5))
def test_the_load_that_triples_stays_between_once_and_thrice(share: float, calm: float) -> None:
    assert calm <= triples(calm)(share) <= 3 * calm * (1 + 1e-12)


def test_the_load_that_triples_begins_and_ends_calm() -> None:
    load = triples(100.0)
    assert [load(share) for share in (0.0, 0.1, 0.2, 0.8, 0.9, 1.0)] == [100.0] * 6
    assert load(0.5) == 300.0


def test_a_trace_is_stretched_over_the_run_and_scaled_to_its_mean(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("minute,rate\n" + "".join(f"{at},{value}\n" for at, value in enumerate((10, 20, 30, 20))))
    load = from_file(trace, calm_per_s=100.0)
    assert [load(share) for share in (0.0, 1 / 3, 0.5, 2 / 3, 1.0)] == pytest.approx([75, 150, 187.5, 225, 150])


def test_a_trace_without_load_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("minute,rate\n0,0\n1,0\n2,0\n")
    with pytest.raises(BadInput, match="all rates are zero"):
        from_file(trace, calm_per_s=100.0)


def test_the_expected_top_is_what_the_lines_themselves_say() -> None:
    bought: Counter[str] = Counter()
    for line in made(top_n.APP, "events", 0, 3000).column("line").to_pylist():
        try:
            event = json.loads(str(line))
        except json.JSONDecodeError:
            continue
        bought.update([event["item"].strip().lower()] if event["action"] == "buy" else [])
    best = sorted(bought.items(), key=lambda one: (-one[1], one[0]))[: top_n.N]
    assert list(top_n.expected(3000).items()) == best


@given(st.lists(st.integers(0, 14), max_size=120), st.data())
def test_the_top_is_the_same_however_the_updates_are_cut_into_batches_and_buckets(
    items: list[int], data: st.DataObject
) -> None:
    counts: Counter[str] = Counter()
    buckets: dict[int, dict[str, int]] = {}
    merged: dict[str, int] = {}
    for item in items:
        counts[f"i{item}"] += 1
        if data.draw(st.booleans()):  # else this update is overtaken by the next, as within one batch
            bucket = item % 3
            buckets[bucket] = top_n.led(buckets.get(bucket, {}), [(f"i{item}", counts[f"i{item}"])], most=4)
            merged = top_n.led(merged, buckets[bucket].items(), most=4)
    for name, bought in counts.items():
        merged = top_n.led(merged, top_n.led(buckets.get(int(name[1:]) % 3, {}), [(name, bought)], most=4).items(), 4)
    assert merged == top_n.led({}, counts.items(), most=4)


def test_a_pattern_within_a_larger_frequent_one_is_not_maximal() -> None:
    often, seldom = ["a b c"] * fpd.THRESHOLD, ["c d"] * (fpd.THRESHOLD - 1)
    assert fpd.maximal_in([*often, *seldom]) == {"a b c"}
    assert fpd.maximal_in([*often, *seldom, "d"]) == {"a b c", "d"}
    assert fpd.maximal_in(seldom) == set()


def test_what_leaves_the_window_is_what_entered_it_a_window_ago() -> None:
    entered = made(fpd.APP, "entering", 0, 100).column("items").to_pylist()
    left = made(fpd.APP, "leaving", 0, fpd.WINDOW + 100).column("items").to_pylist()
    assert left == [""] * fpd.WINDOW + entered


def test_patterns_of_several_items_come_and_go_in_the_window() -> None:
    seen = [fpd.maximal_in(fpd.transactions_of(first, fpd.WINDOW)) for first in range(0, 6 * fpd.WINDOW, fpd.WINDOW)]
    assert all(any(" " in pattern for pattern in window) for window in seen)
    assert all(before - after and after - before for before, after in pairwise(seen))
