"""One attached query under the loop: observed, ticked, and what it wants of the processors that all share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sluicegate.control import loop
from sluicegate.control.loop import LoopState
from sluicegate.domain import Decision, Limits, Observation, Refusal, Rescale
from sluicegate.policy.demand import stations_of
from sluicegate.policy.sharing import Claim
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.application import Application, ApplicationGround, Query
from sluicegate.spark.attach.observing import Planned, QueryObserver
from sluicegate.spark.controller import Control, settings_of

STARTUP_S = 15.0
"""From asking for an executor to its first warm task, as for pipelines."""
_NEVER_FOLLOWED = 2


@dataclass(slots=True)
class Lane:
    """``promised``: its tasks may be moved. ``stuck`` counts plans that its stages did not follow."""

    query: Query
    observer: QueryObserver
    state: LoopState
    promised: bool
    stuck: int = 0
    seen: Observation | None = None
    decision: Decision | None = None
    planned: Planned | None = None

    @classmethod
    def of(cls, layout: Layout, application: Application, query: Query, budget: int, moves_executors: bool) -> Lane:
        options = application.options
        slo = options.slo_of(query.name)
        control = Control(
            options.policy,
            slo,
            budget,
            interval_s=options.interval_s,
            dry_run=options.observes_only,
            startup_s=STARTUP_S if moves_executors else 0.0,
        )
        state = loop.start(settings_of(query.graph(application.name), control))
        return cls(query, QueryObserver.of(layout, query.name), state, bool(slo))

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def movable(self) -> bool:
        """Whether the plan may say anything of it: it has a promise, told of a batch, and follows what is planned."""
        return self.promised and bool(self.observer.learned) and self.stuck < _NEVER_FOLLOWED

    @property
    def running(self) -> int:
        return self.seen.running.get(self.name, 0) if self.seen else 0

    @property
    def wants(self) -> int:
        return self.decision.running.get(self.name, self.running) if self.decision else self.running

    def tick(self, now_s: float, ground: ApplicationGround, query: Query, budget: int) -> Decision:
        """Observe and decide for this query alone; what all may have together is settled after."""
        self.query = query
        self._bound(budget)
        self.seen = replace(
            self.observer.observe(now_s, ground.busy.get(self.name, False), self.planned), nodes=ground.nodes
        )
        self.state, decision = loop.tick(self.state, self.seen, now_s)
        self._notice_stuck(now_s)
        if self.seen.rescaling and self.planned is not None:
            decision = self._under_way(decision, self.planned.processors)
        if not self.movable and decision.rescales:
            decision = replace(decision, running=self.seen.running, rescales=(), refusals=(Refusal(*self._why_not()),))
        self.decision = replace(decision, refusals=(*decision.refusals, *self._out_of_reach()))
        return self.decision

    def _out_of_reach(self) -> tuple[Refusal, ...]:
        """A promise that the user's own trigger interval breaks, whatever runs."""
        every_s = float((self.observer.last or {}).get("trigger_s") or 0.0)
        starts = f"starts a batch every {every_s:g} s"
        waits_s = {"mean": 0.5 * every_s, "p50": 0.5 * every_s, "p95": 0.95 * every_s, "p99": 0.99 * every_s}
        return tuple(
            Refusal("trigger", f"{what} <= {bound_s:g} s is out of reach: {self.name} {starts}")
            for what, bound_s in self.state.settings.goal.latency_bounds.items()
            if waits_s.get(what, 0.0) >= bound_s
        )

    def _under_way(self, decision: Decision, planned: int) -> Decision:
        """What is not there yet is still wanted; more may be asked for meanwhile, since executors take time to come."""
        proposed = decision.proposal.processors.get(self.name, 0) if decision.proposal else 0
        want = max(planned, self.state.settings.limits.clamp(self.name, proposed))
        if want == planned:
            return replace(decision, running={self.name: planned}, rescales=())
        reasons = decision.proposal.reasons if decision.proposal else ()
        moved = Rescale(self.name, planned, want, f"{planned} -> {want} while the last change is under way")
        return replace(decision, running={self.name: want}, rescales=(moved,), reasons=reasons)

    def claim(self) -> Claim:
        """What it wants, and what it would have of more or fewer."""
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

    def settle(self, processors: int, why: str) -> None:
        """Take what the others leave."""
        if self.decision is None or processors == self.wants:
            return
        have = self.running
        moved = () if processors == have else (Rescale(self.name, have, processors, why),)
        self.decision = replace(
            self.decision, running={self.name: processors}, rescales=moved, reasons=(why, *self.decision.reasons)
        )

    def _bound(self, budget: int) -> None:
        """Never more tasks than state partitions; without state, than the source gives."""
        most = self.query.partitions if self.query.stateful else max(self.observer.most_tasks, 1)
        limits = Limits(budget=budget, most_of={self.name: max(most, 1)})
        if limits != self.state.settings.limits:
            self.state = replace(self.state, settings=replace(self.state.settings, limits=limits))

    def _notice_stuck(self, now_s: float) -> None:
        """What was planned does not come: where the tasks came and only executors lack, it is asked for again."""
        planned, seen, last = self.planned, self.seen, self.observer.last
        if planned is None or seen is None or last is None or seen.rescaling or self.running == planned.processors:
            return
        self.stuck += int(last["tasks"]) != planned.processors
        self.planned = Planned(self.running, now_s)

    def plan(self, processors: int | None, now_s: float) -> None:
        """What the plan in force says of it from now on."""
        if processors is None:
            self.planned = None
        elif self.planned is None or self.planned.processors != processors:
            self.planned = Planned(processors, now_s)

    def _why_not(self) -> tuple[str, str]:
        if not self.promised:
            return "promise", f"{self.name} has no promise: set spark.sluicegate.query.{self.name}.slo"
        if not self.observer.learned:
            return "metrics", f"no batch of {self.name} yet: it stays as it is"
        return "tasks", f"the stages of {self.name} do not follow the plan: they stay as Spark has them"
