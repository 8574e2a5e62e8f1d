"""`sluicegate verify`: whether a pipeline's folder is sound, before anything starts in it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from sluicegate.cli.out import console, print_json, progress_bar


def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a pipeline that does not run.")],
    repair: Annotated[bool, typer.Option("--repair", help="Put right what can be put right exactly.")] = False,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Check a pipeline's folder: manifests, checksums, checkpoints against edges, state against commits."""
    from sluicegate.spark.pipeline.verify import verify as look_through

    with progress_bar("checking", quiet=json_out) as progress:
        found = look_through(folder, repair, progress)
    if json_out:
        print_json({"sound": found.sound, **asdict(found)})
        return 0 if found.sound else 1
    out = console()
    for line in found.repaired:
        out.print(f"repaired: {escape(line)}")
    for line in found.faults:
        out.print(f"[red]not sound[/red]: {escape(line)}")
    seen = f"{found.edges} edges, {found.manifests} manifests, {found.files} data files, {found.operators} operators"
    verdict = "sound" if found.sound else f"{len(found.faults)} fault{'s' if len(found.faults) > 1 else ''}"
    out.print(f"{escape(str(folder))}: {verdict} ({seen} checked)")
    return 0 if found.sound else 1
