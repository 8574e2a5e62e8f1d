"""How long MBA and SAM take, and how that grows: up to 10^4 tasks and 10^5 threads.

    python benchmarks/pack_and_place.py

Tasks are drawn with a fixed seed from five kinds of profile, on a random tree. Exit code 1 if the largest size takes
3 s or more, planning, mapping and extra slots together.
"""

from __future__ import annotations

import random
import resource
import sys
import time

import results
from sluicegate.domain import Edge, Observation, Operator, ProfilePoint, Situation, TaskProfile, Topology
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.sam import Sam
from sluicegate.policy.papers.mba import Mba

SIZES = (1_000, 3_000, 10_000)
LIMIT_S = 3.0
KINDS: tuple[tuple[tuple[int, float, float, float], ...], ...] = (
    ((1, 300.0, 0.85, 0.36),),
    ((1, 100.0, 0.92, 0.02), (2, 112.0, 0.95, 0.04)),
    ((1, 60_000.0, 0.58, 0.12), (2, 50_000.0, 0.52, 0.03)),
    ((1, 2.0, 0.07, 0.24), (5, 6.0, 0.12, 0.26), (10, 13.0, 0.40, 0.28), (20, 24.0, 0.77, 0.31)),
    ((1, 3.0, 0.01, 0.01), (4, 9.0, 0.11, 0.03), (15, 25.0, 0.30, 0.10), (30, 40.0, 0.54, 0.16)),
)


def drawn(tasks: int, seed: int) -> Situation:
    """A random tree of tasks, each with a rate of up to two slots' worth."""
    rng = random.Random(seed)
    names = [f"task-{i}" for i in range(tasks)]
    operators = []
    rates = {}
    for name in names:
        profile = TaskProfile(name, tuple(ProfilePoint(*point) for point in rng.choice(KINDS)))
        operators.append(Operator(name, profile.points[0].rate_per_s, profile=profile))
        rates[name] = rng.uniform(0.0, 2.0) * max(point.rate_per_s for point in profile.points)
    edges = [Edge("source", names[0])]
    edges += [Edge(names[rng.randrange(max(0, i - 8), i)], names[i]) for i in range(1, tasks)]
    topology = Topology("random", tuple(operators), tuple(edges))
    return Situation(0.0, topology, Observation(0.0, 1.0, {}), 1.0, rates)


def measured(tasks: int) -> float:
    situation = drawn(tasks, seed=tasks)
    start = time.perf_counter()
    _, proposal = Mba().propose(None, situation)
    planned = time.perf_counter()
    placement = place_with_extra_slots(Sam(), situation.topology, proposal.bundles, proposal.slots or 0)
    end = time.perf_counter()
    print(
        f"{tasks:6} tasks  {proposal.total:7} threads  {len(proposal.bundles):6} bundles  {len(placement.slots):6} "
        f"slots ({placement.extra_slots} extra)  MBA {planned - start:.3f} s  SAM {end - planned:.3f} s"
    )
    results.record(
        "packing",
        tasks=tasks,
        threads=proposal.total,
        slots=len(placement.slots),
        mba_s=planned - start,
        sam_s=end - planned,
    )
    return end - start


def main() -> int:
    seconds = [measured(tasks) for tasks in SIZES]
    for small, large, before, after in zip(SIZES, SIZES[1:], seconds, seconds[1:], strict=False):
        print(f"{large / small:.1f} times the tasks: {after / before:.1f} times the seconds")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process {peak_mb:.0f} MB; largest size {seconds[-1]:.2f} s, limit {LIMIT_S:g} s")
    return 0 if seconds[-1] < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
