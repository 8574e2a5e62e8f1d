"""Measured arrivals reach every policy: nothing is planned by selectivities that were only guessed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sluicegate.control import loop
from sluicegate.control.loop import LoopState
from sluicegate.control.settings import Timing, settings_for
from sluicegate.domain import Batch, Edge, Goal, Limits, Observation, Operator, OperatorObservation, Sojourn, Topology
from sluicegate.model.traffic import visits
from sluicegate.policy.catalogue import POLICIES
from sluicegate.spark.pipeline.fusion import COSTS

RATE_PER_S, COPIES, MU_PER_S, LOOK_S, OVERHEAD_S = 50.0, 10.0, 100.0, 2.0, 0.1
# As Spark's controller begins: rates and selectivities are guesses.
GUESSED = Topology(
    "split",
    (Operator("split", 1000.0, batch=COSTS), Operator("follow", 1000.0, batch=COSTS)),
    (Edge("source", "split"), Edge("split", "follow"), Edge("follow", "sink")),
)
LIVE = sorted(name for name, entry in POLICIES.items() if not entry.clairvoyant)


class World:
    """A pipeline that queues what it cannot serve; one row of the source becomes ten for the follower."""

    def __init__(self, split: int = 1, follow: int = 1) -> None:
        self.running, self.queue, self.now_s = (
            {"split": split, "follow": follow},
            dict.fromkeys(GUESSED.names, 0.0),
            0.0,
        )

    def look(self) -> Observation:
        """What is seen of the next two seconds."""
        self.now_s += LOOK_S
        came, seen = RATE_PER_S, {}
        for name, copies in (("split", COPIES), ("follow", 1.0)):
            k = self.running[name]
            rows = min(self.queue[name] + came * LOOK_S, k * MU_PER_S * LOOK_S)
            self.queue[name] += came * LOOK_S - rows
            took_s = OVERHEAD_S + rows / (k * MU_PER_S)
            seen[name] = OperatorObservation(
                arrivals_per_s=came,
                service_per_s=rows / (k * took_s),
                utilisation=min(took_s / LOOK_S, 1.0),
                queue_rows=self.queue[name],
                backpressure=float(self.queue[name] > 0),
                sojourn_s=took_s + self.queue[name] / (k * MU_PER_S),
                saturated_per_s=rows / LOOK_S if self.queue[name] > 0 else None,
                batches=(Batch(rows, k, took_s, rows / MU_PER_S),),
            )
            came = rows / LOOK_S * copies
        sojourn = Sojourn(sum(one.sojourn_s or 0.0 for one in seen.values()))
        waiting = sum(self.queue.values())
        return Observation(
            self.now_s, RATE_PER_S, dict(self.running), seen, sojourn, came, waiting,
            pending_tasks=math.ceil(waiting / MU_PER_S),
            running_tasks=sum(self.running.values()),
        )  # fmt: skip


def driven(name: str, seconds: float, world: World) -> LoopState:
    limits, timing = Limits(budget=40), Timing(LOOK_S, LOOK_S, 20.0)
    state = loop.start(settings_for(name, GUESSED, Goal(mean_s=3.0), limits, timing))
    while world.now_s < seconds:
        state, decision = loop.tick(state, world.look(), world.now_s)
        world.running = dict(decision.running)
    return state


@pytest.mark.parametrize("name", LIVE)
def test_the_follower_of_a_split_into_ten_gets_enough(name: str) -> None:
    world = World()
    # Flink's autoscaler measures for a quarter of an hour before it moves, the others are there within minutes
    driven(name, 3600.0 if name in ("flink-autoscaler", "dhalion", "hpa") else 600.0, world)
    assert world.running["split"] * MU_PER_S >= RATE_PER_S
    assert world.running["follow"] * MU_PER_S >= RATE_PER_S * COPIES


def test_learned_visits_are_those_of_the_topology_that_policies_get() -> None:
    state = driven("ds2", 120.0, World())
    assert visits(state.learned.topology).tolist() == pytest.approx([1.0, COPIES], rel=0.05)


def test_visits_are_learned_while_the_operator_itself_is_saturated() -> None:
    """A follower of one processor is far behind; what arrives there is no less valid for that."""
    state = loop.start(settings_for("drs", GUESSED, Goal(mean_s=3.0), Limits(), Timing(LOOK_S)))
    world = World(split=4)
    for _ in range(15):
        state, _ = loop.tick(state, world.look(), world.now_s)
    assert world.queue["follow"] > 1000
    assert state.learned.visits[1] == pytest.approx(COPIES, rel=0.1)


def test_visits_behind_a_saturated_operator_stay_as_they_were() -> None:
    state = loop.start(settings_for("drs", GUESSED, Goal(mean_s=3.0), Limits(), Timing(LOOK_S)))
    world = World(split=4)
    for _ in range(15):
        state, _ = loop.tick(state, world.look(), world.now_s)
    known = float(state.learned.visits[1])
    world.running["split"] = 1
    slow = OperatorObservation(arrivals_per_s=500.0, service_per_s=100.0)
    for _ in range(10):
        world.now_s += LOOK_S
        seen = Observation(world.now_s, 500.0, dict(world.running), {"split": slow, "follow": slow})
        state, _ = loop.tick(state, seen, world.now_s)
    assert state.learned.visits[1] == pytest.approx(known, rel=0.01)


def test_rows_of_a_backlog_that_arrive_after_the_load_has_ended_teach_no_visits() -> None:
    """The source is nearly silent while its last rows still pass: their ratio is no selectivity."""
    state = loop.start(settings_for("mc-stream", GUESSED, Goal(mean_s=3.0), Limits(budget=40), Timing(LOOK_S)))
    world = World(split=4, follow=6)
    for _ in range(15):
        state, _ = loop.tick(state, world.look(), world.now_s)
    known, rate_per_s = float(state.learned.visits[1]), RATE_PER_S
    for _ in range(30):
        world.now_s, rate_per_s = world.now_s + LOOK_S, rate_per_s / 2
        drained = OperatorObservation(arrivals_per_s=RATE_PER_S * COPIES, service_per_s=MU_PER_S)
        seen = {"split": OperatorObservation(arrivals_per_s=rate_per_s, service_per_s=MU_PER_S), "follow": drained}
        state, _ = loop.tick(state, Observation(world.now_s, rate_per_s, dict(world.running), seen), world.now_s)
    assert state.learned.visits[1] == pytest.approx(known, rel=0.25)


def test_mc_stream_keeps_its_first_plan_when_it_is_refused() -> None:
    """Refused at the first look (a rescale was under way), it must not be forgotten at the second."""
    settings = settings_for("mc-stream", GUESSED, Goal(), Limits(), Timing(LOOK_S))
    state, world = loop.start(settings), World()
    for _ in range(4):
        state, refused = loop.tick(state, replace(world.look(), rescaling=True), world.now_s)
        assert not refused.moves
    quiet = {n: OperatorObservation(MU_PER_S * 2, MU_PER_S, queue_rows=100.0) for n in GUESSED.names}
    seen = Observation(world.now_s + LOOK_S, MU_PER_S * 2, {"split": 1, "follow": 1}, quiet)
    _, decision = loop.tick(state, seen, world.now_s + LOOK_S)
    assert decision.running["split"] > 1
