"""A node whose cores are busy: batches that need more than is free get slower, and more tasks make it worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sluicegate.control import loop
from sluicegate.control.settings import Timing, settings_for
from sluicegate.domain import (
    Batch,
    BatchCosts,
    Cores,
    Decision,
    Edge,
    ExecutorSeen,
    FleetSeen,
    Goal,
    Limits,
    NodeObservation,
    NodeSeen,
    Observation,
    Operator,
    OperatorObservation,
    Shape,
    Sojourn,
    Topology,
)
from sluicegate.policy.demand import situation_at
from sluicegate.policy.sluicegate import SluicegatePolicy

ONE = Topology("t", (Operator("a", 250.0, batch=BatchCosts(0.15, 0.03)),), (Edge("source", "a"), Edge("a", "sink")))
A_S, C_S, ROW_S, LOOK_S = 0.12, 0.03, 0.004, 2.0


class Machine:
    """One operator on two cores, of which others take ``others``: batches slow down once they need more than is left.

    Processor time a batch, a task and a row is what it is; how long a batch lasts depends on the cores.
    """

    def __init__(self, others: float, rate_per_s: float) -> None:
        self.others, self.rate, self.k, self.pace, self.now = others, rate_per_s, 1, 0.0, 0.0
        self.queue = self.waited_s = 0.0

    def look(self, tell_cores: bool = True) -> Observation:
        free, spent, done, batches, left_s = 2.0 - self.others, 0.0, 0.0, list[Batch](), LOOK_S
        self.queue += self.rate * LOOK_S
        while left_s > 0:
            rows = min(self.queue - done, self.rate * max(self.pace, 0.5) + (self.queue - done) / 4)
            work = A_S + C_S * self.k + ROW_S * rows
            alone_s = A_S + C_S * self.k + ROW_S * rows / self.k
            took_s = max(alone_s, work / free)  # no more processor time than the cores have
            batches.append(Batch(rows, self.k, took_s, ROW_S * rows * took_s / alone_s))
            spent, done, left_s = spent + work, done + rows, left_s - max(took_s, self.pace)
        self.queue = max(self.queue - done, 0.0)
        self.now += LOOK_S
        busy = min(spent / (LOOK_S - min(left_s, 0.0)), free)
        last = batches[-1].duration_s + max(self.pace, batches[-1].duration_s) / 2
        seen = OperatorObservation(self.rate, queue_rows=self.queue, batches=tuple(batches))
        node = NodeObservation(
            "n", busy / 2, cores=2.0 if tell_cores else 0.0, busy_cores=busy, other_cores=self.others
        )
        return Observation(
            self.now,
            self.rate,
            {"a": self.k},
            {"a": seen},
            Sojourn(last + self.queue / self.rate),
            nodes=(node,),
        )

    def driven(self, looks: int, tell_cores: bool = True) -> list[Decision]:
        settings = settings_for("sluicegate", ONE, Goal(mean_s=1.0), Limits(budget=16), Timing(LOOK_S, LOOK_S))
        state, decisions = loop.start(settings), list[Decision]()
        for _ in range(looks):
            state, decision = loop.tick(state, self.look(tell_cores), self.now)
            self.k, self.pace = decision.running["a"], decision.pace_s.get("a", 0.0)
            decisions.append(decision)
        return decisions


def test_on_busy_cores_tasks_are_not_added() -> None:
    """One of two cores is taken: without the law tasks pile up, with it they do not and it is said what is short."""
    blind, seeing = Machine(1.4, 100.0), Machine(1.4, 100.0)
    blind.driven(60, tell_cores=False)
    decisions = seeing.driven(60)
    assert seeing.k < blind.k
    assert seeing.queue <= blind.queue
    said = [reason for decision in decisions[-20:] for reason in decision.reasons if reason.startswith("cores")]
    assert said


def test_with_cores_to_spare_nothing_is_held_back() -> None:
    idle, unaware = Machine(0.0, 100.0), Machine(0.0, 100.0)
    decisions = idle.driven(40)
    unaware.driven(40, tell_cores=False)
    assert idle.k == unaware.k
    assert not any(reason.startswith("cores") for reason in decisions[-1].reasons)


def test_the_processor_time_of_a_batch_and_a_row_is_learned() -> None:
    machine = Machine(0.0, 60.0)
    settings = settings_for("sluicegate", ONE, Goal(mean_s=2.0), Limits(budget=16), Timing(LOOK_S, LOOK_S))
    state = loop.start(settings)
    for look in range(80):
        machine.k, machine.pace, machine.rate = 1 + look % 3, 0.3 * (1 + look % 4), 40.0 + 40.0 * (look % 5)
        state, _ = loop.tick(state, machine.look(), machine.now)
    cores = state.learned.nodes.cores
    assert cores is not None
    whole = cores.per_batch_s + 2 * cores.per_task_s
    assert whole == pytest.approx(A_S + 2 * C_S, rel=0.35)
    assert cores.per_row_s["a"] == pytest.approx(ROW_S, rel=0.3)


def planned(cores: Cores, running: int, fleet: FleetSeen | None = None) -> tuple[dict[str, int], float, list[str], int]:
    """What our policy proposes for 150 rows/s with these cores."""
    seen = Observation(0.0, 150.0, {"a": running}, fleet=fleet)
    now = replace(situation_at(ONE, 150.0, Goal(mean_s=1.5), Limits(budget=16)), observation=seen, cores=cores)
    policy = SluicegatePolicy()
    _, proposal = policy.propose(policy.start(), now)
    said = [reason for reason in proposal.reasons if reason.startswith("cores")]
    return dict(proposal.processors), proposal.pace_s["a"], said, proposal.more_nodes


def test_batches_start_more_rarely_before_anything_else() -> None:
    """0.6 cores for rows; batches every 0.6 s need more than is free, every 1.2 s they fit."""
    roomy, tight = (Cores(0.25, 0.05, {"a": 0.004}, 2.0, free) for free in (2.0, 1.1))
    _, pace_s, said, _ = planned(roomy, 1)
    _, longer_s, said_then, _ = planned(tight, 1)
    assert not said
    assert longer_s > pace_s
    assert said_then[0].startswith("cores: the plan needs")


def test_cores_that_cannot_do_are_said_to_be_short_and_how_many_would_do() -> None:
    processors, _, said, more = planned(Cores(0.25, 0.05, {"a": 0.018}, 2.0, 2.0), running=2)
    assert processors["a"] <= 2
    assert said == ["cores are short: batches need 3 cores, there are 2; 4 would suffice"]
    assert more == 0


def test_where_nodes_can_be_had_another_is_asked_for() -> None:
    fleet = FleetSeen(Shape(2, 1, 8), (ExecutorSeen("h", 2),), (NodeSeen("n", 2, "h"),), 1)
    _, _, said, more = planned(Cores(0.25, 0.05, {"a": 0.018}, 2.0, 2.0, each=2.0), 2, fleet)
    assert more == 1
    assert said[0].endswith("4 would suffice: 1 more nodes")


def test_counts_stay_whole_numbers() -> None:
    processors, _, _, _ = planned(Cores(0.25, 0.05, {"a": 0.01}, 2.0, 0.5), running=3)
    assert all(isinstance(count, int) and not isinstance(count, np.integer) for count in processors.values())
