from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluicegate.domain import (
    BatchCosts,
    Edge,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Situation,
    Sojourn,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.model.erlang import mean_sojourn_s
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.mc_stream import McStream, McStreamMemory, last_that
from sluicegate.policy.papers.mc_trial import InstanceTrial, Measurement
from sluicegate.policy.policy import Policy

POLICY: Policy[McStreamMemory | None] = McStream()


def top_n(*, stateful: bool = False) -> Topology:
    rates = {"reader": 1000.0, "count": 250.0, "rank": 500.0, "merge": 4000.0}
    names = list(rates)
    edges = [Edge("source", "reader"), *(Edge(a, b) for a, b in pairwise(names))]
    return Topology("top_n", tuple(Operator(n, r, stateful=stateful) for n, r in rates.items()), tuple(edges))


def seen(
    topology: Topology, rate: float, running: Mapping[str, int], queues: Mapping[str, tuple[float, ...]]
) -> Situation:
    operators = {name: OperatorObservation(instance_queues=lengths) for name, lengths in queues.items()}
    return replace(situation_at(topology, rate), observation=Observation(0.0, rate, running, operators))


def first_plan(topology: Topology, rate: float) -> tuple[McStreamMemory | None, dict[str, int]]:
    memory, proposal = POLICY.propose(None, situation_at(topology, rate))
    return memory, dict(proposal.processors)


def test_the_first_vertex_grows_until_one_more_gains_less_than_a_hundredth() -> None:
    _, running = first_plan(top_n(), 5000.0)
    m = running["reader"]
    here, before, after = (mean_sojourn_s(5000.0, 1000.0, k) for k in (m, m - 1, m + 1))
    assert here < before * 0.99
    assert after >= here * 0.99


def test_the_others_follow_in_proportion_to_their_demand() -> None:
    _, running = first_plan(top_n(), 5000.0)
    m = running["reader"]
    assert running == {"reader": m, "count": 4 * m, "rank": 2 * m, "merge": -(-m // 4)}


def test_a_stronger_node_needs_fewer_instances() -> None:
    _, proposal = McStream(capacity_of={"count": 2.0}).propose(None, situation_at(top_n(), 5000.0))
    assert proposal.processors["count"] == 2 * proposal.processors["reader"]


def test_no_rows_need_one_instance_each() -> None:
    _, proposal = POLICY.propose(POLICY.start(), situation_at(top_n(), 0.0))
    assert set(proposal.processors.values()) == {1}
    assert "no rows arrive" in proposal.reasons[0]


def test_a_first_vertex_without_rows_is_passed_over() -> None:
    edges = (Edge("source:a", "a"), Edge("source:b", "b"), Edge("a", "c"), Edge("b", "c"))
    topology = Topology("t", tuple(Operator(n, 10.0) for n in "abc"), edges, {"source:a": 0.0, "source:b": 1.0})
    _, proposal = POLICY.propose(None, situation_at(topology, 50.0))
    assert proposal.processors["a"] == 1
    assert proposal.processors["b"] == proposal.processors["c"] > 5


def test_micro_batches_stop_where_more_tasks_hurt() -> None:
    batch = BatchCosts(overhead_s=0.1, per_task_s=0.2)
    topology = Topology("t", (Operator("a", 100.0, batch=batch),), (Edge("source", "a"),))
    _, proposal = POLICY.propose(None, situation_at(topology, 150.0))
    assert proposal.processors["a"] == 3


def test_erratum_a_queue_out_of_bounds_updates_that_vertex_only() -> None:
    memory, running = first_plan(top_n(), 1000.0)
    queues = {name: (100.0,) * count for name, count in running.items()}
    queues["count"] = (900.0,) * running["count"]
    _, proposal = POLICY.propose(memory, seen(top_n(), 5000.0, running, queues))
    assert proposal.processors["count"] > running["count"]
    assert all(proposal.processors[name] == running[name] for name in running if name != "count")


def test_an_empty_queue_lets_instances_go() -> None:
    memory, running = first_plan(top_n(), 5000.0)
    queues = {name: (0.0,) * count for name, count in running.items()}
    _, proposal = POLICY.propose(memory, seen(top_n(), 1000.0, running, queues))
    assert all(proposal.processors[name] < running[name] for name in ("reader", "count", "rank"))


def test_what_really_runs_is_kept_while_its_queue_is_within_bounds() -> None:
    memory, running = first_plan(top_n(), 1000.0)
    running["rank"] += 3
    queues = {name: (50.0,) * count for name, count in running.items()}
    _, proposal = POLICY.propose(memory, seen(top_n(), 1000.0, running, queues))
    assert dict(proposal.processors) == running


def test_a_vertex_whose_queue_nobody_measured_follows_the_model() -> None:
    memory, running = first_plan(top_n(), 1000.0)
    _, proposal = POLICY.propose(memory, seen(top_n(), 5000.0, running, {}))
    assert dict(proposal.processors) == first_plan(top_n(), 5000.0)[1]


def test_the_queue_of_the_whole_vertex_stands_for_those_of_its_instances() -> None:
    memory, running = first_plan(top_n(), 1000.0)
    operators = {name: OperatorObservation(queue_rows=100.0 * count) for name, count in running.items()}
    situation = situation_at(top_n(), 5000.0)
    situation = replace(situation, observation=Observation(0.0, 5000.0, running, operators))
    _, proposal = POLICY.propose(memory, situation)
    assert dict(proposal.processors) == running
    assert not proposal.shares


def uneven(running: Mapping[str, int]) -> dict[str, tuple[float, ...]]:
    even = {name: (300.0,) * count for name, count in running.items()}
    return {**even, "count": (900.0, *(100.0,) * (running["count"] - 1))}


@pytest.mark.parametrize(("stateful", "how"), [(False, "row by row"), (True, "by moving key groups")])
def test_an_uneven_vertex_is_routed_by_free_places(stateful: bool, how: str) -> None:
    topology = top_n(stateful=stateful)
    memory, running = first_plan(topology, 200.0)
    running["count"] = 3
    memory, proposal = POLICY.propose(memory, seen(topology, 200.0, running, uneven(running)))
    assert proposal.shares["count"] == pytest.approx((124 / 1972, 924 / 1972, 924 / 1972))
    assert any(how in reason for reason in proposal.reasons)


def test_shares_stay_until_the_queues_ask_for_others_or_the_number_changes() -> None:
    memory, running = first_plan(top_n(), 200.0)
    running["count"] = 3
    memory, first = POLICY.propose(memory, seen(top_n(), 200.0, running, uneven(running)))
    even = {name: (300.0,) * count for name, count in running.items()}
    memory, later = POLICY.propose(memory, seen(top_n(), 200.0, running, even))
    assert later.shares == first.shares
    grown = {**running, "count": 4}
    even = {name: (300.0,) * count for name, count in grown.items()}
    _, after = POLICY.propose(memory, seen(top_n(), 200.0, grown, even))
    assert not after.shares


def test_a_budget_cuts_back_and_says_so() -> None:
    _, proposal = POLICY.propose(None, situation_at(top_n(), 5000.0, limits=Limits(budget=40)))
    assert (proposal.total, proposal.feasible) == (40, False)
    assert "the budget is 40" in proposal.reasons[-1]


rates = st.floats(0.5, 3000.0)


@settings(max_examples=60)
@given(st.lists(rates, min_size=1, max_size=5), st.floats(0, 5000), st.integers(5, 60), st.integers(1, 20))
@example([2.0], 5e-324, 5, 1)
def test_limits_are_always_kept(services: list[float], rate: float, budget: int, most: int) -> None:
    names = [f"op{i}" for i in range(len(services))]
    edges = [Edge("source", "op0"), *(Edge(a, b) for a, b in pairwise(names))]
    topology = Topology("t", tuple(map(Operator, names, services)), tuple(edges))
    limits = Limits(budget=budget, most=most)
    memory, proposal = POLICY.propose(None, situation_at(topology, rate, limits=limits))
    _, again = POLICY.propose(memory, situation_at(topology, 2 * rate, limits=limits))
    for one in (proposal, again):
        assert set(one.processors) == set(names)
        assert all(1 <= count <= most for count in one.processors.values())
        assert one.total <= budget


@settings(max_examples=60)
@given(st.lists(rates, min_size=1, max_size=5), st.floats(0.1, 5000))
def test_without_limits_every_vertex_keeps_up(services: list[float], rate: float) -> None:
    names = [f"op{i}" for i in range(len(services))]
    edges = [Edge("source", "op0"), *(Edge(a, b) for a, b in pairwise(names))]
    topology = Topology("t", tuple(map(Operator, names, services)), tuple(edges))
    _, proposal = POLICY.propose(None, situation_at(topology, rate))
    assert all(proposal.processors[o.name] * o.service_per_s > rate for o in topology.operators)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_steps_find_the_last_instance_that_improves(bound: int, most: int) -> None:
    looks = 0

    def counted(improves: Callable[[int], bool]) -> Callable[[int], bool]:
        def look(m: int) -> bool:
            nonlocal looks
            looks += 1
            return improves(m)

        return look

    assert last_that(counted(lambda m: m <= bound), most) == min(bound, most)
    assert looks <= 45


def test_a_rate_beyond_every_limit_ends_and_is_cut() -> None:
    topology = Topology("t", (Operator("a", 1e-9),), (Edge("source", "a"),))
    _, proposal = POLICY.propose(None, situation_at(topology, 1e15, limits=Limits(most=7)))
    assert (dict(proposal.processors), proposal.feasible) == ({"a": 7}, False)


def test_a_rate_beyond_the_search_is_not_feasible() -> None:
    topology = Topology("t", (Operator("a", 1.0),), (Edge("source", "a"),))
    _, proposal = POLICY.propose(None, situation_at(topology, 2e6))
    assert (proposal.total, proposal.feasible) == (1_000_000, False)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(BadInput, match="least_gain"):
        McStream(least_gain=0.0)
    with pytest.raises(BadInput, match="capacity"):
        McStream(capacity_of={"a": 0.0})


def test_by_trial_the_first_vertex_grows_until_neither_throughput_nor_latency_gains() -> None:
    """One reader carries 700 rows/s whatever the model believes, and 2,000 arrive."""
    policy, topology, running = McStream(trial_s=5.0), top_n(), dict.fromkeys(top_n().names, 1)
    memory, tried = policy.start(), list[int]()
    for tick in range(60):
        served = min(2000.0, 700.0 * running["reader"])
        observed = Observation(2.0 * tick, 2000.0, dict(running), sojourn=Sojourn(1.0), throughput_per_s=served)
        situation = replace(situation_at(topology, 2000.0), now_s=2.0 * tick, observation=observed)
        memory, proposal = policy.propose(memory, situation)
        if proposal.processors["reader"] != running["reader"]:
            tried.append(proposal.processors["reader"])
        running = dict(proposal.processors)
    assert tried == [2, 4, 8, 6, 5, 4]
    assert running["reader"] == 4
    assert running["count"] == 4 * running["reader"], "the others follow in proportion to their demand"
    assert memory is not None
    assert memory.trial is not None
    assert memory.trial.done


def test_another_load_that_lasts_begins_a_new_trial() -> None:
    done = InstanceTrial(4, 0.0, 4, Measurement(100.0, 100.0, 1.0), step=0)
    assert done.after(50.0, Measurement(110.0, 110.0, 1.0), 5.0, 0.01, 64)[0] == done
    seen_once, _ = done.after(50.0, Measurement(200.0, 150.0, 2.0), 5.0, 0.01, 64)
    assert seen_once.done
    assert seen_once.after(52.0, Measurement(100.0, 100.0, 1.0), 5.0, 0.01, 64)[0] == done
    anew, why = seen_once.after(52.5, Measurement(200.0, 150.0, 2.0), 5.0, 0.01, 64)
    assert (anew.m, anew.done) == (4, False)
    assert why == "the load is another: 4 instances are measured anew"


def test_less_load_begins_a_new_trial_from_its_part_of_the_instances() -> None:
    """Trials only raise: from the best number so far none would ever be given back."""
    done = InstanceTrial(8, 0.0, 8, Measurement(400.0, 400.0, 1.0), step=0)
    falling, _ = done.after(50.0, Measurement(100.0, 100.0, 1.0), 5.0, 0.01, 64)
    anew, _ = falling.after(53.0, Measurement(100.0, 100.0, 1.0), 5.0, 0.01, 64)
    assert (anew.m, anew.best, anew.done) == (2, 2, False)


def test_a_trial_measures_from_the_end_of_a_batch_to_the_end_of_another() -> None:
    """As seen on Spark: a batch of 6 s takes what came during the one before; looks are 1 s, wait_s is 4 s."""
    trial, m_at = InstanceTrial(1, 0.0, 1), list[int]()
    for second in range(1, 100):
        carried = 6 * min(200.0, 100.0 * trial.m) if second % 6 == 3 else 0.0
        trial, _ = trial.after(float(second), Measurement(200.0, carried, 6.0), 4.0, 0.01, 4)
        m_at.append(trial.m)
    assert list(dict.fromkeys(m_at)) == [1, 2, 4, 3]
    assert (trial.best, trial.done) == (2, True)


def test_a_number_with_which_nothing_comes_out_is_given_up() -> None:
    trial = InstanceTrial(4, 0.0, 2, Measurement(100.0, 90.0, 1.0), step=2)
    for second in range(1, 13):
        trial, why = trial.after(float(second), Measurement(100.0, 0.0, None), 4.0, 0.01, 8)
    assert why.startswith("4 instances gave no more than 2")
    assert trial.m == 3


def test_a_trial_does_not_grow_by_noise() -> None:
    dice = np.random.default_rng(3)
    trial, now_s = InstanceTrial(4, 0.0, 4), 0.0
    for _ in range(400):
        now_s += 1.0
        scattered = Measurement(100.0, float(dice.normal(100.0, 20.0)), float(dice.normal(1.0, 0.2)))
        trial, _ = trial.after(now_s, scattered, 10.0, 0.01, 64)
    assert trial.done
    assert trial.best <= 6


def test_what_waits_beyond_the_bound_of_the_queues_is_load() -> None:
    topology = top_n()
    running = dict.fromkeys(topology.names, 2)
    calm = seen(topology, 1000.0, running, {"reader": (100.0, 100.0)})
    behind = seen(topology, 1000.0, running, {"reader": (5512.0, 5512.0)})  # 10,000 rows beyond 512 each
    assert POLICY.propose(None, calm)[1].processors["reader"] < POLICY.propose(None, behind)[1].processors["reader"]
    twice, _ = McStream().instances(situation_at(topology, 2000.0))
    assert McStream().instances(behind)[0]["reader"] == twice["reader"]


def test_shares_are_withdrawn_once_the_instances_are_equally_fast_again() -> None:
    topology = top_n()
    running = dict.fromkeys(topology.names, 2)
    uneven = seen(topology, 100.0, running, {"count": (400.0, 10.0)})
    memory, proposal = POLICY.propose(McStreamMemory(running, {}, running), uneven)
    assert proposal.shares["count"][0] < proposal.shares["count"][1]
    even = seen(topology, 100.0, running, {"count": (200.0, 190.0)})
    slow, alike = ((100.0, 50.0), (100.0, 98.0))
    for speeds, kept in ((slow, True), (alike, False)):
        told = replace(even.observation.of("count"), instance_per_s=speeds)
        observed = replace(even.observation, operators={"count": told})
        memory, proposal = POLICY.propose(memory, replace(even, observation=observed))
        assert ("count" in proposal.shares) == kept


def test_rows_are_redirected_among_as_many_instances_as_the_limits_allow() -> None:
    """Where no instance can be added, sharing rows out is all that is left."""
    topology = top_n()
    running = dict.fromkeys(topology.names, 2)
    uneven = seen(topology, 5000.0, running, {"count": (400.0, 10.0)})
    short = replace(uneven, limits=Limits(most=2))
    memory, proposal = POLICY.propose(McStreamMemory({**running, "count": 9}, {}, running), short)
    assert memory is not None
    assert memory.wanted["count"] > proposal.processors["count"] == 2
    assert proposal.shares["count"][0] < proposal.shares["count"][1]


def test_without_the_instance_level_what_runs_stays_and_rows_go_out_equally() -> None:
    topology = top_n()
    running = dict.fromkeys(topology.names, 2)
    crowded = seen(topology, 5000.0, running, {"count": (400.0, 10.0)})
    _, proposal = McStream(instance_level=False).propose(McStreamMemory(running, {}, running), crowded)
    assert (dict(proposal.processors), dict(proposal.shares)) == (running, {})
