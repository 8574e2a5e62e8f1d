"""`sluicegate run`: an application on Spark under the control loop, its promise kept, its answer checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluicegate.cli.out import place_for
from sluicegate.cli.wanted import (
    BUNDLED_LENGTH,
    LOCAL,
    GroundAsked,
    Wanted,
    is_file,
    options,
    the_app,
    the_home,
    the_length_s,
    the_load,
    the_policy,
    the_promise,
    the_settings,
)
from sluicegate.errors import BadInput


def run(
    app: Annotated[str, typer.Argument(metavar="APP", help="An application's name, or a file such as app.py.")],
    length: Annotated[
        str | None,
        typer.Option(
            "--seconds",
            metavar="S",
            help=f"How long to run: 60, 3min [a bundled application {BUNDLED_LENGTH}, a file until it is stopped].",
        ),
    ] = None,
    policy: Annotated[str, typer.Option(help="Who decides; see `sluicegate policies`.")] = "sluicegate",
    slo: Annotated[
        list[str] | None, typer.Option(metavar="GOAL", help="The promise, for example mean=2s or p95=5s.")
    ] = None,
    master: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="local[N], spark://..., yarn, k8s://..., or cluster: the one that `sluicegate cluster up` started.",
        ),
    ] = LOCAL,
    load: Annotated[Path | None, typer.Option(metavar="FILE", help="A trace (CSV) to follow; else it triples.")] = None,
    given: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Real records to feed, over and over.")
    ] = None,
    calm_per_s: Annotated[float | None, typer.Option("--rate", help="Rows a second while calm.")] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Processors there are; else the slots of the master.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where the pipeline lives; there already: it resumes [a file: sluicegate-NAME in the current folder; "
            "a bundled application: a temporary one, whose rows are deleted at the end].",
        ),
    ] = None,
    executors: Annotated[
        str | None, typer.Option(metavar="LEAST:MOST", help="Executors that come and go (on a cluster).")
    ] = None,
    executor_cores: Annotated[int, typer.Option(min=1, help="Slots of one executor (on a cluster).")] = 1,
    conf: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Spark settings.")] = None,
    fuse: Annotated[bool, typer.Option(help="Let neighbours share a query where that pays.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only advise: log decisions, move nothing.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with pictures.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Run an application on Spark and let its parallelism follow the load."""
    from sluicegate.cli.one_run import Telling, run_and_tell

    own = is_file(app)
    if own and load is not None and length is None:
        raise BadInput("--load stretches its trace over the run: give --seconds too")
    length_s, chosen = the_length_s(length or (None if own else BUNDLED_LENGTH)), the_app(app, given)
    typed = options(
        seconds=length,
        policy=policy if policy != "sluicegate" else None,
        slo=slo,
        master=master if master != LOCAL else None,
        load=load,
        input=given,
        rate=calm_per_s,
        budget=budget,
        executors=executors,
        executor_cores=executor_cores if executor_cores != 1 else None,
        conf=conf,
        no_fuse=not fuse,
        dry_run=dry_run,
    )
    wanted = Wanted(
        chosen,
        the_policy(policy),
        the_promise(chosen, slo),
        the_load(chosen, calm_per_s, load),
        length_s,
        GroundAsked(master, executors, executor_cores, the_settings(conf or [])),
        budget,
        fuse,
        dry_run,
        ("sluicegate", "run", app, *typed),
    )
    page = html and place_for(html)
    return run_and_tell(wanted, the_home(chosen, folder, own), Telling(json_out, page))
