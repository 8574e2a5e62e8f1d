"""`headgate dashboard`: a run in the browser, live or after it ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def dashboard(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the pipeline lives (`headgate run --folder`).")
    ],
    port: Annotated[int, typer.Option(help="Where it listens; 0: any port that is free.")] = 8642,
    host: Annotated[
        str, typer.Option(help="Beyond this machine (0.0.0.0) a token is needed, and printed.")
    ] = "127.0.0.1",
) -> None:
    """Show a run in the browser: topology, latency, load, processors, every decision, and what would be."""
    # This process has loaded the compiled models, 150 MB; a dashboard needs none, so it takes this one's place.
    os.execv(
        sys.executable,
        [sys.executable, "-m", "headgate.dashboard", f"--port={port}", f"--host={host}", "--", str(folder)],
    )
