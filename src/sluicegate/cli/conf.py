"""`sluicegate conf`: the options that attach an application without changing its code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.errors import BadInput


def conf(
    own: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- OPTIONS]", help="Your own options for spark-submit: ours are joined to them."),
    ] = None,
    slo: Annotated[
        list[str] | None,
        typer.Option(metavar="GOAL", help="The promise, for example p95=10s; without one it only observes."),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=GOAL", help="The promise of one query, clicks=p95=2s; NAME=none leaves it alone."),
    ] = None,
    executors: Annotated[
        str | None, typer.Option(metavar="LEAST:MOST", help="Least and most executors, for example 1:4.")
    ] = None,
    policy: Annotated[str, typer.Option(help="The policy; see `sluicegate policies`.")] = "sluicegate",
    observe: Annotated[bool, typer.Option("--observe", help="Only observe and advise; nothing is moved.")] = False,
    folder: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the record (default: under ~/.sluicegate).")
    ] = None,
    pace: Annotated[bool, typer.Option("--pace", help="Trigger intervals and read limits may be moved.")] = False,
    split: Annotated[
        bool,
        typer.Option("--split", help="Sources may be read in more tasks than they give; changes the order of rows."),
    ] = False,
    properties: Annotated[bool, typer.Option("--properties", help="As a properties file.")] = False,
) -> int:
    """Print the options that attach an application: spark-submit $(sluicegate conf ...) app.py"""
    from sluicegate.config.typed import executors_from
    from sluicegate.spark.attach.options import Options, own_promise, spark_settings
    from sluicegate.spark.attach.submit_words import Given, as_properties, as_words, joined

    bounds = executors_from(executors) if executors is not None else None
    told = [own_promise(text) for text in query or ()]
    promises = dict(told)
    if len(promises) < len(told):
        raise BadInput("--query names a query twice: keep one")
    place = str(Path(folder).absolute()) if folder else None
    options = Options(tuple(slo or ()), bounds, policy, observe, promises, folder=place, pace=pace, split=split)
    given = Given.of(own or (), os.environ)
    settings = joined(spark_settings(options), given)
    typer.echo(as_properties(settings) if properties else as_words(settings, given))
    if options.observes_only and bounds and not observe:
        typer.echo("sluicegate: no promise, so it only observes and executors stay: give --slo p95=10s", err=True)
    return 0
