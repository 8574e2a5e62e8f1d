"""One attached query under the control loop: its observer, its loop state, and the processors it asks for."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import numpy as np

from sluicegate.control import loop
from sluicegate.control.loop import LoopState
from sluicegate.control.read_limit import most_rows
from sluicegate.domain import Decision, Limits, Observation, Refusal, Rescale
from sluicegate.domain.figures import rate
from sluicegate.policy.demand import stations_of
from sluicegate.policy.sharing import Claim
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import USUAL_MOST_ROWS, OperatorPlan
from sluicegate.spark.attach.application import Application, ApplicationGround, Query
from sluicegate.spark.attach.observing import Planned, QueryObserver
from sluicegate.spark.attach.options import Options
from sluicegate.spark.controller import Control, settings_of

STARTUP_S = 15.0
"""Seconds from requesting an executor to its first warm task, as for pipelines."""
_FINER = 4
"""Tasks per processor while executors are starting. At half, a new executor finds fewer tasks to take over; at double,
batches pay the overhead of more tasks."""
_NEVER_FOLLOWED = 2
_TRIED_AGAIN_S = 600.0
"""After which a query that did not follow gets one plan more: the driver leaves tasks to Spark only for a while if it
was slow. Half, double: such a query follows its load again a few minutes sooner or later."""
_MOSTLY_READING = 0.5
_WAITS = {"mean": 0.5, "p50": 0.5, "p95": 0.95, "p99": 0.99}
"""How much of a trigger interval a row waits for its batch, by what the promise bounds."""
_RESERVE = 0.1
"""Share of the promise kept back when a batch must end within what the trigger interval leaves of it."""


@dataclass(slots=True)
class Lane:
    """The control state of one query.

    ``promised``: it has an SLO, so its tasks may be moved. ``stuck`` counts plans that its stages did not follow.
    ``spreads``: its source is read in more tasks than it provides. This stays on once begun, because the work then
    appears in the stages behind the source. ``cut`` is the number of tasks per batch in the plan in force.
    ``stuck_s``: when it last did not follow.
    """

    query: Query
    observer: QueryObserver
    state: LoopState
    promised: bool
    options: Options
    moves_executors: bool = False
    stuck: int = 0
    stuck_s: float = -math.inf
    spreads: bool = False
    cut: int = 0
    pace_s: float = 0.0
    seen: Observation | None = None
    decision: Decision | None = None
    planned: Planned | None = None

    @classmethod
    def of(cls, layout: Layout, application: Application, query: Query, budget: int, moves_executors: bool) -> Lane:
        options = application.options
        slo = options.slo_of(query.promised_as)
        control = Control(
            options.policy,
            slo,
            budget,
            interval_s=options.interval_s,
            dry_run=options.observes_only,
            startup_s=STARTUP_S if moves_executors else 0.0,
        )
        state = loop.start(settings_of(query.graph(application.name), control))
        return cls(query, QueryObserver.of(layout, query.name), state, bool(slo), options, moves_executors)

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def movable(self) -> bool:
        """Whether the plan may change it: it has an SLO, a batch was observed, and its stages follow the plan."""
        follows = self.stuck < _NEVER_FOLLOWED and not self.query.left
        return self.promised and bool(self.observer.learned) and follows

    @property
    def running(self) -> int:
        return self.seen.running.get(self.name, 0) if self.seen else 0

    def took_s(self, what: str) -> float | None:
        """Its latency by what a promise bounds, such as "p95"; ``None`` before it is known."""
        sojourn = self.seen.sojourn if self.seen else None
        return None if sojourn is None else sojourn.by_name[what]

    @property
    def asked(self) -> int:
        """The processors last requested, which may not be in force yet."""
        return self.seen.asked.get(self.name, 0) if self.seen else 0

    @property
    def wants(self) -> int:
        return self.decision.running.get(self.name, self.running) if self.decision else self.running

    @property
    def needs(self) -> int:
        """The processors that executors must have for it: as planned, or, if no plan moves its tasks, by the law.

        Tasks that are not moved fill all slots there are, so they say nothing about how many are needed.
        """
        proposal = self.decision.proposal if self.decision else None
        return self.wants if self.movable or proposal is None else proposal.processors[self.name]

    def tick(self, now_s: float, ground: ApplicationGround, query: Query, budget: int) -> Decision:
        """Observe and decide for this query alone; ``settle`` applies the shared budget afterwards."""
        self.query = query
        self.planned = None if query.left else self.planned
        self._bound(budget)
        busy, files = ground.busy.get(self.name, False), ground.files.get(self.name)
        self.seen = replace(self.observer.observe(now_s, busy, self.planned, files), nodes=ground.nodes)
        self.state, decision = loop.tick(self.state, self.seen, now_s)
        self._notice_stuck(now_s)
        if not self.options.pace:  # a pace that is not applied must not be reported
            kept = tuple(change for change in decision.changes if not change.what.startswith("pace of"))
            decision = replace(decision, pace_s={}, changes=kept)
        elif decision.proposal is not None:
            self.pace_s = round(decision.pace_s.get(self.name, 0.0), 3)
        if not self.movable:
            decision = self._unmoved(decision, self.seen)
        unkept = (*self._out_of_reach(), *self._overloaded(), *_infeasible(decision, self.name))
        self.decision = replace(decision, refusals=(*decision.refusals, *unkept))
        return self.decision

    def _unmoved(self, decision: Decision, seen: Observation) -> Decision:
        """The decision without moves of its tasks, and why; that Spark has them is told even if none was wanted."""
        refusal = Refusal(*self._why_not())
        if decision.rescales:
            return replace(decision, running=seen.running, rescales=(), refusals=(refusal,))
        return replace(decision, refusals=(*decision.refusals, refusal)) if refusal.rule == "tasks" else decision

    def _out_of_reach(self) -> tuple[Refusal, ...]:
        """Latency bounds that the user's trigger interval makes unreachable; none if sluicegate sets the interval."""
        if self.options.pace:
            return ()
        every_s = float((self.observer.last or {}).get("trigger_s") or 0.0)
        starts = f"starts a batch every {every_s:g} s"
        waits_s = {"mean": 0.5 * every_s, "p50": 0.5 * every_s, "p95": 0.95 * every_s, "p99": 0.99 * every_s}
        return tuple(
            Refusal("trigger", f"{what} <= {bound_s:g} s is out of reach: {self.name} {starts}")
            for what, bound_s in self.state.settings.goal.latency_bounds.items()
            if waits_s.get(what, 0.0) >= bound_s
        )

    def claim(self) -> Claim:
        """The processors it wants, and its predicted mean latency as a function of the processors it gets."""
        situation = self.state.situation
        bound_s = min(self.state.settings.goal.latency_bounds.values(), default=1.0)
        if situation is None:
            return Claim(self.wants, bound_s, lambda _: 0.0)
        stations = stations_of(situation)
        return Claim(
            self.wants,
            bound_s,
            lambda k: stations.total_mean_s(np.array([k], dtype=np.int64)),
            float(stations.offered.sum()),
        )

    def settle(self, processors: int, why: str, refusals: tuple[Refusal, ...] = ()) -> None:
        """Replace the decision by the query's share of the budget."""
        if self.decision is None or processors == self.wants:
            return
        have = self.asked
        moved = () if processors == have else (Rescale(self.name, have, processors, why),)
        self.decision = replace(
            self.decision,
            running={self.name: processors},
            rescales=moved,
            reasons=(why, *self.decision.reasons),
            refusals=(*self.decision.refusals, *refusals),
        )

    def _bound(self, budget: int) -> None:
        """Limit the tasks: to the state partitions if stateful, else to the source's tasks unless it may be split.

        For topics that are not split: to the tasks that have rows to read. If the work is in reading, though stages
        behind a shuffle follow: to the source's tasks, however few those stages have.
        """
        given = budget if self.options.split else max(self.observer.most_tasks, 1)
        if not self.options.split and self.observer.helpful_tasks is not None:
            given = min(given, self.observer.helpful_tasks)
        if self.observer.stages.led:
            most = budget if self.options.split else self.observer.stages.most_reading
        else:
            most = self.query.partitions if self.query.stateful else given
        most = max(most, 1)
        limits = Limits(budget=budget, most_of={self.name: most}, least_of={self.name: self._least(min(most, budget))})
        if limits != self.state.settings.limits:
            self.state = replace(self.state, settings=replace(self.state.settings, limits=limits))

    def _least(self, most: int) -> int:
        """The fewest processors with which a batch of one trigger interval's rows keeps the promise; 1 if none do."""
        situation, every_s = self.state.situation, self._every_s
        if situation is None or not every_s or self.options.pace:
            return 1
        operator, bounds = situation.topology.operators[0], self.state.settings.goal.latency_bounds
        costs = operator.batch
        if costs is None:
            return 1
        rows = situation.arrivals_per_s * every_s
        room_s = [(1 - _RESERVE) * bound_s - _WAITS[what] * every_s for what, bound_s in bounds.items()]
        left_s = min((room for room in room_s if room > 0), default=0.0)
        for k in range(1, most + 1):
            if costs.overhead_s + costs.per_task_s * k + rows / (k * operator.service_per_s) <= min(left_s, every_s):
                return k
        return 1

    @property
    def _every_s(self) -> float:
        return float((self.observer.last or {}).get("trigger_s") or 0.0)

    def _notice_stuck(self, now_s: float) -> None:
        """Give up on a plan that is not followed, and plan from what runs.

        It counts as ``stuck`` only if the tasks did not follow; if only executors lack, they are requested again.
        """
        planned, seen, last = self.planned, self.seen, self.observer.last
        if self.stuck >= _NEVER_FOLLOWED and now_s - self.stuck_s > _TRIED_AGAIN_S:
            self.stuck = _NEVER_FOLLOWED - 1
        if planned is None or seen is None or last is None or seen.rescaling or self.running == planned.processors:
            return
        if int(last["tasks"]) > max(planned.processors, self.cut):  # fewer: the batch had no more to read
            self.stuck, self.stuck_s = self.stuck + 1, now_s
        self.planned = Planned(self.running, now_s)

    def plan(self, processors: int | None, now_s: float) -> None:
        """Record the processors that the plan in force gives it."""
        if processors is None:
            self.planned = None
        elif self.planned is None or self.planned.processors != processors:
            self.planned = Planned(processors, now_s)

    def document(self, processors: int, awaited: bool) -> dict[str, object]:
        """Its entry in the plan file: tasks by stage and, if the user allows ``pace``, the interval and read limits.

        While executors are ``awaited``, batches are cut into more tasks: a new executor can then run tasks of the
        current batch that have not started, instead of being idle until the next batch.
        """
        found: dict[str, object] = asdict(OperatorPlan(processors))
        seen, spread = self.observer.stages, self._spread(processors)
        scan = seen.scan_only or seen.led
        self.cut = min(_FINER * processors, max(self.query.partitions, processors)) if awaited else processors
        seen.plans(self.cut)
        # at the most tasks seen the source is left alone: a limit there would hide that batches now come in more
        offered = seen.most_reading if seen.led else max(self.observer.most_tasks, self.observer.source_tasks)
        stages = {"scan": self.cut} if scan and not spread and self.cut < offered else {}
        stages |= {"state": self.cut, "shuffle": self.cut} if self.cut != processors else {}
        found |= {"stages": stages} if stages else {}
        found |= {"spread": spread} if spread else {}
        if self.options.pace:
            rows = most_rows(self.state.situation, self.name, processors, self.pace_s, USUAL_MOST_ROWS)
            found |= {"pace_s": self.pace_s, "most_rows": rows}
            if self.observer.in_files.per_file:
                found["most_files"] = max(math.ceil(rows / self.observer.in_files.per_file), 1)
        return found

    def _spread(self, processors: int) -> int:
        """Tasks to read the source with, if that is more than it provides and reading is most of the work; else 0."""
        enough = processors <= self.observer.source_tasks
        if not self.options.split or enough:
            self.spreads = False
            return 0
        self.spreads = self.spreads or (self.observer.stages.scan_share or 0.0) >= _MOSTLY_READING
        return processors if self.spreads else 0

    def _why_not(self) -> tuple[str, str]:
        if not self.promised:
            return "promise", f"{self.name} has no promise: set spark.sluicegate.query.{self.query.promised_as}.slo"
        if not self.observer.learned:
            return "metrics", f"no batch of {self.name} yet: it stays as it is"
        if not self.query.left:
            return "tasks", f"the stages of {self.name} do not follow the plan: their tasks are left to Spark"
        follow = "only executors follow its load" if self.moves_executors else "Spark runs its tasks"
        return "tasks", f"k of {self.name} is not moved, {follow}: {self.query.left}"

    def _overloaded(self) -> tuple[Refusal, ...]:
        """That more rows come than the most processors allowed carry, and what would allow more."""
        situation, limits = self.state.situation, self.state.settings.limits
        most, budget = limits.most_of.get(self.name, 1), limits.budget or 1
        if situation is None or not self.promised:
            return ()
        k, come_per_s = min(most, budget), situation.arrivals_per_s
        carried_per_s = k * situation.topology.operators[0].service_per_s
        if come_per_s < carried_per_s:
            return ()
        told = f"{rate(come_per_s)} come to {self.name}, and {k} processors carry {rate(carried_per_s)}"
        return (Refusal("promise", f"{told}: {self._cure(most, budget)}"),)

    def _cure(self, most: int, budget: int) -> str:
        seen = self.observer.stages
        if most >= budget:
            return "give it more executors or slots (spark.sluicegate.executors)"
        if seen.scan_only or seen.led:
            return f"its source gives {most} tasks (spark.sluicegate.split=true allows more)"
        if self.query.stateful:
            return f"its state has {most} partitions (sluicegate repartition, on the stopped query)"
        return (
            f"its shuffle has {most} tasks; if adaptive execution joins its partitions, "
            "spark.sql.adaptive.coalescePartitions.enabled=false gives it more"
        )


def _infeasible(decision: Decision, name: str) -> tuple[Refusal, ...]:
    """SLOs that no number of processors within the limits meets; the plan in that case comes nearest."""
    if decision.proposal is None or decision.proposal.feasible:
        return ()
    told = [reason for reason in decision.proposal.reasons if "out of reach" in reason]
    return tuple(Refusal("promise", reason if name in reason else f"{name}: {reason}") for reason in told)
