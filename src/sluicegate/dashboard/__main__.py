"""``python -m sluicegate.dashboard FOLDER``: the process that ``sluicegate.dashboard.child`` starts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sluicegate.dashboard.server import HOST, PORT, serve
from sluicegate.errors import SluicegateError


def main() -> int:
    """Serve until stopped; returns the exit code."""
    parser = argparse.ArgumentParser(prog="sluicegate dashboard", description="Show a run in the browser.")
    parser.add_argument("folder", type=Path, help="where the pipeline lives")
    parser.add_argument("--port", type=int, default=PORT, help="0: any that is free")
    parser.add_argument("--host", default=HOST, help="beyond this machine a token is needed, and printed")
    parser.add_argument("--with-parent", action="store_true", help="end when the process that started it is gone")
    given = parser.parse_args()
    try:
        serve(given.folder, given.host, given.port, given.with_parent)
    except SluicegateError as problem:
        sys.stderr.write(f"sluicegate: {problem}\n")
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
