"""What an on-time promise costs on load traces, and what bounds it: the tables of docs/benchmarks.md, by one command.

    nice -n 19 python benchmarks/trace_frontier.py TRACE...

    --minutes N   of each trace, from its start (10080)      --runs N      draws of the capacity (3)
    --json FILE   (out/trace_frontier.json)                  --workers N   processes (as many as cores; 0 runs nothing)
    --brief       only the first table: long traces take long

Every figure goes to the JSON file as soon as it is known; figures in it that still hold are not worked out again, so
that a study that was killed goes on where it was (frontier_cells says when they hold). The tables are printed:

    on-time beside recent peak chosen in hindsight, and which of the three aims hold
    on-time told other targets, and bounds that know the true curve and the best price of a late step
    the paper's policies 0 to 7, and whether their order is kept; the peers
    what on-time costs where it is on time as often as each of them: below 1 it is ahead
    the same against recent peak chosen in hindsight for each of five targets
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import islice
from pathlib import Path

from frontier_cells import cells
from frontier_store import filled
from frontier_tables import tables
from sluicegate.errors import SluicegateError


def main() -> None:
    asked = _arguments()
    try:
        rows = filled(asked.json, cells(asked.traces, asked.minutes, asked.runs, asked.brief), asked.workers)
    except SluicegateError as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.exit_code)
    print(f"First {asked.minutes:,} minutes at most, {asked.runs} runs, seed 0, capacity of no file.\n")
    found = tables([trace.stem for trace in asked.traces], rows)
    print("\n\n".join("\n".join(table) for table in islice(found, 2 if asked.brief else None)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What an on-time promise costs on load traces, and what bounds it.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    parser.add_argument("--minutes", type=int, default=10_080)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, default=Path("out/trace_frontier.json"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--brief", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
