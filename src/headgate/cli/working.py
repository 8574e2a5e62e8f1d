"""The commands that plan, simulate and run, and so load what computes."""

from __future__ import annotations

import typer

from headgate.cli.apps import apps
from headgate.cli.cluster import app as cluster
from headgate.cli.demo import demo
from headgate.cli.fidelity import fidelity
from headgate.cli.plan import plan
from headgate.cli.policies import policies
from headgate.cli.replay import replay
from headgate.cli.reproduce import reproduce
from headgate.cli.run import run
from headgate.cli.simulate import simulate


def add_working(app: typer.Typer) -> None:
    """In the order in which the help shows them."""
    app.command()(demo)
    app.command()(fidelity)
    app.command()(run)
    app.command()(plan)
    app.command()(simulate)
    app.command()(replay)
    app.command()(reproduce)
    app.add_typer(cluster, name="cluster")
    app.command()(apps)
    app.command()(policies)
