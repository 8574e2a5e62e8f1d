"""`sluicegate repartition`: another number of state partitions for a stopped query."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from sluicegate.cli.out import console, print_json, status
from sluicegate.errors import BadInput
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.runs import known_runs


def repartition(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="The query's checkpointLocation.")],
    partitions: Annotated[int | None, typer.Argument(metavar="N", help="State partitions from now on.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Put back what was there before.")] = False,
    master: Annotated[str, typer.Option(metavar="M", help="Where Spark does the work.")] = "local[*]",
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Change the number of state partitions of a stopped query, checked row by row; can be undone."""
    from dataclasses import asdict

    from sluicegate.spark import repartition as stateful
    from sluicegate.spark.session import spark_session

    place = checkpoint.absolute()
    _refuse_running(place)
    if undo:
        stateful.undo(place)
        _say(f"{place} is as it was before the repartition", json_out)
        return 0
    if partitions is None:
        raise BadInput("give the number of partitions, or --undo")
    _refuse_pipeline(place)
    undone_first = stateful.undo_interrupted(place)
    if undone_first and not json_out:
        _say(f"{place}: an earlier repartition was interrupted; it is undone first", False)
    settings = stateful.settings_for(stateful.stopped(place))
    with status("starting Spark", quiet=json_out) as progress:
        spark = spark_session(master, {"spark.plugins": "", **settings}, "sluicegate repartition")
        try:
            done = stateful.repartition(spark, place, partitions, progress)
        finally:
            spark.stop()
    if json_out:
        print_json(
            {
                "checkpoint": str(place),
                "partitions": partitions,
                "rows": done.rows,
                "partitions_before": done.partitions_before,
                "stores": [asdict(one) for one in done.stores],
                "copy": str(done.copy),
                "undone_first": undone_first,
            }
        )
        return 0
    _say(
        f"{done.rows:,} rows of state lie in {partitions} partitions (were {done.partitions_before}), counts and "
        f"checksums equal; start the query as before. The old checkpoint is kept in {done.copy}: "
        "`sluicegate repartition CHECKPOINT --undo` puts it back as long as the query has not run",
        False,
    )
    return 0


def _refuse_pipeline(checkpoint: Path) -> None:
    """Refuse operators of pipelines: Spark adds a batch, of which their edges would have no manifest."""
    at = checkpoint.resolve()
    if at.parent.parent.name == "operators" and (at.parents[2] / "edges").is_dir():
        raise BadInput(
            f"{checkpoint} belongs to a pipeline: its key groups are changed while it runs, by its policy or by "
            "set_key_groups"
        )


def _refuse_running(checkpoint: Path) -> None:
    """Refuse queries of running attached applications: between two batches they look like stopped ones."""
    for run in known_runs():
        text = read_if_there(Layout(Path(run.folder)).description) if run.running else None
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            for node in json.loads(text or "{}").get("nodes") or ():
                at = node.get("checkpoint")
                if node.get("active") and at and Path(at).resolve() == checkpoint.resolve():
                    raise BadInput(f"query {node['name']} of {run.app} runs on {checkpoint}: stop it first")


def _say(text: str, quiet: bool) -> None:
    if quiet:
        print_json({"done": text})
    else:
        console().print(escape(text))
