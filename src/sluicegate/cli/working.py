"""The commands that plan, simulate and run, and so load what computes."""

from __future__ import annotations

import typer

from sluicegate.cli.advise import advise
from sluicegate.cli.apps import apps
from sluicegate.cli.cluster import app as cluster
from sluicegate.cli.demo import demo
from sluicegate.cli.fidelity import fidelity
from sluicegate.cli.plan import plan
from sluicegate.cli.policies import policies
from sluicegate.cli.repartition import repartition
from sluicegate.cli.replay import replay
from sluicegate.cli.reproduce import reproduce
from sluicegate.cli.run import run
from sluicegate.cli.simulate import simulate


def add_working(app: typer.Typer) -> None:
    """In the order in which the help shows them."""
    app.command()(demo)
    app.command()(fidelity)
    app.command()(run)
    app.command()(plan)
    app.command()(simulate)
    app.command()(replay)
    app.command()(advise)
    app.command()(repartition)
    app.command()(reproduce)
    app.add_typer(cluster, name="cluster")
    app.command()(apps)
    app.command()(policies)
