"""What the controller of an attached application costs as the number of its queries grows.

    python benchmarks/attach_many.py [--queries 1,10,100] [--seconds 40]

No Spark: a synthetic driver writes the record that the plugin writes (a batch of every query every two seconds, which
takes what the law says for the k in the plan, under a load that swings), and the real controller process runs over it.
Measured after it has settled: its share of a core, processor time a look, resident memory, bytes of the log a look, and
how late looks come that are due every two seconds. What bounds it: each query is a loop of its own, so a look costs in
proportion to the queries.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import results
from cpu import cpu_s, memory_mb
from sluicegate.runlog.files import write_whole

EVERY_S, SETTLE_S = 2.0, 12.0
OVERHEAD_S, PER_TASK_S, PER_S = 0.2, 0.02, 200.0
"""The law of the synthetic batches: b = o + c k + n/(k mu)."""
SETTINGS = {"slo": "mean=3s", "executors": "1:400", "interval_s": str(EVERY_S)}


class Driver(threading.Thread):
    """Writes what the plugin of an application with ``count`` queries would."""

    def __init__(self, folder: Path, count: int) -> None:
        super().__init__(daemon=True)
        self.folder, self.names, self.batch = folder, [f"query{number}" for number in range(count)], 0
        self.ended = threading.Event()
        node = {"active": True, "stateful": True, "key_groups": 8, "terminal": True, "source": None}
        nodes = [{**node, "name": name, "reads": [f"{name}-in"], "writes": [f"{name}-out"]} for name in self.names]
        settings = {**SETTINGS, "folder": str(folder)}
        self._whole("application.json", {"name": "app", "touches": True, "no_executors": None, "settings": settings})
        self._whole("pipeline.json", {"name": "app", "attached": True, "sources": [], "kept": [], "nodes": nodes})
        self.round(time.time())

    def run(self) -> None:
        while not self.ended.wait(EVERY_S):
            self.round(time.time())

    def round(self, now_s: float) -> None:
        """A batch of every query, with the tasks and executors that the plan says."""
        planned = self._plan()
        executors = int(planned.get("executors") or len(self.names))
        ground = {"at_s": now_s, "slots": executors, "executor_cores": 1, "executors": executors}
        self._whole("nodes.json", {**ground, "busy": {}, "loads": []})
        for number, name in enumerate(self.names):
            k = int(planned.get("operators", {}).get(name, {}).get("processors", 1))
            self._batch(name, now_s, round(EVERY_S * 100 * (2 + math.sin(self.batch / 5 + number))), k)
        self.batch += 1

    def _batch(self, name: str, now_s: float, rows: int, k: int) -> None:
        took_s = OVERHEAD_S + PER_TASK_S * k + rows / PER_S / k
        line: dict[str, Any] = {
            "batch": self.batch,
            "started_s": now_s - took_s,
            "published_s": now_s,
            "duration_s": took_s,
            "rows": rows,
            "rows_out": rows,
            "processors": k,
            "entered_s": None,
            "born": [],
            "cold": self.batch < 2,
            "work_s": rows / PER_S,
            "task_s": [],
            "tasks": k,
            "slots": k,
            "trigger_s": 0.0,
            "sources": [{"name": "in", "kafka": False, "rows": rows}],
            "stages": [],
        }
        log = self.folder / "operators" / name / "batches.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _plan(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def _whole(self, name: str, document: dict[str, Any]) -> None:
        write_whole(self.folder / name, json.dumps(document))


def measured(count: int, seconds: float) -> dict[str, float]:
    """The controller's process over a driver of ``count`` queries, once it has settled."""
    with tempfile.TemporaryDirectory(prefix="attach-many-") as home:
        folder = Path(home) / "record"
        folder.mkdir()
        driver = Driver(folder, count)
        driver.start()
        words = [sys.executable, "-m", "sluicegate.spark.attach.controller", str(folder), f"--parent={os.getpid()}"]
        environment = {**os.environ, "SLUICEGATE_HOME": home}
        controller = subprocess.Popen(words, env=environment)
        try:
            _wait_for(folder / "ticks.jsonl", controller)
            time.sleep(SETTLE_S)
            first = (time.monotonic(), cpu_s(controller.pid), *_looks(folder))
            time.sleep(seconds)
            last = (time.monotonic(), cpu_s(controller.pid), *_looks(folder))
            memory = memory_mb(controller.pid)
            if controller.poll() is not None:
                raise RuntimeError("the controller ended: see above")
            moves = (folder / "decisions.jsonl").read_text().count("\n")
        finally:
            driver.ended.set()
            driver.join()
            controller.terminate()
            controller.wait()
    took_s, used_s, looks, written = (b - a for a, b in zip(first, last, strict=True))
    return {
        "share_of_a_core": used_s / took_s,
        "look_ms": 1e3 * used_s / max(looks, 1),
        "memory_mb": memory,
        "look_kb": written / 1e3 / max(looks, 1),
        "every_s": took_s / max(looks, 1),
        "moves": moves,
    }


def _wait_for(path: Path, controller: subprocess.Popen[bytes], most_s: float = 300.0) -> None:
    until_s = time.monotonic() + most_s
    while not path.exists():
        if controller.poll() is not None or time.monotonic() > until_s:
            raise RuntimeError(f"the controller wrote no {path.name} in {most_s:g} s: see above")
        time.sleep(0.2)


def _looks(folder: Path) -> tuple[int, int]:
    """Looks logged so far, and their bytes."""
    text = (folder / "ticks.jsonl").read_bytes()
    return text.count(b"\n"), len(text)


def main(queries: str, seconds: float) -> None:
    for count in map(int, queries.split(",")):
        found = measured(count, seconds)
        results.record("attach_many", queries=count, seconds=seconds, **found)
        print(count, {name: round(value, 3) for name, value in found.items()}, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", default="1,10,100")
    parser.add_argument("--seconds", type=float, default=40.0)
    main(**vars(parser.parse_args()))
