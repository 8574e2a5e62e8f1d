"""What a slot is and how its processes are found, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys

from sluicegate.lab.profile.slot import SlotSize, below


def test_all_processes_below_one_are_found_those_they_start_too() -> None:
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=subprocess.PIPE) as started:
        found: list[int] = []
        while len(found) < 2:
            found = [pid for pid in below(os.getpid()) if pid == started.pid or pid in set(below(started.pid))]
        assert started.pid in found
        started.communicate(b"\n")
    assert started.pid not in set(below(os.getpid()))


def test_a_slot_is_one_executor_with_half_of_its_memory_for_java() -> None:
    size = SlotSize(tasks=4, memory_mb=1000)
    assert size.master == "local-cluster[1,4,1000]"
    assert size.settings["spark.executor.memory"] == "500m"
    assert size.settings["spark.executor.cores"] == "4"
