from __future__ import annotations

import pytest

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.lab.simulate import Behaviour, shuffle, trace, weighted
from sluicegate.lab.simulate.scenario import scenario
from sluicegate.lab.simulate.simulation import offered_loads

LOOP = Topology(
    "t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b"), Edge("b", "a", 0.5))
)


def test_a_loop_offers_its_operators_what_comes_back_too() -> None:
    assert offered_loads(scenario(LOOP, 4.0, {"a": 1, "b": 2}), 60.0) == pytest.approx({"a": 0.8, "b": 0.8})


def test_a_trace_offers_its_mean() -> None:
    order = scenario(LOOP, trace(30.0, [2.0, 6.0]), {"a": 1, "b": 2})
    assert offered_loads(order, 60.0) == pytest.approx({"a": 0.8, "b": 0.8})


def test_the_busiest_instance_counts() -> None:
    even, skewed = (Behaviour(routing={"b": routing}) for routing in (shuffle(), weighted(4, 2, 1, 1)))
    loads = [offered_loads(scenario(LOOP, 4.0, {"a": 1, "b": 4}, behaviour=b), 60.0)["b"] for b in (even, skewed)]
    assert loads[0] == pytest.approx(0.4)
    assert loads[1] == pytest.approx(2 * loads[0])
