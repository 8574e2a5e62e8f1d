"""Twenty minutes of a pipeline under the loop: do the controller's memory, its processor time and the disk stay flat?

Usage: soak.py [MINUTES]

Word count at a load that goes up and down. Looked at every few seconds: the controller's resident memory, its share of
a core, and the bytes on the source's edge and in the operators' folders; what the sink keeps is left out, since it is
to grow. Flat: the last quarter's median is at most 5% above that of the second quarter.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import results
from cpu import command, cpu_s, memory_mb, tree
from sluicegate.lab.apps import wordcount
from sluicegate.lab.running.run_app import run_app
from sluicegate.runlog.layout import Layout
from sluicegate.spark.controller import Control
from sluicegate.spark.session import spark_session

EVERY_S = 5.0


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    spark = spark_session("local[4]", {"spark.driver.memory": "1g"})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "soak"
        watch = Watch(home)
        control = Control(slo=("mean=3s",), budget=4)
        told = run_app(wordcount.APP, spark, home, waves, minutes * 60, control)
        watch.end()
    spark.stop()
    print(f"exact: {told.answer.exact if told.answer else None}; {told.rows_in:,} rows, {told.rescales} moves")
    growth = {name: quarter(values, 3) / quarter(values, 1) for name, _, values in watch.columns()}
    memory, edge, disk = growth.values()
    results.record(
        "soak",
        minutes=minutes,
        memory_growth=memory,
        edge_growth=edge,
        disk_growth=disk,
        controller_share=watch.controller_share(),
        exact=told.answer.exact if told.answer else None,
    )
    for name, unit, values in watch.columns():
        early, late = quarter(values, 1), quarter(values, 3)
        flat = "flat" if late <= 1.05 * early else "grows"
        print(f"{name:28} second quarter {early:9.2f} {unit}, last {late:9.2f} {unit}: {late / early:.2f}, {flat}")
    print(f"controller's processor time: {watch.controller_share():.2%} of a core")


def waves(share: float) -> float:
    return 600.0 + 400.0 * math.sin(share * 16 * math.pi)


def quarter(values: list[float], number: int) -> float:
    size = len(values) // 4
    return statistics.median(values[number * size : (number + 1) * size])


class Watch:
    """Looks at a run from beside it."""

    def __init__(self, home: Path) -> None:
        self._layout, self._ended = Layout(home), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.memory: list[float] = []
        self.edges: list[float] = []
        self.operators: list[float] = []
        self._cpu: list[tuple[float, float]] = []
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def columns(self) -> list[tuple[str, str, list[float]]]:
        return [
            ("controller's memory", "MB", self.memory),
            ("the source's edge", "MB", self.edges),
            ("checkpoints and logs", "MB", self.operators),
        ]

    def controller_share(self) -> float:
        (first_s, first), (last_s, last) = self._cpu[len(self._cpu) // 4], self._cpu[-1]
        return (last - first) / (last_s - first_s)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            controller = next((pid for pid in tree(os.getpid()) if "sluicegate.spark.controller" in command(pid)), None)
            if controller is not None:
                self.memory.append(memory_mb(controller))
                self._cpu.append((time.time(), cpu_s(controller)))
                self.edges.append(megabytes(self._layout.edge("lines")))
                self.operators.append(megabytes(self._layout.folder / "operators"))


def megabytes(folder: Path) -> float:
    """Bytes under a folder whose files come and go: what is gone when it is looked at counts nothing."""
    total = 0
    for home, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(home) / name).stat().st_size
    return total / 1e6


if __name__ == "__main__":
    main()
