"""The demo with nothing beside it and with one busy loop at normal priority on the same machine, in turns.

    python benchmarks/demo_beside_work.py [--runs 3] [--seconds 120]

The demo promises by what a batch takes on this machine while it warms up, so the promise itself is part of the figures.
What bounds it: a busy loop takes one of two cores; tasks that wait need none, but planning and committing a batch does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120.0)
    asked = parser.parse_args()
    for _ in range(asked.runs):
        for beside in ("nothing", "a busy loop"):
            run = demo(asked.seconds, beside != "nothing")
            results.record("demo", beside=beside, **run)
            print(
                f"beside {beside}: promised {run['promise']}, kept for {run['kept']:.1%} of {run['rows']:,} rows, "
                f"{run['slots_vs_peak']:.2f} of a fixed peak's slot-seconds, {run['moves']} moves, "
                f"exact {run['exact']}",
                flush=True,
            )


def demo(seconds: float, busy: bool) -> dict[str, object]:
    command = [str(Path(sys.executable).with_name("sluicegate")), "demo", "--no-browser", "--json"]
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        with tempfile.TemporaryDirectory() as folder:
            words = [*command, "--seconds", f"{seconds:g}", "--html", str(Path(folder) / "demo.html")]
            said = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout)
    finally:
        if loop is not None:
            loop.kill()
            loop.wait()
    return {
        "promise": ", ".join(f"{name} <= {bound:g} s" for name, bound in said["goal"].items()),
        "kept": said["slo_kept"],
        "rows": said["rows_in"],
        "mean_s": said["mean_s"],
        "p95_s": said["p95_s"],
        "slots_vs_peak": said["slot_seconds"] / said["slot_seconds_static_peak"],
        "moves": said["rescales"],
        "exact": said["answer_exact"],
    }


if __name__ == "__main__":
    main()
