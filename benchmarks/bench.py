"""All benchmarks with one command: `make bench`, or some: `make bench ONLY=live`, `ONLY=planning,edges`.

    python benchmarks/bench.py [--only GROUP_OR_PART,...|all] [--list] [--keep] [--repeats N]

Every part is a script of its own that appends lines to benchmarks/results; docs/benchmarks.md is made of all lines at
the end. Without a name all parts run that give a table in minutes, about eighty minutes on two cores; those that
need longer to say anything (``asked_for``) run when they are named, or with ``all``. A part that fails is named, the
others go on, and the exit code is 1. ``--keep`` adds to what an earlier run measured instead of replacing it, and
``--repeats`` runs each part several times: more repeats of the same, for medians. What each part took is recorded, and
the next run's time left is told by it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import page
import results
from turns import end_as_by_ctrl_c, to_its_end

HERE = Path(__file__).resolve().parent
_ONCE_SHORTER = ("--repeats", "1", "--calm", "30", "--peak", "45", "--after", "75")
"""Of attached loads: an arm takes its time and some 40 s to start and to warm up."""
_TWO_APPS = ("--apps", "linear_waiting,shop", "--rounds", "1", "--seconds", "15")


@dataclass(frozen=True, slots=True)
class Part:
    """One script; ``minutes`` is what it takes on two cores, until a run on this machine has been timed."""

    name: str
    group: str
    minutes: float
    words: tuple[str, ...]
    asked_for: bool = False
    """Only run when it is named: it takes long, and cut short it would say nothing."""


PARTS: tuple[Part, ...] = (
    Part("planning", "planning", 0.3, ("drs_speed.py",)),
    Part("packing", "planning", 0.2, ("pack_and_place.py",)),
    Part("tick", "planning", 0.4, ("tick_speed.py",)),
    Part("scale", "planning", 0.4, ("scale.py",)),
    Part("simulator", "lab", 1.5, ("simulator_speed.py",)),
    Part("replay_speed", "lab", 1.5, ("replay_speed.py",)),
    Part("demo", "live", 4.0, ("demo_beside_work.py", "--runs", "1", "--seconds", "75")),
    Part("live", "live", 12.0, ("live_elasticity.py", "--minutes", "12")),
    Part("drs_live", "live", 15.0, ("drs_live.py",), asked_for=True),
    Part("mc_levels", "live", 15.0, ("mc_levels.py",), asked_for=True),
    Part("edges", "edges", 1.5, ("edge_throughput.py", "8")),
    Part("checksums", "edges", 1.5, ("edge_checksums.py", "3")),
    Part("plain", "edges", 2.5, ("plain_query.py", "0.9")),
    Part("kafka_edges", "edges", 2.0, ("kafka_edges.py",)),
    Part("rescale", "state", 5.0, ("stateful_rescale.py",)),
    Part("repartition", "state", 3.0, ("state_parallelism.py",)),
    Part("recovery", "state", 1.5, ("recovery.py", "--rounds", "2")),
    Part("redeployment", "state", 2.0, ("redeployment.py", "--rounds", "1")),
    Part("losses", "state", 9.0, ("losses.py", "--rounds", "2"), asked_for=True),
    Part("backup_interval", "state", 3.0, ("backup_interval.py",)),
    Part("attach_at_rest", "attach", 2.5, ("attach_at_rest.py", "--rounds", "7")),
    Part("attach_controller", "attach", 2.5, ("attach_controller.py", "--seconds", "120")),
    Part("attach_many", "attach", 2.0, ("attach_many.py", "--seconds", "25")),
    Part("attach_triple_load", "attach", 9.5, ("attach_triple_load.py", *_ONCE_SHORTER)),
    Part("attach_partitions", "attach", 3.0, ("attach_partitions.py", "--batches", "3")),
    Part("attach_latency", "attach", 2.5, ("attach_latency.py", "--seconds", "25")),
    Part("realtime", "kafka", 4.0, ("realtime.py", "--seconds", "12")),
    Part("nexmark", "nexmark", 9.0, ("nexmark/run.py",)),
    Part("fidelity", "fidelity", 4.5, ("fidelity_of_apps.py", *_TWO_APPS)),
    Part("node_fidelity", "fidelity", 3.0, ("fidelity_of_nodes.py",)),
    Part("mst", "capacity", 32.0, ("mst_curves.py",), asked_for=True),
    Part("uncertainty_live", "capacity", 20.0, ("uncertainty_live.py",), asked_for=True),
    Part("model_driven", "capacity", 23.0, ("model_driven_live.py",), asked_for=True),
    Part("soak", "soak", 62.0, ("soak.py", "--minutes", "60"), asked_for=True),
    Part("backlog", "soak", 4.0, ("backlog.py",), asked_for=True),
)


def chosen(only: str | None) -> list[Part]:
    """The parts that are named, by part or group; without a name all but those that are to be asked for.

    >>> [part.name for part in chosen("state")]
    ['rescale', 'repartition', 'recovery', 'redeployment', 'losses', 'backup_interval']
    """
    if not only:
        return [part for part in PARTS if not part.asked_for]
    names = only.split(",")
    if unknown := [name for name in names if not any(name in (part.name, part.group, "all") for part in PARTS)]:
        there = ", ".join(dict.fromkeys(part.group for part in PARTS))
        sys.exit(f"no benchmark {', '.join(unknown)}: there are {there}, and the parts that --list shows; or all")
    return [part for part in PARTS if {part.name, part.group, "all"} & set(names)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="GROUP_OR_PART,...|all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args()
    end_as_by_ctrl_c()
    parts = chosen(asked.only)
    if asked.list:
        print(listed(list(PARTS) if asked.only is None else parts))
        return 0
    failed = run(parts, asked.keep, asked.repeats)
    page.write()
    print(f"docs/benchmarks.md is made of {results.RESULTS.name}/*.jsonl")
    if not asked.only:
        left = [part for part in PARTS if part not in parts]
        print(f"not run, {sum(map(minutes, left)):.0f} min: make bench ONLY={','.join(part.name for part in left)}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def listed(parts: Sequence[Part]) -> str:
    """A line a part, and the sum of those that run without being named."""
    lines = [
        f"{part.group:10} {part.name:18} {minutes(part):5.1f} min  {' '.join(part.words)}"
        + ("   (only when named)" if part.asked_for else "")
        for part in parts
    ]
    usual = sum(minutes(part) for part in parts if not part.asked_for)
    return "\n".join([*lines, f"{usual:.0f} min, and {sum(map(minutes, parts)) - usual:.0f} min of parts to be named"])


def minutes(part: Part) -> float:
    """What the part took when it last ran to its end with the same words on as many cores; else what is stated."""
    found = [
        line["minutes"]
        for line in results.read("took")
        if (line["name"], line["words"], line["machine"]["cores"]) == (part.name, list(part.words), os.cpu_count())
    ]
    return float(found[-1]) if found else part.minutes


def run(parts: Sequence[Part], keep: bool, repeats: int = 1) -> list[str]:
    """Run one after the other, all of them before any is repeated; the names of those that failed."""
    failed, pace = [], 1.0
    todo = [(part, keep or turn > 0) for turn in range(repeats) for part in parts]
    for number, (part, adds) in enumerate(todo):
        left = sum(minutes(one) for one, _ in todo[number:]) * pace
        print(f"== {part.name} ({number + 1} of {len(todo)}, about {left:.0f} min left)", flush=True)
        before, expected, began = results.taken(part.name), minutes(part), time.monotonic()
        if not adds:
            results.clear(part.name)
        words = [sys.executable, str(HERE / part.words[0]), *part.words[1:]]
        ok = to_its_end(words) == 0
        took = (time.monotonic() - began) / 60
        if ok:
            results.record("took", name=part.name, minutes=round(took, 2), words=part.words)
        else:
            failed.append(part.name)
            if not results.read(part.name):
                results.put_back(part.name, before)  # nothing came of it: what was known before stays
        # what is left is told by how this machine compares with the expected minutes
        pace = 0.5 * pace + 0.5 * max(0.2, took / max(expected, 0.01))
    return list(dict.fromkeys(failed))


if __name__ == "__main__":
    sys.exit(main())
