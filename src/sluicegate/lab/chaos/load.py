"""The load during fault injection: rows at a rate that jumps, and task counts changed as if by hand."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import replace
from types import TracebackType

from sluicegate.errors import SluicegateError
from sluicegate.lab.running.app import App
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.pipeline.graph import RunningGraph

_FEED_S = 0.5
_LEVELS = (0.0, 0.3, 1.0, 1.0, 2.0, 3.0)
"""Multiples of the calm rate; 0 is a pause."""
_LEVEL_S = (1.0, 5.0)
_MOVE_S = (0.5, 4.0)


class JumpingLoad:
    """Feeds all sources and changes task counts (k), each in its own thread, also while the driver is down."""

    def __init__(self, app: App, layout: Layout, graph: RunningGraph, calm_per_s: float, slots: int, seed: int) -> None:
        self._app, self._layout, self._graph = app, layout, graph
        self._calm_per_s, self._slots, self._seed = calm_per_s, slots, seed
        self._feeds = {source: Feed(layout.edge(source)) for source in graph.sources}
        self._ended, self._soon = threading.Event(), threading.Event()
        self.problem: BaseException | None = None
        self.moves = 0
        self._owed_at_least = 0
        self._threads = [threading.Thread(target=self._guarded, args=(what,), daemon=True) for what in (0, 1)]

    def __enter__(self) -> JumpingLoad:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._soon.set()
        for thread in self._threads:
            thread.join()

    @property
    def fed(self) -> dict[str, int]:
        return {source: feed.rows for source, feed in self._feeds.items()}

    def feed_soon(self) -> None:
        """Feed at least one row to every source at once, whatever the rate is."""
        self._owed_at_least = 1
        self._soon.set()

    def move_one(self, rng: random.Random) -> str:
        """Change the task count of one operator in the plan; return a description of the change."""
        node = rng.choice(self._graph.nodes)
        plan = PlanFile(self._layout.plan)
        known = plan.read().of(node.name)
        most = min(node.key_groups if node.stateful else self._slots, self._slots)
        k = rng.choice([k for k in range(1, most + 1) if k != known.processors] or [known.processors])
        plan.change({node.name: replace(known, processors=k, shares=())})
        self.moves += k != known.processors
        return f"{node.name} {known.processors} -> {k}"

    def regroup_one(self, rng: random.Random) -> str | None:
        """Request another number of key groups for one stateful operator; ``None`` if there is none."""
        stateful = [node for node in self._graph.nodes if node.stateful and node.source is None]
        if not stateful:
            return None
        node = rng.choice(stateful)
        plan = PlanFile(self._layout.plan)
        known = plan.read().of(node.name)
        have = known.key_groups or node.key_groups
        # never fewer than declared: more tasks than key groups would be refused
        want = rng.choice([n for n in range(node.key_groups, node.key_groups + 6) if n != have])
        plan.change({node.name: replace(known, key_groups=want, groups=())})
        self.moves += 1
        return f"key groups of {node.name} to {want}"

    def set_executors(self, count: int) -> None:
        """Request ``count`` executors in the plan; the controller may change it at its next tick."""
        plan = PlanFile(self._layout.plan)
        known = plan.read()
        plan.write(replace(known, version=known.version + 1, executors=count))
        self.moves += 1

    def _guarded(self, what: int) -> None:
        try:
            (self._feed if what == 0 else self._move)()
        except BaseException as problem:
            self.problem = problem

    def _move(self) -> None:
        rng = random.Random(f"{self._seed} moves")
        while not self._ended.wait(rng.uniform(*_MOVE_S)):
            try:
                self.move_one(rng)
            except (OSError, ValueError):
                continue

    def _feed(self) -> None:
        rng, owed, until_s, rate = random.Random(f"{self._seed} load"), 0.0, 0.0, 0.0
        at_s = time.monotonic()
        while not self._ended.is_set():
            self._soon.wait(_FEED_S)
            self._soon.clear()
            now_s = time.monotonic()
            if now_s >= until_s:
                rate, until_s = self._calm_per_s * rng.choice(_LEVELS), now_s + rng.uniform(*_LEVEL_S)
            owed += rate * (now_s - at_s)
            at_s, count = now_s, max(int(owed), self._owed_at_least)
            owed, self._owed_at_least = max(owed - count, 0.0), 0
            if count:
                for source, feed in self._feeds.items():
                    self._append(source, feed, count)

    def _append(self, source: str, feed: Feed, count: int) -> None:
        """Append rows; while the files of the source are damaged skip, and feed the same rows after the repair."""
        assert self._app.rows is not None
        try:
            feed.append(self._app.rows(source, feed.rows, count))
        except SluicegateError:
            self._ended.wait(_FEED_S)
