"""`headgate run`: an application on Spark under the control loop, its promise kept, its answer checked."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headgate.cli.out import console, print_json, rate, seconds
from headgate.config.goal_text import duration_s, goal_from
from headgate.errors import BadInput
from headgate.plan.catalogue import policy_entry

if TYPE_CHECKING:
    from headgate.apps.app import App
    from headgate.apps.outcome import Outcome


def run(
    app: Annotated[str, typer.Argument(metavar="APP", help="An application's name, or a file such as app.py.")],
    length: Annotated[str, typer.Option("--seconds", metavar="S", help="How long to feed it: 60, 3min.")] = "120",
    policy: Annotated[str, typer.Option(help="Who decides; see `headgate policies`.")] = "headgate",
    slo: Annotated[
        list[str] | None, typer.Option(metavar="GOAL", help="The promise, for example mean=2s or p95=5s.")
    ] = None,
    master: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="local[N], spark://..., yarn, k8s://..., or cluster: the one that `headgate cluster up` started.",
        ),
    ] = "local[16]",
    load: Annotated[Path | None, typer.Option(metavar="FILE", help="A trace (CSV) to follow; else it triples.")] = None,
    given: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Real records to feed, over and over.")
    ] = None,
    calm_per_s: Annotated[float | None, typer.Option("--rate", help="Rows a second while calm.")] = None,
    budget: Annotated[int | None, typer.Option(help="Processors there are; else the slots of the master.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where the pipeline lives; there already: it resumes.")] = None,
    executors: Annotated[
        str | None, typer.Option(metavar="LEAST:MOST", help="Executors that come and go (on a cluster).")
    ] = None,
    executor_cores: Annotated[int, typer.Option(min=1, help="Slots of one executor (on a cluster).")] = 1,
    conf: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Spark settings.")] = None,
    fuse: Annotated[bool, typer.Option(help="Let neighbours share a query where that pays.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only advise: log decisions, move nothing.")] = False,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Run an application on Spark and let its parallelism follow the load."""
    from headgate.apps.load import from_file, triples
    from headgate.apps.outcome import as_document
    from headgate.apps.running import run_app
    from headgate.apps.user_file import app_for
    from headgate.spark.controller import Control
    from headgate.spark.ground import ground_of
    from headgate.spark.session import spark_session

    policy_entry(policy)
    chosen, length_s = _fed_from(app_for(app), given), duration_s(length)
    promise = tuple(slo) if slo else (chosen.slo,)
    goal_from(promise)
    calm = calm_per_s if calm_per_s is not None else chosen.calm_per_s
    if not calm > 0 or not length_s > 0:
        raise BadInput("--rate and --seconds must be above 0")
    followed = from_file(load, calm) if load else triples(calm)
    home = folder or Path(tempfile.mkdtemp(prefix=f"headgate-{chosen.name}-"))
    out = Console(stderr=True, highlight=False)
    out.print(f"starting Spark ({master}) and {chosen.name} in {home}") if not json_out else None
    ground = ground_of(master, executors, executor_cores)
    spark = spark_session(ground.master, {**ground.settings, **_settings(conf or [])}, f"headgate {chosen.name}")
    try:
        slots = budget or ground.slots or spark.sparkContext.defaultParallelism
        control = Control(policy, promise, slots, dry_run=dry_run)
        shown = None if json_out else _Shown(out)
        outcome = run_app(chosen, spark, home, followed, length_s, control, fuse, shown, ground.fleet(spark))
    finally:
        spark.stop()
    if folder is None:
        shutil.rmtree(home, ignore_errors=True)
    if json_out:
        print_json(as_document(outcome))
    else:
        show(outcome, console())
    return 0 if outcome.answer is None or outcome.answer.exact else 1


def _fed_from(app: App, given: Path | None) -> App:
    if given is None:
        return app
    if app.given is None:
        raise BadInput(f"application {app.name!r} reads no file: leave --input out")
    return app.given(given)


def _settings(conf: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in conf]
    if any(not key or not equals for key, equals, _ in pairs):
        raise BadInput("--conf takes KEY=VALUE, for example spark.executor.memory=2g")
    return {key: value for key, _, value in pairs}


class _Shown:
    """One line every few seconds on standard error, so that a long run is not silent."""

    def __init__(self, out: Console) -> None:
        self._out, self._told = out, 0.0

    def __call__(self, share: float, tick: dict[str, Any] | None) -> None:
        if tick is None or tick["at_s"] < self._told + 5.0:
            return
        self._told = tick["at_s"]
        sojourn = tick["sojourn"]["mean_s"] if tick["sojourn"] else None
        split = " ".join(f"{name}={k}" for name, k in tick["running"].items())
        self._out.print(
            f"{share:5.0%}  {rate(tick['arrivals_per_s'] or 0.0):>14}  latency {seconds(sojourn):>8}  {split}"
        )


def show(outcome: Outcome, out: Console) -> None:
    """For people: every move and why, then the balance."""
    for why in outcome.why_grouped:
        out.print(f"  {escape(why)}")
    began = outcome.ticks[0]["at_s"] if outcome.ticks else 0.0
    out.print("\n[bold]every move and why[/]")
    for decision in outcome.decisions:
        moves = ", ".join(f"{r['operator']} {r['have']} -> {r['want']}" for r in decision["rescales"])
        out.print(f"  {decision['at_s'] - began:6.0f} s  {moves}: {escape('; '.join(decision['reasons'][:2]))}")
    promise = ", ".join(f"{what} <= {seconds(bound)}" for what, bound in outcome.goal.latency_bounds.items())
    kept = f"{outcome.kept_share:.1%}" if outcome.kept_share is not None else "-"
    static = outcome.static_peak
    share = f"{outcome.slot_seconds / (static * outcome.seconds):.0%} of" if static else "no figure for"
    out.print(
        f"\n[bold]{outcome.policy}[/] kept {promise or 'no promise'} for {kept} of {outcome.rows_in:,} rows "
        f"with {share} static peak's slot-seconds, in {outcome.rescales} moves; "
        f"latency mean {seconds(outcome.mean_s)}, p95 {seconds(outcome.p95_s)}."
    )
    answer = outcome.answer
    if answer is not None:
        told = "exact" if answer.exact else f"WRONG ({answer.note})"
        out.print(f"The answer is {told}: {answer.lost} rows lost, {answer.duplicated} doubled.")
    for text in outcome.restarts:
        out.print(f"[yellow]{escape(text)}[/]")
