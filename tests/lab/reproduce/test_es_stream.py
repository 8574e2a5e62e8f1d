from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.config.topology_file import read_topology
from sluicegate.domain import Placement, Topology, Vm
from sluicegate.lab.reproduce import es_stream, es_stream_scaling
from sluicegate.lab.reproduce.es_stream import highest
from sluicegate.lab.reproduce.es_stream_apps import APPS, COMMODITY_COUNT, TOP_N, PaperApp
from sluicegate.lab.reproduce.es_stream_latency import against, by_hand, crossings
from sluicegate.lab.reproduce.es_stream_scaling import followed, nodes, planned

EXAMPLES = Path(__file__).parents[3] / "examples"
BY_NAME = pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)


def silent(what: str) -> None:
    assert what


@pytest.mark.parametrize("topology", [COMMODITY_COUNT, TOP_N], ids=lambda topology: topology.name)
def test_the_applications_are_those_of_the_example_files(topology: Topology) -> None:
    example = read_topology(EXAMPLES / f"{topology.name}.toml")
    assert example.operators == topology.operators
    assert example.edges == topology.edges


@BY_NAME
def test_planned_instances_follow_the_rate(app: PaperApp) -> None:
    assert planned(app).holds


def test_counts_that_differ_from_the_papers_do_not_hold() -> None:
    assert planned(PaperApp("other", COMMODITY_COUNT, (14, 24, 20), 15_000.0)).holds is False


def test_instances_follow_a_simulated_rate_and_no_row_is_lost() -> None:
    row = followed(APPS[0], seed=2)
    assert row.holds
    assert "0 rows lost" in row.ours


@BY_NAME
def test_nodes_follow_the_rate(app: PaperApp) -> None:
    assert nodes(app).holds


@BY_NAME
def test_the_highest_rate_is_the_papers_and_drs_holds_as_much(app: PaperApp) -> None:
    reached, against_others = highest(app)
    assert reached.holds
    assert against_others.holds is False


def test_what_is_set_by_hand_keeps_up_and_uses_all() -> None:
    counts = by_hand(TOP_N, 2700.0, 23)
    assert sum(counts.values()) == 23
    assert all(counts[o.name] * o.service_per_s > 2700.0 for o in TOP_N.operators)


def test_rows_on_one_node_never_cross_and_on_two_always() -> None:
    chain = COMMODITY_COUNT
    one = Placement((Vm("n1", 4),), {"n1/1": (("reader", 1),), "n1/2": (("count", 1),), "n1/3": (("report", 1),)})
    two = {"n1/1": (("reader", 1),), "n2/1": (("count", 2),), "n1/2": (("report", 1),)}
    assert crossings(chain, one) == 0
    assert crossings(chain, Placement((Vm("n1", 2), Vm("n2", 1)), two)) == 2


def test_es_stream_is_never_faster_than_drs_on_as_many_processors() -> None:
    _, first, before_network, _ = against("COMMCount", COMMODITY_COUNT, 1800.0, "2.1, 6.4, 4.5, 2.9", 60.0)
    assert before_network.holds is False
    assert "less than" in first.ours or "at any time" in first.ours


def test_state_moves_sooner_to_more_instances_and_repair_grows_with_the_interval() -> None:
    fails = [row.what for row in es_stream_scaling.state_rows(silent) if row.holds is False]
    assert fails == ["Fig 20: the time stays at its floor"]


@pytest.mark.slow
def test_what_comes_out_of_the_paper_and_what_does_not() -> None:
    told: list[str] = []
    found = list(es_stream.rows(told.append))
    assert told
    assert all(row.what and row.paper and row.ours and row.note for row in found)
    assert all("Holds" in row.note for row in found if row.holds is not None), "each says how near it has to come"
    assert [row.what for row in found if row.holds is False] == [
        "Fig 1, 2: best instances found by trial",
        "Fig 9 COMMCount at 1,800 rows/s: Es-Stream before DRS before R-Storm before Even",
        "Fig 9 COMMCount: Es-Stream is faster than DRS before any network",
        "Fig 9 COMMCount: Even is 2 to 3 times slower than Es-Stream",
        "Fig 10 Top_N at 2,700 rows/s: Es-Stream before DRS before R-Storm before Even",
        "Fig 10 Top_N: Es-Stream is faster than DRS before any network",
        "Fig 10 Top_N: Even is 2 to 3 times slower than Es-Stream",
        "Fig 13 COMMCount: Es-Stream holds more than EvenScheduler, R-Storm and DRS",
        "Fig 13 Top_N: Es-Stream holds more than EvenScheduler, R-Storm and DRS",
        "Fig 20: the time stays at its floor",
    ]
    assert [row.what for row in found if row.holds is None] == [
        "Fig 9 COMMCount: none is faster than Es-Stream, Even is the slowest",
        "Fig 10 Top_N: none is faster than Es-Stream, Even is the slowest",
        "Fig 20: counters 9 -> 15 under 1,800 rows/s, 42 MB of state, simulated",
    ]
