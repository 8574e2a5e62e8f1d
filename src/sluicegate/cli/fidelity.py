"""`sluicegate fidelity`: how well the models predict an application on Spark."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from sluicegate.cli.checked_options import the_app, the_length_s, the_pipeline, the_rate
from sluicegate.cli.out import console, place_for, print_json, write_page
from sluicegate.config.typed import duration_s, pairs_from
from sluicegate.domain.figures import rate, seconds
from sluicegate.errors import BadInput
from sluicegate.lab.fidelity.page import HEADINGS, cells
from sluicegate.runlog.plan_file import MOST_PROCESSORS

if TYPE_CHECKING:
    from sluicegate.lab.fidelity.fidelity import Fidelity


def fidelity(
    app: Annotated[str, typer.Argument(metavar="APP", help="An application's name, or a file such as app.py.")],
    rate_per_s: Annotated[
        float | None, typer.Option("--rate", help="Rows a second of every source (default: what makes it busy).")
    ] = None,
    count: Annotated[int, typer.Option("--settings", min=2, help="Allocations to compare.")] = 6,
    total: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Only allocations with this many processors in all.")
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(
            metavar="K|NAME=K,..", help="At most this many processors for an operator (its cores, where it computes)."
        ),
    ] = None,
    length: Annotated[
        str, typer.Option("--seconds", metavar="S", help="How long each allocation runs in a round.")
    ] = "25",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the median of them counts.")] = 1,
    pace: Annotated[
        str | None,
        typer.Option(metavar="S", help="Time between batches where rows come in (default: what leaves cores free)."),
    ] = None,
    master: Annotated[str, typer.Option(metavar="M", help="Where Spark runs.")] = "local[16]",
    fuse: Annotated[bool, typer.Option(help="Let neighbours share a query where that pays.")] = True,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="A page with the picture.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Measure an application's operators, predict allocations, run them, and compare."""
    from sluicegate.lab.fidelity.fidelity import measure_fidelity
    from sluicegate.lab.fidelity.page import fidelity_page
    from sluicegate.spark.ground import ground_of
    from sluicegate.spark.session import spark_session, stop_spark
    from sluicegate.spark.spark_log import quiet_spark

    chosen, length_s = the_app(app), the_length_s(length)
    if rate_per_s is not None:
        the_rate(rate_per_s)
    pace_s = None if pace is None else duration_s(pace)
    page, limits = place_for(html) if html else None, None if most is None else most_from(most)
    if chosen.beside is None:
        the_pipeline(chosen)
    ground = ground_of(master)
    told = Console(stderr=True, highlight=False, quiet=json_out)
    told.print(f"starting Spark ({master}) and {chosen.name}")
    settings = {"spark.driver.memory": "1g", **ground.settings}
    with tempfile.TemporaryDirectory(prefix="sluicegate-fidelity-", ignore_cleanup_errors=True) as home:
        with quiet_spark(Path(home) / "spark.log"):
            spark = spark_session(ground.master, settings, f"sluicegate fidelity {chosen.name}")
        try:
            found = measure_fidelity(
                chosen,
                spark,
                Path(home) / "run",
                rate_per_s,
                count,
                length_s,
                told.print,
                fuse,
                pace_s,
                total=total,
                most=limits,
                rounds=rounds,
            )
        finally:
            stop_spark(spark)
    if page is not None:
        write_page(page, fidelity_page([found]))
    print_json(as_document(found)) if json_out else show(found, console())
    return 0


def most_from(text: str) -> int | dict[str, int]:
    """One limit for all operators, or one for each that is named.

    >>> most_from("2"), most_from("detect=2, report=1")
    (2, {'detect': 2, 'report': 1})
    """
    found = pairs_from(text if "=" in text else f"all={text}", "--most")
    for name, count in found.items():
        if not 1 <= count <= MOST_PROCESSORS or count != int(count):
            raise BadInput(f"--most of {name} is {count:g}: give a whole number, 1 to {MOST_PROCESSORS}")
    return {name: int(count) for name, count in found.items()} if "=" in text else int(found["all"])


def as_document(found: Fidelity) -> dict[str, object]:
    """Times in seconds, rates in rows of one source a second."""
    from sluicegate.lab.fidelity.settings import median_error, pairs_in_order

    right, pairs = pairs_in_order(found.settings, lambda one: one.predicted.mean_s)
    law = found.law
    return {
        "app": found.app,
        "rate_per_s": found.rate_per_s,
        "pace_s": found.pace_s,
        "median_error": median_error(found.settings),
        "pairs_in_order": right,
        "pairs": pairs,
        "operators": {
            o.name: {
                "service_per_s": o.service_per_s,
                "batch": None if o.batch is None else asdict(o.batch),
                "visits": law.visited[o.name],
                "noise_scv": law.noise_scv[o.name],
                "r2": law.r2[o.name],
            }
            for o in law.topology.operators
        },
        "settings": [{**asdict(one), "error": one.error} for one in found.settings],
    }


def show(found: Fidelity, out: Console) -> None:
    """The law of each operator, then every setting."""
    from sluicegate.lab.fidelity.settings import median_error, pairs_in_order

    out.print(f"  processors of {', '.join(found.law.topology.names)}")
    for o in found.law.topology.operators:
        if o.batch is not None:
            law = f"{o.batch.overhead_s:.3f} s + {o.batch.per_task_s:.3f} s k + n/(k {o.service_per_s:,.0f}/s)"
            scatter = found.law.noise_scv[o.name] ** 0.5
            out.print(f"  {o.name}: b = {law}, R2 {found.law.r2[o.name]:.2f}, scatter beside rows {scatter:.0%}")
    out.print(_table(found))
    right, pairs = pairs_in_order(found.settings, lambda one: one.predicted.mean_s)
    out.print(
        f"[bold]{found.app}[/] at {rate(found.rate_per_s)}, a batch every {seconds(found.pace_s)} where rows come in: "
        f"median error of the mean {median_error(found.settings):.1%}, {right} of {pairs} pairs in the right order"
    )


def _table(found: Fidelity) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for one in found.settings:
        table.add_row(*cells(one))
    return table
