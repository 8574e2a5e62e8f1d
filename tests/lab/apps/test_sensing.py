"""Generators, answers and the arithmetic of the applications on images, sensors and positions, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.config.topology_file import read_topology
from sluicegate.errors import BadInput
from sluicegate.lab.apps import finance, flight_answer, flight_distances, grid, judging, traffic, vht, vld
from sluicegate.lab.apps.catalogue import APPS
from sluicegate.lab.apps.flight_distances import Track, metres_between
from sluicegate.lab.apps.inputs import flights, senml, taxis
from sluicegate.lab.apps.inputs.flights import fix, position, position_message
from sluicegate.lab.apps.inputs.video import LOGOS, frame, logo, shown_in
from sluicegate.lab.apps.turns import Queue
from sluicegate.lab.apps.vld import features_of, matches_by_formula, matches_by_logo
from sluicegate.lab.running.app import Answer

EXAMPLES = Path(__file__).parents[3] / "examples"
FED = {"trade_lines": 400, "quote_lines": 400}
HEARD = flights.messages(0, 400)
FIXES: list[Any] = flight_answer.all_fixes(HEARD)
PAIRS = flight_answer.all_pairs(FIXES, flight_distances.EVERY_S, flight_distances.NEAR_M)


def as_log(wanted: Mapping[object, tuple[int, object]]) -> list[Any]:
    return [(key, count, result) for key, (count, result) in wanted.items()]


JUDGED: Mapping[str, tuple[list[Any], Callable[[list[Any]], Answer]]] = {
    "vld": ([(number, vld.logos_in(frame(number))) for number in range(20)], partial(vld.judged, 20)),
    "vht": (list(vht.predictions_of(300)), partial(vht.judged, 300)),
    "finance": (list(finance.bargains_of(FED)), partial(finance.judged, FED)),
    "traffic": (
        as_log(traffic.speeds_of(100, taxis.trips)),
        partial(judging.judged_results, traffic.speeds_of(100, taxis.trips)),
    ),
    "grid": (
        as_log(grid.loads_of(500, senml.readings)),
        partial(judging.judged_results, grid.loads_of(500, senml.readings)),
    ),
    "flight_distances, flown": (
        FIXES,
        lambda told: flight_distances.judged_both(HEARD, told, as_log(PAIRS)),
    ),
    "flight_distances, near": (
        as_log(PAIRS),
        partial(flight_distances.judged_both, HEARD, FIXES),
    ),
}


@pytest.mark.parametrize("name", JUDGED)
def test_a_row_that_is_lost_doubled_or_wrong_is_noticed(name: str) -> None:
    told, judge = JUDGED[name]
    *key, result = told[-1]
    assert judge(told).exact
    assert judge(told[::-1]).exact
    assert judge(told[:-1]).lost > 0
    assert not judge([*told, told[-1]]).exact
    assert not judge([*told[:-1], (*key, f"not {result}")]).exact


@given(st.permutations(range(12)), st.lists(st.integers(1, 11)))
def test_turns_are_taken_in_order_however_events_are_shuffled_and_cut_into_batches(
    shuffled: list[int], cuts: list[int]
) -> None:
    taken, text, edges = list[Any](), "", sorted({0, 12, *cuts})
    for begin, end in pairwise(edges):
        queue = Queue.of(text)
        taken += queue.take([turn, f"event {turn}"] for turn in shuffled[begin:end])
        text = queue.text()
    assert taken == [[turn, f"event {turn}"] for turn in range(12)]
    assert Queue.of(text) == Queue(12)


def test_a_turn_that_comes_twice_is_not_hidden() -> None:
    queue = Queue()
    assert queue.take([[0], [0], [1]]) == [[0], [0], [1]]
    assert queue.take([[1], [3]]) == [[1]]
    assert queue == Queue(2, [[3]])


def test_most_logos_of_the_video_are_found_and_hardly_any_that_are_not_there() -> None:
    found = [(number, vld.logos_in(frame(number))) for number in range(0, 600, 10)]
    put_there = {(number, str(one.logo)) for number, _ in found for one in shown_in(number)}
    told = {(number, name) for number, logos in found for name in logos.split()}
    assert len({name for _, name in put_there}) > LOGOS / 2
    assert vld.recall_of(found) >= vld.RECALL
    assert len(told & put_there) >= 0.97 * len(told)


def test_a_video_in_which_too_little_is_found_is_not_accepted() -> None:
    assert "of the logos found" in vld.judged(0, [(number, "") for number in range(40)]).note


@pytest.mark.parametrize("number", range(0, 100, 20))
def test_features_are_whole_numbers_and_opencv_matches_them_as_the_formula_does(number: int) -> None:
    found = features_of(frame(number))
    assert np.array_equal(found, found.astype(np.uint8))
    assert np.array_equal(matches_by_logo(found), matches_by_formula(found))


def test_every_logo_is_most_like_itself() -> None:
    assert [int(matches_by_formula(features_of(logo(number) // 2 + 60)).argmax()) for number in range(LOGOS)] == list(
        range(LOGOS)
    )


def test_a_tree_predicts_better_than_the_more_frequent_label_does() -> None:
    told = vht.predictions_of(3000)[1000:]
    right = sum(label == predicted for _, _, label, predicted in told)
    paid = sum(label for _, _, label, _ in told)
    assert right > max(paid, len(told) - paid) + 0.2 * len(told)


def test_a_tree_that_is_put_aside_and_taken_up_again_goes_on_as_if_nothing_had_been() -> None:
    straight, resumed = vht.new_tree(), vht.new_tree()
    for _, _, _, figures, label in vht.applicants_of(0, 200):
        resumed = pickle.loads(pickle.dumps(resumed))
        assert vht.foretold(straight, figures, label) == vht.foretold(resumed, figures, label)


def test_the_messages_of_a_symbol_are_numbered_without_a_gap_over_both_sources() -> None:
    turns: dict[str, list[int]] = {}
    for source in FED:
        for symbol, event in finance.messages(source, 0, 1500):
            turns.setdefault(symbol, []).append(event[0])
    assert all(sorted(told) == list(range(len(told))) for told in turns.values())
    assert max(map(len, turns.values())) > 50 * min(map(len, turns.values()))


def test_only_the_last_trades_before_an_offer_set_its_price() -> None:
    old, new = [[turn, False, 500, 1] for turn in range(5)], [[5 + turn, False, 1000, 1] for turn in range(20)]
    assert finance.bargains_among([*old, *new, [25, True, 900, 3], [26, True, 1000, 3]], []) == [(25, 900, 3, 300)]


@given(st.lists(st.tuples(st.floats(0, 23_999), st.floats(0, 23_999)), min_size=1, max_size=20))
def test_the_road_found_around_a_position_is_the_nearest_of_all(places: list[tuple[float, float]]) -> None:
    at = np.array(places)
    assert taxis.on_the_map(at).all()
    assert np.array_equal(taxis.nearest(at), taxis.nearest_of_all(at))


def test_a_trip_without_position_time_or_distance_tells_of_no_road() -> None:
    whole = taxis.trips(8, 1)[0]
    speed = traffic.passages_of(whole)[0][1]
    assert len(traffic.passages_of(whole)) == 2
    assert 1_000 < speed < 20_000
    for torn in (whole[:200], whole.replace("trip_distance", "distance"), "", "1,null", "1,[]", '1,{"e":[1]}'):
        assert traffic.passages_of(torn) == []
    assert traffic.speeds_of(1, lambda first, count: taxis.trips(7, 1)) == {}


def test_a_plug_that_draws_too_much_is_told_and_a_broken_reading_is_not_counted() -> None:
    loads = [load for _, load in grid.loads_of(9_600, senml.readings).values()]
    assert any(load[1] for load in loads if isinstance(load, tuple))
    broken = [line for line in senml.readings(0, 600) if '"-1.000"' in line]
    assert 5 <= len(broken) <= 15
    assert {grid.reading_of(line) for line in broken} == {None}


@given(st.floats(-85, 85), st.floats(-179, 179), st.booleans())
def test_a_position_that_was_sent_is_read_again(lat: float, lon: float, odd_is_later: bool) -> None:
    even, odd = (position(position_message("4840D6", lat, lon, parity)) for parity in (False, True))
    assert even is not None
    assert odd is not None
    found = fix(even, odd, odd_is_later)
    assert found is None or metres_between(
        (round(found[0] * 1e6), round(found[1] * 1e6)), (round(lat * 1e6), round(lon * 1e6))
    ) == pytest.approx(0.0, abs=20.0)


@given(st.integers(0, 111))
def test_a_message_with_a_wrong_bit_tells_no_position(bit: int) -> None:
    sent = position_message("4840D6", 52.0, 4.0, odd=False)
    assert position(f"{int(sent, 16) ^ 1 << bit:028X}") is None
    assert position("not a message") is None


def test_aircraft_fly_as_far_as_their_speed_says() -> None:
    last = {fixed[0]: fixed for fixed in flight_answer.all_fixes(flights.messages(0, 6000))}
    often = [fixed for fixed in last.values() if fixed[1] > 60]
    per_s = [flown_m / (at_s - flights.messages(0, 1)[0].at_s) for _, _, at_s, _, _, flown_m in often]
    assert len(often) > 10
    assert all(150 < one < 270 for one in per_s)


def test_messages_of_a_file_go_on_when_it_ends_and_the_way_back_is_not_flown(tmp_path: Path) -> None:
    one = [heard for heard in flights.messages(0, 600) if heard.icao24 == HEARD[0].icao24]
    file = tmp_path / "heard.csv"
    file.write_text(
        "unix_ts,adsb_hex,icao24\n" + "".join(f"{heard.at_s},{heard.message},{heard.icao24}\n" for heard in one)
    )
    once, twice = (flight_answer.all_fixes(flights.heard_in(file)(0, n * len(one))) for n in (1, 2))
    assert [heard.turn for heard in flights.heard_in(file)(0, 2 * len(one))] == list(range(2 * len(one)))
    assert len(twice) == 2 * len(once)
    assert twice[-1][5] == 2 * once[-1][5] > 0


@pytest.mark.parametrize("name", ["traffic", "grid", "flight_distances"])
def test_a_file_of_another_kind_is_refused_with_what_is_needed(name: str, tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    read = APPS[name].given
    assert read is not None
    with pytest.raises(BadInput, match=r"other\.csv"):
        read(file)


@pytest.mark.parametrize("name", ["vld", "vht", "traffic", "finance", "grid", "flight_distances"])
def test_the_example_topology_is_that_of_the_application(name: str) -> None:
    topology, pipeline = read_topology(EXAMPLES / f"{name}.toml"), APPS[name].build()
    assert {one.name: one.stateful for one in topology.operators} == {
        step.name: step.stateful for step in pipeline.steps.values()
    }
    led_by = {(edge.origin.removeprefix("source:"), edge.target) for edge in topology.edges}
    sources = ["source"] if len(pipeline.sources) == 1 else list(pipeline.sources)
    names = dict(zip(pipeline.sources, sources, strict=True))
    assert led_by == {(names.get(one, one), step.name) for step in pipeline.steps.values() for one in step.inputs}


def test_flights_are_answered_by_other_code_than_the_operators_with_the_same_result() -> None:
    tracks: dict[str, Any] = {}
    own = [
        one
        for heard in flights.messages(0, 3000)
        for one in flight_distances.fixes_of(
            heard.icao24,
            [[heard.turn, heard.at_s, *flight_distances.within_zone(heard.message)]],
            tracks.setdefault(heard.icao24, Track({})),
        )
    ]
    assert own == flight_answer.all_fixes(flights.messages(0, 3000))
    times: dict[int, dict[str, list[int]]] = {}
    for icao24, turn, at_s, lat, lon, _ in own:
        since_s = at_s // flight_distances.EVERY_S * flight_distances.EVERY_S
        flight_distances.seen_at(times.setdefault(since_s, {}), icao24, [turn, lat, lon])
    wanted = flight_answer.all_pairs(own, flight_distances.EVERY_S, flight_distances.NEAR_M)
    assert {since_s: flight_distances.pairs_of(last) for since_s, last in times.items()} == wanted
    assert any(pairs for _, pairs in wanted.values())


@given(st.binary(min_size=14, max_size=14))
def test_both_readers_of_a_message_agree(message: bytes) -> None:
    one, other = position(message.hex()), flight_answer.shares_of(message.hex())
    assert (one is None) == (other is None)


@given(st.floats(-89.9, 89.9), st.floats(-179.9, 179.9), st.booleans())
def test_both_readers_find_the_same_place(lat: float, lon: float, odd: bool) -> None:
    even_one, odd_one = (position(position_message("4840D6", lat, lon, odd=one)) for one in (False, True))
    assert even_one is not None
    assert odd_one is not None
    found = fix(even_one, odd_one, odd)
    even, other_one = ((one.lat / 2**17, one.lon / 2**17) for one in (even_one, odd_one))
    other = flight_answer.place_of(even, other_one, int(odd))
    assert other == (None if found is None else (round(found[0] * 1e6), round(found[1] * 1e6)))


def test_finance_is_answered_by_other_code_than_the_operator_with_the_same_result() -> None:
    fed = {"trade_lines": 3000, "quote_lines": 2500}
    tapes: dict[str, list[Any]] = {}
    for source, count in fed.items():
        for symbol, event in finance.messages(source, 0, count):
            tapes.setdefault(symbol, []).append(event)
    own = [(s, *one) for s, events in tapes.items() for one in finance.bargains_among(Queue().take(events), [])]
    assert sorted(own) == sorted(finance.bargains_of(fed))
    assert len(own) > 50


@given(st.dictionaries(st.text("abc", min_size=1), st.tuples(st.integers(1, 9), st.integers(0, 9999)), min_size=1))
def test_grid_is_answered_by_other_code_than_the_operator_with_the_same_result(plugs: dict[str, Any]) -> None:
    sums = {plug: [readings, total] for plug, (readings, total) in plugs.items()}
    readings, load, outliers = grid.load_of(sums)
    assert grid._judged_load(sums) == (readings, (load, outliers))
