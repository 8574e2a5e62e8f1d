from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.control.loop import Settings, start, tick
from sluicegate.domain import BatchCosts, Edge, Goal, Observation, Operator, Placement, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.lab.simulate import (
    Behaviour,
    Mode,
    OperatorState,
    RowRouting,
    World,
    advance,
    apply,
    begin,
    deterministic,
    fail,
    inside,
    shuffle,
    simulate,
    trace,
    weighted,
)
from sluicegate.model.erlang import mean_sojourn_s
from sluicegate.policy.papers.drs import Drs


def one(service_per_s: float = 10.0, service_scv: float = 1.0) -> Topology:
    return Topology("one", (Operator("a", service_per_s, service_scv=service_scv),), (Edge("source", "a"),))


def loop() -> Topology:
    costs = BatchCosts(0.2, 0.01, 0.03)
    return Topology(
        "loop",
        (Operator("a", 12.0, batch=costs), Operator("b", 9.0, batch=costs), Operator("c", 20.0, batch=costs)),
        (Edge("source", "a"), Edge("a", "b"), Edge("b", "a", 0.2), Edge("b", "c", 0.8)),
    )


def entered(world: World) -> int:
    return int(world.net.totals["inputs"][0])


def left(world: World) -> int:
    return int(world.net.totals["completed"][0])


def last_observation(world: World, until_s: float, steps: int = 1) -> Observation:
    seen = advance(world, world.now_s + (until_s - world.now_s) / steps)
    while world.now_s < until_s - 1e-9:
        seen = advance(world, min(world.now_s + until_s / steps, until_s))
    return seen


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["apply", "fail", "pause", "nothing"]),
        st.sampled_from(["a", "b", "c"]),
        st.integers(1, 7),
        st.sampled_from([0.0, 0.4, 3.0]),
        st.sampled_from([0.0, 0.7, 5.0]),
    ),
    min_size=1,
    max_size=12,
)


@given(
    CHANGES,
    st.sampled_from([RowRouting(), shuffle(), weighted(), weighted(4, 1, 1)]),
    st.sampled_from([None, 0, 3]),
    st.sampled_from(["queue", "micro-batch"]),
    st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_rescales_pauses_and_failures_neither_lose_nor_double_a_row(
    count_rows: Callable[[World], int],
    changes: list[tuple[str, str, int, float, float]],
    routing: RowRouting,
    bound: int | None,
    mode: Mode,
    seed: int,
) -> None:
    capacity = {"b": bound, "c": bound} if bound is not None and mode == "queue" else {}
    behaviour = Behaviour(routing={"b": routing, "c": routing}, capacity=capacity)
    world = begin(loop(), 14.0, {"a": 3, "b": 3, "c": 1}, seed, mode=mode, behaviour=behaviour)
    for step, (change, name, number, pause_s, startup_s) in enumerate(changes):
        advance(world, 1.1 * (step + 1))
        if change == "apply":
            apply(world, {name: number}, pause_s=pause_s, startup_s=startup_s)
        elif change == "fail":
            fail(world, {name: number}, startup_s=startup_s, repair_s=pause_s)
        elif change == "pause":
            apply(world, {}, pause_s={name: pause_s})
        assert count_rows(world) == inside(world)
        assert entered(world) == left(world) + inside(world)
    advance(world, world.now_s + 10.0)
    assert count_rows(world) == inside(world)
    assert entered(world) == left(world) + inside(world)
    assert not world.rescaling


@pytest.mark.parametrize("mode", ["queue", "micro-batch"])
@pytest.mark.parametrize("routing", [RowRouting(), shuffle()])
def test_every_row_that_came_in_goes_out_in_the_end(mode: Mode, routing: RowRouting) -> None:
    load = trace(10.0, [20.0, 40.0, 5.0])
    world = begin(loop(), load, {"a": 3, "b": 3, "c": 2}, 3, mode=mode, behaviour=Behaviour(routing={"b": routing}))
    advance(world, 8.0)
    apply(world, {"a": 5, "b": 7, "c": 1}, startup_s=4.0, pause_s=1.0)
    advance(world, 14.0)
    fail(world, {"b": 2, "a": 1}, startup_s=3.0, repair_s=1.0)
    advance(world, 20.0)
    apply(world, {"a": 2, "b": 2}, pause_s=0.5)
    advance(world, 400.0)
    assert inside(world) == 0
    assert entered(world) == left(world) > 500


def test_a_simulation_stepped_without_changes_gives_what_one_run_gives() -> None:
    world = begin(one(), 15.0, {"a": 2}, seed=5)
    observed = advance(world, 20_000.0)
    result = simulate(one(), 15.0, {"a": 2}, 20_000.0, seed=5)
    assert int(world.net.totals["events"][0]) == result.events
    assert observed.sojourn is not None
    assert observed.sojourn.mean_s == pytest.approx(result.mean_s, rel=0.05)


def test_the_observer_sees_the_law_of_the_station() -> None:
    world = begin(one(service_scv=0.5), 15.0, {"a": 2}, seed=1)
    seen = last_observation(world, 4_000.0).of("a")
    assert seen.arrivals_per_s == pytest.approx(15.0, rel=0.02)
    assert seen.service_per_s == pytest.approx(10.0, rel=0.02)
    assert seen.arrival_scv == pytest.approx(1.0, rel=0.05)
    assert seen.service_scv == pytest.approx(0.5, rel=0.05)
    assert seen.utilisation == pytest.approx(0.75, rel=0.02)
    assert seen.queue_rows is not None
    assert seen.sojourn_s is not None
    assert seen.arrivals_per_s is not None
    assert seen.queue_rows == pytest.approx(seen.arrivals_per_s * (seen.sojourn_s - 0.1), rel=0.02), "Little"
    assert seen.saturated_per_s is None


def test_intervals_add_up_to_the_whole() -> None:
    whole, steps = (begin(one(), 15.0, {"a": 2}, seed=2) for _ in range(2))
    expected = advance(whole, 100.0)
    parts = [advance(steps, float(at)) for at in range(1, 101)]
    assert expected.arrivals_per_s == pytest.approx(sum(p.arrivals_per_s or 0 for p in parts) / 100)
    mean = [sum(getattr(p.of("a"), what) or 0.0 for p in parts) / 100 for what in ("utilisation", "queue_rows")]
    assert expected.of("a").utilisation == pytest.approx(mean[0])
    assert expected.of("a").queue_rows == pytest.approx(mean[1])


def test_an_operator_that_is_the_limit_shows_its_throughput() -> None:
    world = begin(one(), 30.0, {"a": 2}, seed=1)
    advance(world, 20.0)
    seen = advance(world, 200.0)
    assert seen.of("a").saturated_per_s == pytest.approx(20.0, rel=0.05)
    assert seen.backlog_rows == pytest.approx(2_000, rel=0.1)


def test_new_processors_come_after_their_start_up_and_work_off_the_backlog() -> None:
    world = begin(one(), 30.0, {"a": 2}, seed=1)
    advance(world, 60.0)
    apply(world, {"a": 5}, startup_s=30.0)
    during = advance(world, 89.0)
    assert during.running == {"a": 2}
    assert during.rescaling
    after = advance(world, 91.0)
    assert after.running == {"a": 5}
    assert not after.rescaling
    calm = last_observation(world, 600.0, steps=10)
    assert calm.backlog_rows is not None
    assert during.backlog_rows is not None
    assert calm.backlog_rows < 0.05 * during.backlog_rows


def test_a_pause_delays_what_is_in_service_by_its_length() -> None:
    world = begin(one(1.0, service_scv=0.0), deterministic(0.5), {"a": 1}, seed=1)
    advance(world, 2.5)
    apply(world, {}, pause_s={"a": 0.25})
    assert advance(world, 3.2).throughput_per_s == 0.0
    assert advance(world, 3.3).throughput_per_s == pytest.approx(10.0)
    assert world.net.nodes["busy"][0] == pytest.approx(1.0), "a pause is not work"


def test_state_that_moves_pauses_its_operator_as_long_as_eq_25_says() -> None:
    state = {"a": OperatorState(42e6)}
    world = begin(one(), 15.0, {"a": 10}, seed=1, state=state)
    advance(world, 10.0)
    apply(world, {"a": 15})
    assert world.paused_until["a"] == pytest.approx(10.0 + 42e6 / 15 / 12.5e6 + 42e6 / 15 / 1e9)
    advance(world, 11.0)
    assert not world.rescaling


def test_state_is_restored_after_a_failure_as_long_as_eq_26_says() -> None:
    state = {"a": OperatorState(42e6, backup_interval_s=4.0)}
    world = begin(one(), deterministic(14.0), {"a": 2}, seed=1, state=state)
    advance(world, 100.0)
    fail(world, {"a": 1}, startup_s=2.0)
    assert world.running == {"a": 1}
    (back,) = world.down_until.values()
    assert back == pytest.approx(100.0 + 2.0 + 4.0 * 0.7, rel=0.01)
    assert advance(world, 110.0).running == {"a": 2}


def test_a_failure_makes_the_others_work_harder_and_rows_wait() -> None:
    world = begin(one(), 15.0, {"a": 3}, seed=1)
    before = advance(world, 500.0)
    fail(world, {"a": 2}, startup_s=100.0)
    during = advance(world, 600.0)
    assert during.of("a").utilisation == pytest.approx(1.0, abs=0.02)
    assert before.sojourn is not None
    assert during.sojourn is not None
    assert during.sojourn.mean_s > 5 * before.sojourn.mean_s


def test_a_failed_batch_runs_again() -> None:
    topology = Topology("one", (Operator("a", 50.0, batch=BatchCosts(1.0, 0.0)),), (Edge("source", "a"),))
    world = begin(topology, deterministic(10.0), {"a": 1}, seed=1, mode="declared")
    advance(world, 5.0)
    fail(world, {"a": 1}, repair_s=2.0)
    assert advance(world, 6.9).of("a").batches == ()
    (batch,) = advance(world, 9.5).of("a").batches
    assert batch.rows >= 20, "what was in the broken batch, and what came since"
    advance(world, 30.0)
    assert entered(world) == left(world) + inside(world)


def test_a_later_order_replaces_an_earlier_one_under_way() -> None:
    world = begin(one(), 15.0, {"a": 2}, seed=1)
    advance(world, 10.0)
    apply(world, {"a": 6}, startup_s=60.0)
    advance(world, 20.0)
    apply(world, {"a": 4}, startup_s=60.0)
    assert advance(world, 69.0).running == {"a": 2}
    assert advance(world, 71.0).running == {"a": 4}, "four of the six were on their way already"
    apply(world, {"a": 8}, startup_s=60.0)
    apply(world, {"a": 3})
    assert advance(world, 200.0).running == {"a": 3}


def test_tasks_of_a_batch_change_with_the_next_batch() -> None:
    topology = Topology("one", (Operator("a", 50.0, batch=BatchCosts(1.0, 0.1)),), (Edge("source", "a"),))
    world = begin(topology, 60.0, {"a": 2}, seed=1, mode="declared")
    advance(world, 20.0)
    apply(world, {"a": 4})
    batches = advance(world, 60.0).of("a").batches
    assert batches[0].processors == 2
    assert {batch.processors for batch in batches[1:]} == {4}
    for batch in batches[1:]:
        assert batch.duration_s == pytest.approx(1.0 + 0.4 + batch.rows / 200.0)


def test_a_pace_and_shares_can_be_changed_on_the_way() -> None:
    topology = Topology("one", (Operator("a", 500.0, batch=BatchCosts(0.1, 0.0)),), (Edge("source", "a"),))
    world = begin(topology, 60.0, {"a": 1}, seed=1, mode="declared")
    many = len(advance(world, 60.0).of("a").batches)
    apply(world, {}, pace_s={"a": 2.0})
    few = len(advance(world, 120.0).of("a").batches)
    assert many > 300
    assert few == pytest.approx(30, abs=1)

    routed = begin(one(), 8.0, {"a": 2}, seed=1, behaviour=Behaviour(routing={"a": shuffle()}))
    apply(routed, {}, shares={"a": (1.0, 0.0)})
    seen = advance(routed, 300.0)
    assert seen.of("a").instance_queues[1] == 0.0
    assert seen.sojourn is not None
    assert seen.sojourn.mean_s == pytest.approx(mean_sojourn_s(8.0, 10.0, 1), rel=0.3)


def test_a_machine_shows_what_it_runs_and_its_load() -> None:
    chain = Topology("chain", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b")))
    placement = Placement(
        (Vm("vm1", 2), Vm("vm2", 1)), {"vm1/1": (("a", 1),), "vm1/2": (("b", 1),), "vm2/1": (("a", 1), ("b", 1))}
    )
    world = begin(chain, 8.0, {"a": 2, "b": 2}, seed=1, behaviour=Behaviour(placement=placement))
    seen = advance(world, 100.0)
    assert [node.name for node in seen.nodes] == ["vm1", "vm2"]
    assert seen.nodes[0].hosts == {"a": 1, "b": 1}
    assert 0.3 < seen.nodes[0].cpu < 0.7
    assert seen.nodes[1].cpu > seen.nodes[0].cpu, "twice the threads on half the slots"


def test_orders_that_make_no_sense_are_refused() -> None:
    world = begin(one(), 15.0, {"a": 2}, seed=1)
    advance(world, 1.0)
    for bad in (
        lambda: advance(world, 1.0),
        lambda: apply(world, {"zz": 1}),
        lambda: apply(world, {"a": 0}),
        lambda: apply(world, {"a": 3}, startup_s=-1.0),
        lambda: apply(world, {"a": 1}, pause_s=-1.0),
        lambda: fail(world, {"zz": 1}),
    ):
        with pytest.raises(BadInput):
            bad()


def test_the_same_seed_and_the_same_orders_give_the_same_world() -> None:
    def story() -> tuple[Observation, ...]:
        world = begin(loop(), 20.0, {"a": 3, "b": 4, "c": 2}, seed=9)
        first = advance(world, 30.0)
        apply(world, {"b": 9}, startup_s=5.0, pause_s=1.0)
        second = advance(world, 60.0)
        fail(world, {"b": 4}, startup_s=10.0)
        return first, second, advance(world, 90.0)

    assert story() == story()


def test_an_operator_ordered_as_it_runs_keeps_what_is_under_way() -> None:
    world = begin(one(), 15.0, {"a": 2}, seed=1)
    advance(world, 10.0)
    apply(world, {"a": 6}, startup_s=60.0)
    seen = advance(world, 20.0)
    apply(world, seen.running)
    assert advance(world, 71.0).running == {"a": 6}


def test_an_order_while_processors_are_down_is_met_by_others() -> None:
    world = begin(one(), 15.0, {"a": 3}, seed=1)
    advance(world, 10.0)
    fail(world, {"a": 2}, startup_s=100.0)
    apply(world, {"a": 4}, startup_s=5.0)
    assert advance(world, 20.0).running == {"a": 4}
    apply(world, {"a": 2})
    assert advance(world, 30.0).running == {"a": 2}


def test_the_loop_drives_the_world_to_its_goal() -> None:
    topology = Topology("chain", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b")))
    goal = Goal(mean_s=0.5)
    world = begin(topology, trace(120.0, [20.0, 60.0, 60.0, 60.0, 60.0]), {"a": 3, "b": 5}, seed=1)
    state = start(Settings(topology, Drs(), goal))
    seen = advance(world, 10.0)
    for step in range(2, 61):
        state, decision = tick(state, seen, world.now_s)
        apply(world, decision.running, startup_s=15.0, pause_s=0.5, shares=decision.shares, pace_s=decision.pace_s)
        seen = advance(world, 10.0 * step)
    assert seen.running["a"] >= 7
    assert seen.running["b"] >= 13
    assert seen.sojourn is not None
    assert seen.sojourn.mean_s < 0.75
    assert entered(world) == left(world) + inside(world)
