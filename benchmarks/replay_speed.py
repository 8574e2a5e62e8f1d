"""How long 10 policies x 5 runs x 10,080 minutes take on all local cores, and what working things out once saves.

python benchmarks/replay_speed.py [cycle|free]

Wall time depends on what else the machine does, so processor time is given beside it; the ratio is one of processor
times, after a first pass that compiles.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import results
from sluicegate.lab.replay.jobs import run_one
from sluicegate.lab.replay.replay import ReplayOptions, jobs_of, play, replay
from sluicegate.lab.replay.world import DEFAULT_POINTS, PROTOCOLS, truth_of

POLICIES = (
    "on-time",
    "recent-peak",
    "recent-peak-hindsight",
    "hindsight",
    "static-peak",
    "uncertainty-0",
    "uncertainty-5",
    "uncertainty-7",
    "ds2",
    "hpa",
)
STEPS, RUNS, SAMPLE = 10_080, 5, 1_000


def week(steps: int, seed: int = 0) -> NDArray[np.float64]:
    """A daily swing, slow drift, noise and a few bursts; no unit."""
    rng = np.random.default_rng(seed)
    t = np.arange(steps)
    load = 100 + 60 * np.sin(2 * np.pi * t / 1440) + np.cumsum(rng.normal(0, 0.3, steps)) + rng.normal(0, 5, steps)
    for start in rng.integers(0, steps, max(1, steps // 1500)):
        load[start : start + 30] *= 1.8
    return np.maximum(load, 5.0)


def main() -> None:
    protocol = PROTOCOLS[sys.argv[1] if len(sys.argv) > 1 else "cycle"]
    truth, options = truth_of(DEFAULT_POINTS), ReplayOptions(POLICIES, protocol, runs=RUNS)
    cores = os.cpu_count() or 1
    began = time.perf_counter()
    replay([("week", week(STEPS))], truth, options, workers=cores)
    took = time.perf_counter() - began
    used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    size = f"{len(POLICIES)} policies x {RUNS} runs x {STEPS:,} minutes"
    print(f"{protocol.name}: {size}: {took:.1f} s on {cores} cores, {used:.1f} s of processor time")
    jobs = jobs_of("week", week(SAMPLE) * 100, truth, options)
    one_by_one = [replace(job, runs=(run,)) for job in jobs for run in job.runs]
    play(jobs)
    began = time.process_time()
    play(jobs)
    shared = time.process_time() - began
    began = time.process_time()
    for job in one_by_one:
        run_one(job)
    alone = time.process_time() - began
    results.record("replay_speed", protocol=protocol.name, wall_s=took, cpu_s=used, ratio=alone / shared)
    print(
        f"{SAMPLE:,} minutes on one core: {shared:.1f} s with forecasts and load-only policies worked out once, "
        f"{alone:.1f} s without, ratio {alone / shared:.2f}"
    )


if __name__ == "__main__":
    main()
