"""`sluicegate dashboard`: a run in the browser, live or after it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluicegate.dashboard.server import HOST, PORT, serve
from sluicegate.runlog.runs import find_run


def dashboard(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Folder of the run (default: the newest run).")
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = PORT,
    host: Annotated[str, typer.Option(help="Beyond this machine (0.0.0.0) a token is needed, and printed.")] = HOST,
) -> int:
    """Show a run in the browser: topology, latency, load, processors, every decision, and plans for other loads."""
    serve(find_run(folder), host, port)
    return 0
