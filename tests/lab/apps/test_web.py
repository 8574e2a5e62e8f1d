"""The applications on web logs, user behaviour and tweets: what they are fed, and what they ask of the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.config.topology_file import read_topology
from sluicegate.errors import BadInput
from sluicegate.lab.apps import (
    commodity_count,
    data_clean,
    grep,
    hashtags,
    page_view,
    rolling_count,
    unique_visitor,
)
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.apps.inputs import texts, user_behaviour, web_log
from sluicegate.lab.apps.inputs.user_behaviour import lines_in_csv
from sluicegate.lab.apps.judging import Told, judged
from sluicegate.lab.apps.sliding import Sliding, later_each_round
from sluicegate.lab.running.app import App
from sluicegate.lab.running.given import cycled, lines_in

BEHAVIOUR = "user_id,item_id,category_id,behavior,unix_ts\n1,2,3,pv,1511658000\n4,5,6,buy,1511658007\n"
ACCESS = "1.2.3.4 - - 17/05/2015:10:05:03 +0000 GET /a?b\n1.2.3.4 - - 17/05/2015:10:05:04 +0000 POST /a\n"
TWEETS = "timestamp_local,text\n2015-02-16T23:36:00,so late #Fail\n2015-02-16T23:37:00,no tag\n"
Expected = Callable[[Path], Mapping[object, int]]
FOUND: dict[str, tuple[str, Expected, dict[object, int]]] = {
    "commodity_count": (BEHAVIOUR, lambda path: commodity_count.expected(4, cycled(lines_in_csv(path))), {"2": 2}),
    "grep": (
        "see http://a.b\nHELP me\n",
        lambda path: grep.expected(3, cycled(lines_in(path))),
        {"link": 2, "shout": 1},
    ),
    "unique_visitor": (ACCESS, lambda path: unique_visitor.expected(4, cycled(web_log.log_in(path))), {"/a": 1}),
    "page_view": (ACCESS, lambda path: page_view.expected(4, cycled(web_log.log_in(path)))[0], {"/a": 2}),
    "data_clean": (
        BEHAVIOUR,
        lambda path: data_clean.expected(3, cycled(lines_in_csv(path))),
        {
            ("clean", "1,2,3,pv,1511658000", 1, 2, 3, "pv", 1511658000, ""): 2,
            ("clean", "4,5,6,buy,1511658007", 4, 5, 6, "buy", 1511658007, ""): 1,
        },
    ),
    "hashtags": (
        TWEETS,
        lambda path: hashtags.expected(2, later_each_round(hashtags.in_csv(path))),
        {(start_s, "fail"): 1 for start_s in range(1424126400, 1424130000, 300)},
    ),
}

counts = st.dictionaries(st.integers(0, 9), st.integers(1, 20), min_size=1)


def log_of(expected: dict[object, int]) -> dict[object, Told]:
    return {key: Told(n, n, n) for key, n in expected.items()}


@given(counts, st.data())
def test_a_count_that_is_lost_doubled_or_wrong_is_noticed(expected: dict[object, int], data: st.DataObject) -> None:
    right = log_of(expected)
    key = data.draw(st.sampled_from(sorted(expected, key=str)))
    last = expected[key]
    without = {other: told for other, told in right.items() if other != key}
    assert judged(expected, right).exact
    assert judged(expected, without).lost == last
    assert judged(expected, {**right, key: Told(last - 1, last - 1, last - 1)}).lost == 1
    assert judged(expected, {**right, key: Told(last + 1, last + 1, last + 1)}).duplicated == 1
    assert judged(expected, {**right, key: Told(last, last + 1, last)}).duplicated == 1
    assert not judged(expected, {**right, "nobody": Told(1, 1, 1)}).exact


@given(st.integers(0, 10**10), st.integers(1, 12), st.integers(1, 500))
def test_a_moment_is_in_exactly_the_windows_that_contain_it(at_s: int, overlaps: int, step_s: int) -> None:
    windows = Sliding(length_s=overlaps * step_s, step_s=step_s, late_s=0)
    starts = list(windows.starts_of(at_s))
    assert len(starts) == overlaps
    assert all(start % step_s == 0 and start <= at_s < start + windows.length_s for start in starts)


@given(st.lists(st.tuples(st.integers(0, 1000), st.text(max_size=3)), min_size=1, max_size=20), st.integers(1, 60))
def test_a_file_that_begins_again_never_goes_back_in_time(events: list[tuple[int, str]], count: int) -> None:
    times = [at_s for at_s, _ in later_each_round(events)(0, count)]
    assert times == sorted(times)


@given(st.integers(0, 10**7))
def test_no_event_is_later_than_the_watermarks_allow(first: int) -> None:
    lines = [int(line.rpartition(",")[2]) for line in user_behaviour.lines_of(first, 300)]
    tweeted = [at_s for at_s, _ in hashtags.tweets_of(first, 300)]
    for times, windows in ((lines, rolling_count.WINDOWS), (tweeted, hashtags.WINDOWS)):
        assert all(at_s >= max(times[: n + 1]) - windows.late_s for n, at_s in enumerate(times))


@pytest.mark.parametrize("total", [1, 3000])
def test_views_by_page_and_by_minute_are_the_same_views(total: int) -> None:
    by_page, by_minute = page_view.expected(total)
    seen = sum(1 for line in web_log.lines_of(0, total) if web_log.view_in(line))
    assert sum(by_page.values()) == sum(by_minute.values()) == seen


def test_a_page_has_at_most_as_many_visitors_as_views_and_the_first_ones_have_fewer() -> None:
    visitors, (views, _) = unique_visitor.expected(5000), page_view.expected(5000)
    assert visitors.keys() == views.keys()
    assert all(visitors[page] <= views[page] for page in views)
    most = max(views, key=lambda page: views[page])
    assert visitors[most] < views[most]


def test_generated_lines_are_as_skewed_and_as_long_as_real_ones() -> None:
    fields = [line.split(",") for line in user_behaviour.lines_of(0, 20_000)]
    assert 0.88 < sum(one[3] == "pv" for one in fields) / len(fields) < 0.91
    categories = Counter(one[2] for one in fields).most_common()
    assert categories[0][1] > 50 * categories[len(categories) // 2][1]
    tweets = texts.texts_of(0, 5000)
    assert 55 < sum(map(len, tweets)) / len(tweets) < 85
    assert 0.2 < sum("#" in tweet for tweet in tweets) / len(tweets) < 0.3


def test_one_line_in_five_is_dirty_and_half_of_these_are_rejected_for_every_reason_there_is() -> None:
    whole, dirty = user_behaviour.lines_of(0, 10_000), user_behaviour.dirty_lines_of(0, 10_000)
    reasons = Counter(data_clean.cleaned(line)[-1] for line in dirty)
    assert 0.17 < sum(a != b for a, b in zip(whole, dirty, strict=True)) / 10_000 < 0.23
    assert 0.08 < 1 - reasons[""] / 10_000 < 0.12
    assert set(reasons) == {"", "torn", "no number", "unknown behaviour", "out of time"}


@given(st.integers(0, 10**6), st.integers(0, 4))
def test_what_can_be_repaired_is_the_record_that_it_was(number: int, how: int) -> None:
    (line,) = user_behaviour.lines_of(number, 1)
    before, after = data_clean.cleaned(line), data_clean.cleaned(user_behaviour.spoilt(line, how))
    kept = slice(1, None) if how != 3 else slice(4, None)
    assert after[kept] == before[kept]
    assert after[-1] == ""


@pytest.mark.parametrize("name", FOUND)
def test_a_real_file_is_read_over_and_over_and_its_answer_is_known(name: str, tmp_path: Path) -> None:
    text, expected, wanted = FOUND[name]
    path = tmp_path / "input"
    path.write_text(text)
    assert expected(path) == wanted
    app = app_named(name)
    assert app.given is not None
    rows = app.given(path).rows
    assert rows is not None
    (source,) = app.build().sources
    assert rows(source, 0, 5).num_rows == 5


def test_windows_of_a_file_that_begins_again_go_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(BEHAVIOUR)
    assert rolling_count.APP.given is not None
    made = rolling_count.APP.given(path).rows
    assert made is not None
    lines = made("events", 0, 3).column("line").to_pylist()
    assert lines == ["1,2,3,pv,1511658000", "4,5,6,buy,1511658007", "1,2,3,pv,1511658008"]
    assert rolling_count.expected(3, cycled([str(line) for line in lines]))[1511658000, "3"] == 2


@pytest.mark.parametrize(
    ("app", "text", "problem"),
    [
        (commodity_count.APP, "a,b\n1,2\n", "no column 'user_id'"),
        (rolling_count.APP, BEHAVIOUR + "1,2,3,pv,soon\n", "must be whole seconds"),
        (page_view.APP, "hello\n", "no web log"),
        (unique_visitor.APP, "", "is empty"),
        (hashtags.APP, "timestamp_local,text\nyesterday,hello\n", "must be as 2015-02-16T23:36:00"),
    ],
    ids=lambda one: one.name if isinstance(one, App) else "",
)
def test_a_file_of_another_kind_is_refused_with_what_is_needed(
    app: App, text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "input"
    path.write_text(text)
    assert app.given is not None
    with pytest.raises(BadInput, match=problem):
        app.given(path)


@pytest.mark.parametrize("name", ["rolling_count", *FOUND])
def test_the_topology_file_of_an_application_has_its_operators_and_knows_which_keep_state(name: str) -> None:
    topology = read_topology(Path(__file__).parents[3] / "examples" / f"{name}.toml")
    steps = app_named(name).build().steps
    assert {one.name: one.stateful for one in topology.operators} == {n: step.stateful for n, step in steps.items()}
