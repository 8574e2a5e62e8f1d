"""Executors and nodes that follow a plan, with counts in place of processes: the real ones are in test_executors."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sluicegate.control import loop
from sluicegate.control.capacity import Places, executors_for, nodes_for, places_for
from sluicegate.control.settings import Timing, settings_for
from sluicegate.domain import (
    Edge,
    ExecutorSeen,
    FleetSeen,
    Goal,
    Limits,
    NodeSeen,
    Observation,
    Operator,
    OperatorObservation,
    Shape,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.place.mc_stream import McStreamPlacer
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.plan_file import PlanFile, PlanInForce
from sluicegate.spark.act import fleet as fleet_module
from sluicegate.spark.act.executors import Resize, leaving
from sluicegate.spark.act.fleet import Ends, Fleet
from sluicegate.spark.act.scheduler import Executor
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.ground import ground_of

PLACER = McStreamPlacer()


def chain_of(*processors: int) -> tuple[Topology, dict[str, int]]:
    running = {f"o{i}": k for i, k in enumerate(processors)}
    edges = tuple(Edge(before, name) for before, name in pairwise(("source", *running)))
    return Topology("t", tuple(Operator(name, 9.0) for name in running), edges), running


def fleet_on(**slots: int) -> FleetSeen:
    return FleetSeen(Shape(), tuple(ExecutorSeen(host, count) for host, count in slots.items()))


def places_on(fleet: FleetSeen, *processors: int) -> tuple[Places, str]:
    topology, running = chain_of(*processors)
    return places_for(topology, PLACER, running, fleet)


def test_there_is_a_slot_for_every_processor_within_the_limits() -> None:
    shape = Shape(slots_per_executor=2, least=1, most=4)
    chains = [chain_of(*k) for k in ((1,), (2, 1), (4, 4), (30, 9))]
    assert [shape.within(executors_for(t, PLACER, running, 2)) for t, running in chains] == [1, 2, 4, 4]


def test_an_executor_does_not_stretch_over_two_nodes() -> None:
    assert Shape(slots_per_executor=2).on([3, 1, 4]) == 3


def test_processors_of_one_operator_are_apart_and_next_to_those_they_read_from() -> None:
    assert places_on(fleet_on(a=2, b=2), 2, 2)[0] == {"o0": ("a", "b"), "o1": ("a", "b")}


def test_a_host_counts_for_all_of_its_executors() -> None:
    two_on_a = FleetSeen(Shape(), (ExecutorSeen("a", 1), ExecutorSeen("a", 2)))
    assert places_on(two_on_a, 3)[0] == {"o0": ("a", "a", "a")}


def test_nothing_is_placed_while_some_have_no_slot() -> None:
    places, why = places_on(fleet_on(a=2, b=1), 2, 2)
    assert places == {}
    assert why.startswith("Spark chooses the hosts: o1: an instance needs 100.0% CPU")


def test_tasks_stay_off_executors_that_are_not_warm_yet() -> None:
    fleet = FleetSeen(Shape(), (ExecutorSeen("a", 1), ExecutorSeen("b", 1, warm=False)))
    places, why = places_on(fleet, 2)
    assert places == {"o0": ("a",)}
    assert why.endswith("1 executors are warming up")


def test_nodes_come_before_executors_and_go_after_them_the_emptiest_first() -> None:
    nodes = tuple(NodeSeen(f"n{i}", 2, f"h{i}") for i in range(3))
    full = FleetSeen(Shape(2, 1, 9), tuple(ExecutorSeen(f"h{i}", 2) for i in range(3)), nodes)
    assert nodes_for(full, 5) == (5, ())
    assert nodes_for(full, 1) == (3, ())  # its executors are still there
    assert nodes_for(replace(full, executors=full.executors[1:2]), 1) == (1, ("n2", "n0"))


def test_every_change_of_executors_and_nodes_is_decided_once_and_says_why() -> None:
    """Through the tick itself: more at once, less only after the window, each as a change with its reason."""
    topology, _ = chain_of(1)
    settings = settings_for("ds2", topology, Goal(), Limits(), Timing(1.0))
    state, running, want = loop.start(settings), {"o0": 1}, list[int | None]()
    told, up = list[str](), 1
    for now in range(60):
        executors = tuple(ExecutorSeen("a", 1) for _ in range(want[-1] or 1 if want else 1))
        nodes = tuple(NodeSeen(f"n{i}", 1, "a" if not i else "") for i in range(up))
        fleet = FleetSeen(Shape(1, 1, 4, settle_s=10.0), executors, nodes, len(executors))
        rate = 25.0 if now < 20 else 5.0
        seen = Observation(float(now), rate, running, {"o0": OperatorObservation(rate, 9.0)}, fleet=fleet)
        state, decision = loop.tick(state, seen, float(now))
        running = dict(decision.running)
        want.append(decision.executors)
        up = decision.nodes or 1
        told += [f"{now}: {c.what} {c.have} -> {c.want}: {c.reason}" for c in decision.changes if c.what != "places"]
    assert (max(want[:20], key=lambda n: n or 0), want[-1]) == (3, 1)
    assert want[25] == 3  # the governor's window: fewer have been enough for 5 s only
    assert any("executors 1 -> 3: 3 processors need 3 executors of 1 slots" in line for line in told)
    assert any("nodes 1 -> 3: no room for 2 executors" in line for line in told)
    assert any("nodes" in line and "do not need" in line for line in told)


def test_while_executors_are_still_to_come_more_may_be_asked_for_but_nothing_is_taken_away() -> None:
    topology, running = chain_of(4)
    state = loop.start(settings_for("ds2", topology, Goal(), Limits(), Timing(1.0)))
    for rate, expected in ((5.0, 4), (60.0, 7)):
        measured = {"o0": OperatorObservation(rate, 9.0)}
        seen = Observation(0.0, rate, running, measured, rescaling=True, starting=True)
        assert loop.tick(state, seen, 0.0)[1].running["o0"] == expected


def test_executors_leave_host_by_host_so_that_nodes_become_free() -> None:
    here = [Executor(f"{host}{n}", host, 1, int(host == "b"), n, False) for host in "ba" for n in (1, 2)]
    alone = Executor("c1", "c", 1, 9, 0, draining=False)
    assert [executor.id for executor in leaving([*here, alone], 4)] == ["c1", "a2", "a1", "b2"]


def test_a_shape_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadInput, match="least <= most"):
        Shape(1, 3, 2)


def test_executors_are_refused_where_there_are_none() -> None:
    with pytest.raises(BadInput, match="no executors"):
        ground_of("local[4]", "1:4")


def test_a_range_of_executors_must_be_numbers() -> None:
    with pytest.raises(BadInput, match="LEAST:MOST"):
        ground_of("spark://host:7077", "few:many")


def test_a_disk_that_is_full_for_a_moment_does_not_end_the_following(tmp_path: Path, monkeypatch: Any) -> None:
    looked = threading.Event()
    steps: list[float] = []

    def step(self: Fleet, now_s: float) -> None:
        steps.append(now_s)
        if len(steps) == 1:
            raise OSError(28, "No space left on device")
        looked.set()

    monkeypatch.setattr(fleet_module, "_EVERY_S", 0.01)
    monkeypatch.setattr(fleet_module, "_AGAIN_AFTER_S", 0.02)
    monkeypatch.setattr(Fleet, "step", step)
    monkeypatch.setattr(Fleet, "_report", lambda self, *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with Fleet(Any, Shape(), tmp_path / "fleet.jsonl", tmp_path / "fleet.json"):  # type: ignore[arg-type]
        assert looked.wait(60.0)


class Counted:
    """Executors by their number: how many are there, and what was requested."""

    def __init__(self) -> None:
        self.here, self.requested = 1, list[int]()

    def count(self) -> int:
        return self.here

    def all(self) -> tuple[Executor, ...]:
        return tuple(Executor(str(n), "h", 1, 0, n, draining=False) for n in range(self.here))

    def resize(self, want: int, reason: str, first: Collection[str] = ()) -> Resize:
        self.requested.append(want)
        return Resize(self.here, want, reason)

    def wait_for(self, want: int, timeout_s: float) -> None: ...

    def why_fewer(self, want: int) -> str:
        return ""


def following(tmp_path: Path) -> tuple[Fleet, Counted, PlanFile]:
    """A fleet of 1 to 4 executors that has requested the 3 of its plan; one is there."""
    executors: Any = Counted()
    plan = PlanFile(tmp_path / "plan.json")
    plan.write(PlanInForce(1, executors=3))
    ends = Ends(plan, executors, list, lambda until_s: None)
    fleet = Fleet(ends, Shape(1, 1, 4), tmp_path / "fleet.jsonl", tmp_path / "fleet.json")
    for now_s in (0.0, 1.0):
        fleet.step(now_s)
    assert executors.requested == [3]
    return fleet, executors, plan


def test_a_plan_that_names_no_number_of_executors_takes_none_away(tmp_path: Path) -> None:
    fleet, executors, plan = following(tmp_path)
    executors.here = 3
    plan.write(PlanInForce(2))
    for now_s in (2.0, 3.0):
        fleet.step(now_s)
    assert executors.requested == [3]


def test_executors_that_are_no_longer_wanted_before_they_came_are_not_waited_for(tmp_path: Path) -> None:
    """Spark would start them later else, and the time until then would count as what executors take to start."""
    fleet, executors, plan = following(tmp_path)
    plan.write(PlanInForce(2, executors=1))
    for now_s in (2.0, 3.0):
        fleet.step(now_s)
    assert executors.requested == [3, 1]
    assert not any('"startup_s"' in line for line in Tail(tmp_path / "fleet.jsonl").lines())


def test_executors_are_reported_while_a_node_takes_long_to_start(tmp_path: Path, monkeypatch: Any) -> None:
    for pause in ("_EVERY_S", "_TELLS_EVERY_S"):
        monkeypatch.setattr(fleet_module, pause, 0.02)
    fleet, executors, _ = following(tmp_path)
    path, begins, goes_on = tmp_path / "fleet.json", threading.Event(), threading.Event()

    def starts_a_node(now_s: float) -> None:
        begins.set()
        assert goes_on.wait(120.0)

    monkeypatch.setattr(fleet, "step", starts_a_node)
    with fleet:
        assert begins.wait(60.0)
        executors.here = 2
        assert wait_until(lambda: len(json.loads(path.read_text())["executors"]) == 2, 60.0, 0.02)
        told = json.loads(path.read_text())
        assert [one["warm"] for one in told["executors"]] == [True, False], "nobody has warmed the second yet"
        goes_on.set()
