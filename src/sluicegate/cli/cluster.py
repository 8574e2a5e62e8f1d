"""`sluicegate cluster`: a standalone Spark cluster on this machine, from pip's PySpark alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluicegate.cli.out import console, print_json, status
from sluicegate.spark.cluster.secret import properties_file
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.state import default_folder
from sluicegate.spark.cluster.status import ClusterStatus

app = typer.Typer(help="A standalone Spark cluster on this machine, from pip's PySpark alone.")

_FOLDER = typer.Option(
    metavar="DIR", help="Folder of its state and logs ($SLUICEGATE_HOME/cluster, ~/.sluicegate/cluster)."
)
_JSON = typer.Option("--json", help="One JSON document.")


@app.command()
def up(
    workers: Annotated[int, typer.Option(min=1, help="Workers to run.")] = 2,
    cores: Annotated[int, typer.Option(min=1, help="Cores each worker offers; more than there are is allowed.")] = 1,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory each offers, such as 512m or 2g.")] = "1g",
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The master's port; a free one if left out.")
    ] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    json_out: Annotated[bool, _JSON] = False,
) -> int:
    """Start a master and workers and wait until all are registered; what runs already is kept."""
    cluster = Cluster(folder or default_folder())
    with status("starting a master and workers", quiet=json_out):
        found = cluster.up(workers, cores, memory, port)
    return _tell(found, json_out)


@app.command()
def down(folder: Annotated[Path | None, _FOLDER] = None, json_out: Annotated[bool, _JSON] = False) -> int:
    """Stop the workers and the master; fine where none runs."""
    where = folder or default_folder()
    with status("stopping", quiet=json_out):
        stopped = Cluster(where).down() if where.exists() else ()  # which would make the folder
    if json_out:
        print_json({"up": False, "folder": str(where), "stopped": list(stopped)})
    else:
        console().print(f"stopped {', '.join(stopped)}" if stopped else f"no cluster runs in {escape(str(where))}")
    return 0


@app.command("status")
def show_status(folder: Annotated[Path | None, _FOLDER] = None, json_out: Annotated[bool, _JSON] = False) -> int:
    """Show the master, the workers and what runs on them; 1 if something was lost."""
    where = folder or default_folder()
    found = Cluster(where).status()
    if found is not None:
        return _tell(found, json_out)
    if json_out:
        print_json({"up": False, "folder": str(where), "master": None, "workers": [], "applications": []})
    else:
        console().print(f"no cluster runs in {escape(str(where))}: start one with `sluicegate cluster up`")
    return 0


def _tell(found: ClusterStatus, json_out: bool) -> int:
    if json_out:
        print_json(as_document(found))
    else:
        _show(found, console())
    return 0 if found.healthy else 1


def as_document(found: ClusterStatus) -> dict[str, object]:
    """The JSON of `up` and `status`."""
    return {
        "up": found.answers,
        "folder": str(found.folder),
        "master": found.url,
        "page": found.page,
        "healthy": found.healthy,
        "note": found.note,
        "cores": sum(worker.cores for worker in found.workers),
        "cores_used": sum(worker.cores_used for worker in found.workers),
        "memory_mb": sum(worker.memory_mb for worker in found.workers),
        "memory_used_mb": sum(worker.memory_used_mb for worker in found.workers),
        "workers": [asdict(worker) for worker in found.workers],
        "applications": [asdict(application) for application in found.applications],
    }


def _show(found: ClusterStatus, out: Console) -> None:
    out.print(f"[bold]{found.url}[/] {escape(found.note)}" if found.note else f"[bold]{found.url}[/]")
    out.print(f"page {found.page} (user sluicegate), folder {escape(str(found.folder))}")
    secret = escape(str(properties_file(found.folder)))
    out.print(f"secret and page password, for you alone: {secret}", soft_wrap=True)
    out.print(f"submit with: spark-submit --properties-file {secret} --master {found.url} app.py\n", soft_wrap=True)
    table = Table("worker", "state", box=None, pad_edge=False)
    for heading in ("cores used", "of", "MB used", "of", "process"):
        table.add_column(heading, justify="right")
    for w in found.workers:
        numbers = (w.cores_used, w.cores, w.memory_used_mb, w.memory_mb, w.pid)
        table.add_row(w.name, w.state if w.state == "alive" else f"[red]{w.state}[/]", *map(str, numbers))
    out.print(table)
    for a in found.applications:
        out.print(f"\n{escape(a.name)} ({escape(a.id)}) {a.state.lower()} on {a.cores} cores")
