"""`sluicegate replay`: load traces against policies, compared under the same draws of the true capacity."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sluicegate.cli.out import console, place_for, print_json, write_page
from sluicegate.config.capacity_file import read_capacity
from sluicegate.config.machine import usable_cores
from sluicegate.config.trace_file import Trace, read_trace
from sluicegate.domain.figures import seconds
from sluicegate.errors import BadInput
from sluicegate.lab.replay.page import replay_page
from sluicegate.lab.replay.players import names_from
from sluicegate.lab.replay.replay import PlayJobs, ReplayOptions, Result, TraceReport, play
from sluicegate.lab.replay.replay import Progress as ReplayProgress
from sluicegate.lab.replay.replay import replay as replay_traces
from sluicegate.lab.replay.world import DEFAULT_POINTS, DEFAULT_SAID, protocol_named, truth_of


def replay(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="CSV files: a time and a load a row.")],
    policies: Annotated[str, typer.Option(metavar="NAMES", help="Policies with commas between, or all.")] = "all",
    protocol: Annotated[
        str, typer.Option(help="cycle: decided every 10 minutes, 2 ahead. free: any minute, start-up 2 minutes.")
    ] = "cycle",
    target: Annotated[float, typer.Option(help="The target share of minutes on time.")] = 0.995,
    capacity: Annotated[
        Path | None,
        typer.Option("--capacity", "--profile", metavar="FILE", help="The true capacity, or a profile: a TOML file."),
    ] = None,
    peak: Annotated[float | None, typer.Option(metavar="R", help="Scale each trace's maximum to R rows/s.")] = None,
    column: Annotated[str | None, typer.Option(metavar="C", help="The load's column, by name or number.")] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Runs, each with its own draws of the capacity.")] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same figures.")] = 0,
    rho: Annotated[float, typer.Option(help="The probability that uncertainty-0 to -7 ask for.")] = 0.95,
    train: Annotated[str, typer.Option(metavar="SIZES", help="Machines that the capacity is measured at before.")] = (
        "3,4,6,8,24"
    ),
    cores: Annotated[int | None, typer.Option(metavar="N", help="Processes; all local cores by default.")] = None,
    master: Annotated[str | None, typer.Option(metavar="M", help="A Spark master to run on.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with pictures.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Replay load traces against policies: on time, cost, backlog, rescales, forecast coverage."""
    began = time.perf_counter()
    if html is not None:
        place_for(html)
    options = ReplayOptions(
        policies=names_from(policies),
        protocol=protocol_named(protocol),
        target=target,
        rho=rho,
        runs=runs,
        seed=seed,
        peak_per_s=peak,
        training_sizes=_sizes(train),
    )
    points = DEFAULT_POINTS if capacity is None else read_capacity(capacity)
    said = DEFAULT_SAID if capacity is None else f"capacity of {capacity}: {len(points)} measured sizes"
    read = _read(traces, column)
    workers = cores if cores is not None else usable_cores()
    if workers < 1:
        raise BadInput(f"cores is {workers}: give at least 1")
    loads = [(name, trace.values) for name, trace in read.items()]
    with _bar() as progress, _players(master) as play_jobs:
        reports = replay_traces(loads, truth_of(points), options, workers, progress, play_jobs)
    document = as_document(options, said, read, reports)
    document["wall_s"] = round(time.perf_counter() - began, 3)
    if html is not None:
        write_page(html, replay_page(options, said, truth_of(points), [(r, read[r.trace].repairs) for r in reports]))
    if json_out:
        print_json(document)
    else:
        show(options, said, read, reports, console())
    return 0


@contextmanager
def _players(master: str | None) -> Iterator[PlayJobs]:
    """How jobs are executed: processes on the local cores, or tasks of a Spark cluster."""
    if master is None:
        yield play
        return
    from sluicegate.lab.replay.sweep import play_on
    from sluicegate.spark.ground import ground_of
    from sluicegate.spark.session import spark_session

    ground = ground_of(master)
    spark = spark_session(ground.master, ground.settings, "sluicegate replay")
    try:
        yield play_on(spark)
    finally:
        spark.stop()


def as_document(
    options: ReplayOptions, said: str, read: dict[str, Trace], reports: Sequence[TraceReport]
) -> dict[str, object]:
    """The JSON of the command-line contract."""
    return {
        "protocol": options.protocol.name,
        "target": options.target,
        "rho": options.rho,
        "runs": options.runs,
        "seed": options.seed,
        "training_sizes": list(options.training_sizes),
        "notes": [said],
        "traces": [_trace_document(report, read[report.trace]) for report in reports],
    }


def _trace_document(report: TraceReport, trace: Trace) -> dict[str, object]:
    return {
        "trace": report.trace,
        "column": trace.column,
        "rows": trace.rows,
        "step_s": trace.step_s,
        "minutes": len(trace.values),
        "peak_per_s": float(report.rates_per_s.max()),
        "repairs": list(trace.repairs),
        "notes": list(report.notes),
        "results": [_result_document(result) for result in report.results],
    }


def _result_document(result: Result) -> dict[str, object]:
    return {
        "policy": result.policy,
        "qos": result.qos,
        "cost_vs_hindsight": result.cost_vs_hindsight,
        "cost_vs_hindsight_minute": result.cost_vs_hindsight_minute,
        "cost_vs_static": result.cost_vs_static,
        "rescales": result.rescales,
        "backlog_peak": result.backlog_peak,
        "backlog_drain_s": result.backlog_drain_s,
        "coverage": result.coverage,
        "qos_by_run": list(result.qos_by_run),
        "cost_by_run": list(result.cost_by_run),
        "notes": list(result.notes),
    }


def show(
    options: ReplayOptions, said: str, read: dict[str, Trace], reports: Sequence[TraceReport], out: Console
) -> None:
    """Tables for a person."""
    how = f"protocol {options.protocol.name}, target {options.target:.2%}, {options.runs} runs, seed {options.seed}"
    out.print(f"{how}; {escape(said)}")
    for report in reports:
        trace = read[report.trace]
        out.print(f"\n[bold]{escape(report.trace)}[/]: {len(trace.values):,} minutes of {escape(trace.column)}")
        for note in (*trace.repairs, *report.notes):
            out.print(f"  - {escape(note)}")
        out.print(_table(report, options.target))
        for result in report.results:
            for note in result.notes:
                out.print(f"  {result.policy}: {escape(note)}")


def _table(report: TraceReport, target: float) -> Table:
    table = Table("policy", box=None, pad_edge=False)
    for heading in ("on time", "cost/hindsight", "cost/static", "rescales", "backlog rows", "drained in", "coverage"):
        table.add_column(heading, justify="right")
    for r in report.results:
        on_time = f"[{'green' if r.qos >= target else 'red'}]{r.qos:.3%}[/]"
        coverage = "-" if r.coverage is None else f"{r.coverage:.1%}"
        cells = (f"{r.cost_vs_hindsight:.3f}", f"{r.cost_vs_static:.3f}", f"{r.rescales:.0f}", f"{r.backlog_peak:,.0f}")
        table.add_row(r.policy, on_time, *cells, seconds(r.backlog_drain_s), coverage)
    return table


def _read(paths: Sequence[Path], column: str | None) -> dict[str, Trace]:
    """The traces by file name, or by path where two files have the same name."""
    if len({str(path) for path in paths}) < len(paths):
        raise BadInput("a trace is named twice: give each once")
    names = [path.name for path in paths]
    return {path.name if names.count(path.name) == 1 else str(path): read_trace(path, column) for path in paths}


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise BadInput(f"training sizes {text!r}: give whole numbers with commas, such as 3,4,6,8,24") from None
    if not 1 <= min(sizes) <= max(sizes) <= 128:
        raise BadInput(f"training sizes {text!r}: give 1 to 128 machines each")
    return sizes


@contextmanager
def _bar() -> Iterator[ReplayProgress]:
    """A progress bar on standard error where that is a terminal; standard output belongs to the answer."""
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = Console(stderr=True)
    with Progress(*columns, console=terminal, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("replaying", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
