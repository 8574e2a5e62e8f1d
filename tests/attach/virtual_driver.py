"""An application in virtual time: obeys plan.json as Spark would and writes what the driver's plugin would. No Spark.

Minutes of a load pass in seconds, the same ones for the same seed, so that what a controller makes of a load can be
asked of many loads. Batches follow b = o + c k + n/(k mu); executors take ``startup_s`` to come and leave at once. One
that comes takes over tasks of the batch under way, if that was cut into more than there were processors.
"""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.application import Application
from sluicegate.spark.attach.controller import AttachController

T0 = 4_000_000_000.0
STEP_S = 0.1
_LOOK_S = 2.0
_PARTITIONS = 8


class VirtualQuery:
    """A query that reads Kafka; ``load`` gives rows a second at a time in seconds, ``noise`` its deviation.

    It has state, in stages that follow the plan. With ``reading`` tasks it has none, and 80% of its work is there: the
    rest is in two tasks behind a shuffle, however many are planned.
    """

    def __init__(
        self,
        load: Callable[[float], float],
        noise: float = 0.0,
        o: float = 0.2,
        c: float = 0.02,
        mu: float = 200.0,
        reading: int | None = None,
    ) -> None:
        self.load, self.noise, self.o, self.c, self.mu, self.reading = load, noise, o, c, mu, reading
        self.came, self.taken = 0.0, 0
        self.arrived: list[tuple[float, float]] = []
        self.batch, self.cold_until_s = 0, 0.0
        self.under_way: dict[str, Any] | None = None
        self.latencies: list[tuple[float, float]] = []

    def arrive(self, now_s: float, chance: random.Random) -> None:
        # the deviation is that of a second's rows
        factor = max(chance.gauss(1, self.noise / math.sqrt(STEP_S)), 0) if self.noise else 1.0
        self.came += self.load(now_s) * factor * STEP_S
        self.arrived.append((self.came, now_s))

    def begin(self, now_s: float, tasks: int, slots: int, chance: random.Random) -> None:
        if self.under_way is not None or int(self.came) <= self.taken:
            return
        rows, k = int(self.came) - self.taken, max(min(tasks, slots), 1)
        waves = math.ceil(tasks / k) * k / tasks
        took_s = (self.o + self.c * tasks + rows / (self.mu * k) * waves) * max(1 + 0.03 * chance.gauss(0, 1), 0.5)
        self.under_way = {"started_s": now_s, "ends_s": now_s + took_s, "rows": rows, "tasks": tasks, "k": k}
        self.under_way |= {"start": self.taken, "latest": int(self.came)}
        self.taken += rows

    def end(self, now_s: float, slots: int) -> dict[str, Any] | None:
        """The line of a batch that has ended."""
        batch = self.under_way
        if batch is None:
            return None
        if slots and (k := min(batch["tasks"], slots)) != batch["k"]:
            batch["ends_s"] = now_s + max(batch["ends_s"] - now_s, 0.0) * batch["k"] / k
            batch["k"] = k
        if now_s < batch["ends_s"]:
            return None
        took_s = batch["ends_s"] - batch["started_s"]
        self.under_way = None
        self._count(batch, now_s)
        work_s, tasks = batch["rows"] / self.mu, batch["tasks"]
        line = {
            "batch": self.batch,
            "started_s": batch["started_s"],
            "published_s": batch["ends_s"],
            "duration_s": took_s,
            "rows": batch["rows"],
            "rows_out": batch["rows"],
            "processors": max(min(tasks, slots), 1),
            "entered_s": None,
            "born": [],
            "cold": self.batch < 2 or batch["started_s"] < self.cold_until_s,
            "work_s": work_s,
            "task_s": [],
            "tasks": tasks,
            "slots": slots,
            "trigger_s": 0.0,
            "sources": [
                {
                    "name": "in",
                    "kafka": True,
                    "rows": batch["rows"],
                    "start": {"t": _spread(batch["start"])},
                    "end": {"t": _spread(batch["start"] + batch["rows"])},
                    "latest": {"t": _spread(batch["latest"])},
                }
            ],
            "stages": [
                {"tasks": tasks, "behind_shuffle": False, "run_s": (0.8 if self.reading else 0.2) * work_s},
                {"tasks": tasks, "behind_shuffle": True, "run_s": (0.2 if self.reading else 0.8) * work_s},
            ],
        }
        if self.reading:  # as the driver has it: the widest stage behind a shuffle
            line["stages"][1]["tasks"] = line["tasks"] = 2
            line["processors"] = max(min(2, slots), 1)
        self.batch += 1
        return line

    def _count(self, batch: dict[str, Any], now_s: float) -> None:
        """The true latency of about a tenth of the rows of a batch."""
        rows = max(batch["rows"] // 10, 1)
        for row in range(batch["start"], batch["start"] + batch["rows"], max(batch["rows"] // rows, 1)):
            at = bisect_left(self.arrived, (row + 1, 0.0))
            self.latencies.append((now_s, now_s - self.arrived[min(at, len(self.arrived) - 1)][1]))

    def kept(self, bound_s: float, since_s: float = 0.0) -> float:
        """The share of rows that came out within ``bound_s``, of those that did after ``since_s``."""
        known = [latency <= bound_s for at_s, latency in self.latencies if at_s >= since_s]
        return sum(known) / len(known)


def _spread(count: float) -> dict[str, int]:
    return {str(i): int(count / _PARTITIONS) for i in range(_PARTITIONS)}


class VirtualApplication:
    """Queries on executors of one core; ``moves`` are the numbers of executors asked for, with their times."""

    def __init__(
        self, folder: Path, queries: dict[str, VirtualQuery], slo: str, executors: str, startup_s: float = 8.0
    ) -> None:
        self._folder, self._queries, self._startup_s = folder, queries, startup_s
        self._chance, self._now_s, self._look_s = random.Random(1), 0.0, 0.0
        self.executors, self._coming = 1, list[float]()
        self.executor_s, self.moves = 0.0, list[tuple[float, int]]()
        folder.mkdir()
        settings = {"executors": executors, "folder": str(folder), "interval_s": str(_LOOK_S), "slo": slo}
        self._whole("application.json", {"name": "app", "touches": True, "no_executors": None, "settings": settings})
        node = {"active": True, "stateful": True, "key_groups": 32, "terminal": True, "source": None}
        nodes = [
            {**node, "name": name, "reads": [f"{name}-in"], "writes": [f"{name}-out"], "stateful": not query.reading}
            for name, query in queries.items()
        ]
        self._whole("pipeline.json", {"name": "app", "attached": True, "sources": [], "kept": [], "nodes": nodes})
        self._describe()
        self._layout = Layout(folder)
        self._controller = AttachController(self._layout, Application.read(self._layout))

    def play(self, seconds: float, strike: Callable[[float, VirtualApplication], None] | None = None) -> None:
        """Let time pass; ``strike`` is called at every step and may do harm."""
        for _ in range(round(seconds / STEP_S)):
            self._now_s = round(self._now_s + STEP_S, 3)
            if strike:
                strike(self._now_s, self)
            plan = json.loads(self._layout.plan.read_text()) if self._layout.plan.exists() else {}
            self._provide(plan.get("executors", 0))
            for name, query in self._queries.items():
                self._step(name, query, plan.get("operators", {}).get(name, {}))
            if self._now_s >= self._look_s:
                self._describe()
                for name, query in self._queries.items():
                    latest, taken = _spread(query.came), _spread(query.taken)
                    told: dict[str, Any] = {"at_s": T0 + self._now_s, "tasks": _PARTITIONS}
                    told |= {"latest": {f"0/t/{i}": n for i, n in latest.items()}}
                    told |= {"taken": {f"0/t/{i}": n for i, n in taken.items()}}
                    self._append(self._layout.source(name), told)
                self._controller.step(T0 + self._now_s)
                self._look_s += _LOOK_S

    def lose(self, executors: int) -> None:
        """Executors die; the master replaces them in its time."""
        self.executors = max(self.executors - executors, 0)

    def turns_since(self, since_s: float) -> int:
        """How often a number went down that had gone up, or up that had gone down."""
        ups = [b > a for (_, a), (at_s, b) in pairwise(self.moves) if at_s >= since_s]
        return sum(a != b for a, b in pairwise(ups))

    def _provide(self, wanted: int) -> None:
        if not wanted:
            return
        if not self.moves or self.moves[-1][1] != wanted:
            self.moves.append((self._now_s, wanted))
        self.executors = min(self.executors, wanted)
        missing = wanted - self.executors
        self._coming = self._coming[:missing] + [self._now_s + self._startup_s] * (missing - len(self._coming))
        came = [at_s for at_s in self._coming if at_s <= self._now_s]
        if came:
            self._coming = [at_s for at_s in self._coming if at_s > self._now_s]
            self.executors += len(came)
            for query in self._queries.values():
                query.cold_until_s = self._now_s + 5.0
        self.executor_s += self.executors * STEP_S

    def _step(self, name: str, query: VirtualQuery, planned: dict[str, Any]) -> None:
        query.arrive(self._now_s, self._chance)
        line = query.end(self._now_s, self.executors)
        if line is not None:
            line |= {"started_s": T0 + line["started_s"], "published_s": T0 + line["published_s"]}
            self._append(self._layout.batches(name), line)
        if query.reading:
            tasks = min(planned.get("stages", {}).get("scan", query.reading), query.reading)
        else:
            tasks = planned.get("stages", {}).get("state", planned.get("processors", 0)) or 32
        if self.executors:
            query.begin(self._now_s, min(tasks, 32), self.executors, self._chance)

    def _describe(self) -> None:
        busy = {name: query.under_way is not None for name, query in self._queries.items()}
        ground = {"at_s": T0 + self._now_s, "slots": self.executors, "executor_cores": 1, "executors": self.executors}
        self._whole("nodes.json", {**ground, "busy": busy, "loads": [], "files": {}})

    def _whole(self, name: str, document: dict[str, Any]) -> None:
        (self._folder / name).write_text(json.dumps(document))

    def _append(self, path: Path, document: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(document) + "\n")
