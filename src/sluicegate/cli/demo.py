"""`sluicegate demo`: a shop on real Spark, its load triples and falls back, and the pipeline follows while you look."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sluicegate.cli.checked_options import (
    is_file,
    options,
    the_app,
    the_length_s,
    the_load,
    the_policy,
    the_processors,
    the_promise,
)
from sluicegate.cli.out import place_for
from sluicegate.cli.wanted import LOCAL, GroundAsked, Wanted, the_home
from sluicegate.config.typed import executors_from
from sluicegate.dashboard.child import Dashboard
from sluicegate.errors import BadInput

_PAGE = "sluicegate-demo.html"
_WORKER_CORES = 3
_EXECUTORS = "1:3"
_CLUSTER_PROMISE = "mean=10s"
_CLUSTER_SHARE = 0.4
"""Share of the application's load: nodes that start on the machine which does the work take its cores for a while."""
_BEGINS = {"shop": "price=4"}
"""Enough for the initial load, at 8 ms a purchase: the demo is about what comes after."""
_LENGTH, _CLUSTER_LENGTH = "120", "150"
"""Longer with nodes, so that their removal is seen as well."""


def demo(
    length: Annotated[
        str | None, typer.Option("--seconds", metavar="S", help=f"How long to feed it: 60, 3min [{_LENGTH}].")
    ] = None,
    app: Annotated[str, typer.Option(metavar="APP", help="What runs; see `sluicegate apps`.")] = "shop",
    policy: Annotated[str, typer.Option(help="The policy; see `sluicegate policies`.")] = "sluicegate",
    slo: Annotated[list[str] | None, typer.Option(metavar="GOAL", help="The promise, such as mean=4s.")] = None,
    calm_per_s: Annotated[float | None, typer.Option("--rate", help="Rows a second outside the peak.")] = None,
    master: Annotated[str, typer.Option(metavar="M", help="Where it runs; see `sluicegate run --help`.")] = LOCAL,
    executors: Annotated[
        str | None, typer.Option(metavar="LEAST:MOST", help="Least and most executors (on a cluster).")
    ] = None,
    processors: Annotated[
        str | None,
        typer.Option(metavar="A=K,B=K", help=f"Tasks operators begin with (shop: {_BEGINS['shop']}; else 1 each)."),
    ] = None,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help="On a cluster of local workers, made for it: nodes follow too. They start on the machine that does "
            f"the work, so the promise is {_CLUSTER_PROMISE} and the load {_CLUSTER_SHARE:g} of the usual [150 s].",
        ),
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help=f"The page at the end (default: {_PAGE}).")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the dashboard; 0 picks a free one.")] = 0,
    dashboard: Annotated[bool, typer.Option(help="Show the run on a web page while it runs.")] = True,
    browser: Annotated[bool, typer.Option(help="Open that page, where there is a desktop.")] = True,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Run a shop's top-N on Spark under a load that triples and falls back, and show every move with its reason."""
    from sluicegate.cli.one_run import Telling, run_and_tell

    if executors is not None:
        executors_from(executors)
    if cluster and (master != LOCAL or executors):
        raise BadInput("--cluster brings its own master and executors: leave --master and --executors out")
    usual = _CLUSTER_LENGTH if cluster else _LENGTH
    length_s, chosen = the_length_s(usual if length is None else length), the_app(app)
    if cluster:
        chosen = replace(chosen, slo=_CLUSTER_PROMISE, calm_per_s=chosen.calm_per_s * _CLUSTER_SHARE)
    decides, promise, load = the_policy(policy), the_promise(chosen, slo), the_load(chosen, calm_per_s, None)
    begins = the_processors(chosen, processors or _BEGINS.get(app), fuse=True)
    typed = options(
        policy=policy if policy != "sluicegate" else None,
        slo=slo or ([_CLUSTER_PROMISE] if cluster else None),
        rate=calm_per_s,
        master=master if master != LOCAL else None,
        executors=executors,
        processors=processors or _BEGINS.get(app),
    )
    if dashboard and port:
        _refuse_taken(port)
    telling = Telling(json_out, place_for(html) if html else _page())
    beside = _DashboardBeside(dashboard, port, browser and not json_out, telling.progress)
    with _own_cluster() if cluster else nullcontext(GroundAsked(master, executors)) as ground:
        wanted = Wanted(
            chosen,
            decides,
            promise,
            load,
            length_s,
            ground,
            again=("sluicegate", "run", app, *typed),
            by_machine=not slo,
            processors=begins,
        )
        return run_and_tell(wanted, the_home(chosen, None, is_file(app)), telling, beside)


def _refuse_taken(port: int) -> None:
    """Refuse a port that is in use before Spark starts: the dashboard would find out a minute later."""
    from sluicegate.dashboard.server import HOST, listen

    listen(HOST, port).close()


def _page() -> Path:
    """The page in the current folder; in the temporary one, named in the last line, if nothing can be written there."""
    try:
        return place_for(Path(_PAGE))
    except BadInput:
        return Path(tempfile.gettempdir()) / _PAGE


@contextmanager
def _own_cluster() -> Iterator[GroundAsked]:
    """A master and one worker in a temporary folder; more start when executors need them, all end with the block."""
    from sluicegate.spark.cluster.standalone import Cluster

    with tempfile.TemporaryDirectory(prefix="sluicegate-cluster-", ignore_cleanup_errors=True) as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.up(1, _WORKER_CORES, "1g")
            yield GroundAsked(f"cluster:{folder}", _EXECUTORS, _WORKER_CORES)
        finally:
            cluster.down()


@dataclass(frozen=True, slots=True)
class _DashboardBeside:
    """Runs the dashboard next to the demo and opens it in a browser; its address is printed to ``out``."""

    dashboard: bool
    port: int
    browser: bool
    out: Console | None

    def __call__(self, folder: Path) -> AbstractContextManager[object]:
        return self._shown(folder)

    @contextmanager
    def _shown(self, folder: Path) -> Iterator[None]:
        if not self.dashboard:
            yield
            return
        with Dashboard(folder, port=self.port) as served:
            self._say(f"watch it at {served.url}")
            if self.browser and _has_desktop():
                webbrowser.open(served.url)
            yield

    def _say(self, text: str) -> None:
        if self.out is not None:
            self.out.print(text, soft_wrap=True, markup=False)


def _has_desktop() -> bool:
    """Whether there is a desktop: without one, a text browser would take over this terminal."""
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
