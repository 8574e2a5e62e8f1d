"""A total over operators: the pipeline carries most, by about as many steps as there are operators."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Edge, Limits, Operator, Topology
from sluicegate.model.traffic import visits
from sluicegate.policy.spread import spread


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[Topology, Limits]:
    n = draw(st.integers(1, 5))
    operators = tuple(Operator(f"o{i}", draw(st.floats(0.1, 1000))) for i in range(n))
    share = st.sampled_from([0.0, 0.3, 1.0, 4.0])
    edges = [Edge(f"o{draw(st.integers(0, i - 1))}", f"o{i}", draw(share)) for i in range(1, n)]
    most_of = {f"o{i}": draw(st.integers(1, 40)) for i in range(n) if draw(st.booleans())}
    topology = Topology("t", operators, (Edge("source", "o0"), *edges))
    return topology, Limits(least=draw(st.integers(1, 3)), most=draw(st.integers(3, 200)), most_of=most_of)


@given(pipelines(), st.integers(1, 400))
def test_each_processor_goes_to_the_operator_that_carries_least(case: tuple[Topology, Limits], total: int) -> None:
    topology, limits = case
    reach = visits(topology).tolist()
    carries = [o.service_per_s / v if v else float("inf") for o, v in zip(topology.operators, reach, strict=True)]
    count = [min(limits.least_for(name), limits.most_for(name)) for name in topology.names]
    for _ in range(total - sum(count)):
        room = [i for i, name in enumerate(topology.names) if count[i] < limits.most_for(name)]
        if room:
            count[min(room, key=lambda i: (count[i] * carries[i], i))] += 1
    assert spread(topology, total, limits) == dict(zip(topology.names, count, strict=True))


def test_millions_of_processors_are_spread_at_once_also_where_operators_are_at_their_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = list[int]()

    def counted(heap: list[tuple[float, int]], item: tuple[float, int]) -> tuple[float, int]:
        steps.append(1)
        return heapreplace(heap, item)

    heapreplace = heapq.heapreplace
    monkeypatch.setattr(heapq, "heapreplace", counted)
    operators = tuple(Operator(f"o{i}", 10.0 ** (i - 2)) for i in range(6))
    dry = Edge("o4", "o5", 0.0)
    edges = (Edge("source", "o0"), *(Edge(f"o{i}", f"o{i + 1}") for i in range(4)), dry)
    found = spread(Topology("t", operators, edges), 5_999_999)
    assert found == {**dict.fromkeys((o.name for o in operators), 1_000_000), "o5": 999_999}
    assert len(steps) <= 12
