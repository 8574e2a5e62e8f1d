"""`sluicegate conf`: the words that attach an application that knows nothing of sluicegate."""

from __future__ import annotations

from typing import Annotated

import typer


def conf(
    slo: Annotated[
        list[str] | None, typer.Option(metavar="GOAL", help="The promise, for example p95=10s; without: it observes.")
    ] = None,
    executors: Annotated[
        str | None, typer.Option(metavar="LEAST:MOST", help="Executors that come and go, for example 1:4.")
    ] = None,
    policy: Annotated[str, typer.Option(help="Who decides; see `sluicegate policies`.")] = "sluicegate",
    observe: Annotated[bool, typer.Option("--observe", help="Only watch and advise.")] = False,
    folder: Annotated[str | None, typer.Option(help="Where the record goes; else under ~/.sluicegate.")] = None,
    properties: Annotated[bool, typer.Option("--properties", help="As a properties file.")] = False,
) -> int:
    """Print the words that attach an application: spark-submit $(sluicegate conf ...) app.py"""
    from sluicegate.spark.attach.options import Options, range_from, spark_settings

    options = Options(tuple(slo or ()), range_from(executors) if executors else None, policy, observe, folder=folder)
    settings = spark_settings(options)
    if properties:
        typer.echo("\n".join(f"{key} {value}" for key, value in settings.items()))
    else:
        typer.echo(" ".join(f"--conf {key}={value}" for key, value in settings.items()))
    return 0
